"""What the process counts, beside what its sinks count (``pipeline.sinks.metrics``) in the same registry."""

from collections.abc import Callable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, disable_created_metrics

from pipeline.sinks.metrics import IndexMetrics, TopicsMetrics

GAUGES: Final = {
    "lag_seconds": "How far the audits are behind the present.",
    "pods": "Pods in memory.",
    "holding": "Placements with devices that have not ended.",
}
"""Gauges whose value is read when ``/metrics`` is requested."""


class Metrics:
    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self.index = IndexMetrics("placements", self.registry)
        self.topics = TopicsMetrics("placements", self.registry)
        # The library appends `_total` to the names of counters.
        self.records = Counter(
            "schedulerlog_placements_records",
            "Records read, by topic and outcome: taken, passed_over, rejected.",
            ("topic", "outcome"),
            registry=self.registry,
        )
        self.loaded = Counter(
            "schedulerlog_placements_loaded",
            "Pods and nodes read back from the index because they were not in memory, by kind: pod, node.",
            ("kind",),
            registry=self.registry,
        )
        self.findings = Counter(
            "schedulerlog_placements_findings", "Findings reported, by finding.", ("finding",), registry=self.registry
        )

    def watch(self, name: str, read: Callable[[], float]) -> None:
        """Add one of the ``GAUGES``."""
        Gauge(f"schedulerlog_placements_{name}", GAUGES[name], registry=self.registry).set_function(read)
