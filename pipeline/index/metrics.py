"""What the process counts, beside what its sinks count (``pipeline.sinks.metrics``) in the same registry."""

from collections.abc import Callable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, disable_created_metrics

from pipeline.sinks.metrics import IndexMetrics, TopicsMetrics

GAUGES: Final = {
    "is_waiting": "1 while OpenSearch does not answer.",
    "behind_seconds": "Age of the oldest record that was read and is not written.",
    "incomplete_summaries": "Summaries of which records are missing.",
}
"""Gauges whose value is read when ``/metrics`` is requested."""


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

    def watch(self, name: str, read: Callable[[], float]) -> None:
        """Add one of the ``GAUGES``."""
        Gauge(f"schedulerlog_index_{name}", GAUGES[name], registry=self.registry).set_function(read)
