"""Every metric of the pipeline, by name, unit and what it counts."""

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

_SECONDS: Final = (0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 30.0)
_KNOWN_VALUES: Final = 1_000


class Metrics:
    """One registry per worker, so that two in one process do not count together."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self.records = self._counter(
            "records", "Records read, by event type and outcome: folded, passed_over, repeated, rejected.",
            "type", "outcome",
        )  # fmt: skip
        self.attempts = self._counter(
            "attempts_written", "Tellings of attempts written to the index and the topics.", "status", "complete"
        )
        self.messages = self._counter("messages_written", "Event messages written to their topic, by reason.", "reason")
        self.documents = self._counter(
            "documents", "Documents answered by the index: done, conflict, split, refused, retry.", "outcome"
        )
        self.dead_letters = self._counter(
            "dead_letters", "Set aside: records that can't be understood, documents the index refuses.", "cause"
        )
        self.index_retries = Counter(
            "schedulerlog_index_retries", "Bulk requests of which something had to be sent again.",
            registry=self.registry,
        )  # fmt: skip
        self.publish_retries = Counter(
            "schedulerlog_publish_retries", "Times records had to be sent to Kafka again.", registry=self.registry
        )
        self.bulk_seconds = self._histogram("bulk_seconds", "From a bulk request to its answer.")
        self.batch_attempts = Histogram(
            "schedulerlog_batch_attempts", "Tellings in one batch.", registry=self.registry,
            buckets=(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000),
        )  # fmt: skip

    def watch(self, name: str, about: str, read: Callable[[], float]) -> None:
        """A gauge that is read when it is asked for."""
        Gauge(f"schedulerlog_{name}", about, registry=self.registry).set_function(read)

    def _counter(self, name: str, about: str, *labels: str) -> Callable[..., Counter]:
        """Gives the counter of some values of the ``labels``; each is looked up once, which takes the library long."""
        counter = Counter(f"schedulerlog_{name}", about, labels, registry=self.registry)
        return lru_cache(maxsize=_KNOWN_VALUES)(counter.labels)

    def _histogram(self, name: str, about: str) -> Histogram:
        return Histogram(f"schedulerlog_{name}", about, registry=self.registry, buckets=_SECONDS)
