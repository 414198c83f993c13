"""Metrics of the worker, by name and unit. docs/metrics.md has a line for each."""

from collections.abc import Callable
from functools import cache
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

from pipeline.sinks.metrics import TopicsMetrics

PROCESS: Final = "worker"
GAUGES: Final = {
    "open_attempts": "Attempts of which records are missing.",
    "unacknowledged_records": "Records read and not acknowledged.",
    "queued_bytes": "Memory of what waits to be published, approximately.",
    "cached_summaries": "Whole summaries in memory, for what the next record or attempt changes.",
    "pod_histories": "Pods whose latest attempts the worker knows; one that was tried again lately may count twice.",
    "lag_records": "Records in this worker's partitions that are not committed.",
    "group_lag_records": "Records in all partitions of decisions that are not committed, also in partitions that no "
    "worker reads. Every worker shows this number.",
    "is_waiting": "1 while the broker does not answer.",
    "waiting_seconds": "How long the broker has not answered; 0 while it does. `/readyz` and the log name the cause.",
}
"""Gauges whose value is read when ``/metrics`` is requested."""


class Metrics:
    """One registry per worker, so that two in one process do not count together."""

    def __init__(self) -> None:
        # Each counter and histogram would have a second series with the time it was created, which no query of ours
        # uses.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self.topics = TopicsMetrics(PROCESS, self.registry)
        self.records = self._add_counter(
            "records", "Records read, by event type and outcome: folded, passed_over, repeated, rejected.",
            "type", "outcome",
        )  # fmt: skip
        self.attempts = self._add_counter(
            "attempts_published", "Summaries and repetitions published.", "status", "complete"
        )
        self.messages = self._add_counter("messages_published", "Event messages published, by reason.", "reason")
        self.dead_letters = Counter(
            f"schedulerlog_{PROCESS}_dead_letters", "Records that could not be processed.", registry=self.registry
        )
        self.batch_attempts = Histogram(
            f"schedulerlog_{PROCESS}_batch_attempts", "Attempts in one batch.", registry=self.registry,
            buckets=(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000),
        )  # fmt: skip

    def watch(self, name: str, read: Callable[[], float]) -> None:
        """Add one of the ``GAUGES``."""
        Gauge(f"schedulerlog_{PROCESS}_{name}", GAUGES[name], registry=self.registry).set_function(read)

    def _add_counter(self, name: str, description: str, *labels: str) -> Callable[..., Counter]:
        """Add a counter; return a function from values of the ``labels``, of which there are few, to their child."""
        counter = Counter(f"schedulerlog_{PROCESS}_{name}", description, labels, registry=self.registry)
        # The library checks and sorts the values of the labels for each record.
        return cache(counter.labels)
