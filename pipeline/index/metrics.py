"""Metrics of the index writer, next to those of its sinks (``pipeline.sinks.metrics``) in the same registry."""

from collections.abc import Callable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

from pipeline.sinks.metrics import IndexMetrics, TopicsMetrics

GAUGES: Final = {
    "is_waiting": "1 while OpenSearch does not answer.",
    "waiting_seconds": "How long OpenSearch has not answered; 0 while it does. `/readyz` and the log name the cause.",
    "behind_seconds": "Age of the oldest record that was read and is not written.",
    "incomplete_summaries": "Summaries of which records are missing.",
}
"""Gauges whose value is read when ``/metrics`` is requested."""


# Up to an hour: records that waited while OpenSearch was away.
_DELAY_BUCKETS_SECONDS: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0)


class Metrics:
    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self.index = IndexMetrics("index", self.registry)
        self.topics = TopicsMetrics("index", self.registry)
        # The library appends `_total` to the names of counters.
        self.records = Counter(
            "schedulerlog_index_records",
            "Records read, by topic and outcome: taken, passed_over, rejected; of those taken: contradicting, refused.",
            ("topic", "outcome"),
            registry=self.registry,
        )
        self.given_up = Counter(
            "schedulerlog_index_given_up",
            "Summaries that were not written because records of them are missing.",
            registry=self.registry,
        )

        self.delays = Histogram(
            "schedulerlog_index_attempt_delay_seconds",
            "From Kafka's time of an attempt to OpenSearch having it; a search finds it within a second after that.",
            buckets=_DELAY_BUCKETS_SECONDS,
            registry=self.registry,
        )

    def watch(self, name: str, read: Callable[[], float]) -> None:
        """Add one of the ``GAUGES``."""
        Gauge(f"schedulerlog_index_{name}", GAUGES[name], registry=self.registry).set_function(read)
