"""Metrics of the placements process, next to those of its sinks (``pipeline.sinks.metrics``) in the same registry."""

from collections.abc import Callable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

from pipeline.sinks.metrics import IndexMetrics, TopicsMetrics

GAUGES: Final = {
    "lag_seconds": "How far the audits are behind the present.",
    "pods": "Pods in memory.",
    "holding": "Placements with devices that have not ended.",
}
"""Gauges whose value is read when ``/metrics`` is requested."""


_WAITS: Final = {
    "placement": "From the creation of a pod, or its first attempt where that is not known, to its bind.",
    "start": "From the same time to the start of the pod's first container.",
}
_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_WAIT_BUCKETS: Final = (
    *(0.1, 0.5, 1, 2, 5, 10, 30),
    *(minutes * _MINUTE for minutes in (1, 2, 5, 10, 30)),
    *(hours * _HOUR for hours in (1, 3, 6, 12, 24, 72)),
)
"""Most pods wait for less than a second, and those that matter for hours."""


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
            "Read back from the index because they were not in memory, by kind: pod, node, workload, scheduler.",
            ("kind",),
            registry=self.registry,
        )
        self.findings = Counter(
            "schedulerlog_placements_findings", "Findings reported, by finding.", ("finding",), registry=self.registry
        )

        self.waits = {kind: self._add_wait(kind, description) for kind, description in _WAITS.items()}

    def _add_wait(self, kind: str, description: str) -> Histogram:
        name = f"schedulerlog_placements_time_to_{kind}_seconds"
        return Histogram(name, description, ("cluster", "namespace"), registry=self.registry, buckets=_WAIT_BUCKETS)

    def watch(self, name: str, read: Callable[[], float]) -> None:
        """Add one of the ``GAUGES``."""
        Gauge(f"schedulerlog_placements_{name}", GAUGES[name], registry=self.registry).set_function(read)
