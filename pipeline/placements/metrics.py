"""What the process counts, beside what its sinks count (``pipeline.metrics``) in the same registry."""

from collections.abc import Callable

from prometheus_client import Counter, Gauge

from pipeline.metrics import Metrics as SinkMetrics


class Metrics:
    def __init__(self) -> None:
        self.sinks = SinkMetrics()
        self.registry = self.sinks.registry
        self.records = Counter(
            "schedulerlog_placements_records",
            "Records read, by topic and outcome: taken, passed_over, rejected.",
            ("topic", "outcome"),
            registry=self.registry,
        )
        self.loaded = Counter(
            "schedulerlog_placements_loaded",
            "Pods and nodes that the index was asked for, because they were not in memory.",
            ("what",),
            registry=self.registry,
        )
        self.findings = Counter(
            "schedulerlog_placements_findings", "Findings told, by finding.", ("finding",), registry=self.registry
        )

    def watch(self, name: str, about: str, read: Callable[[], float]) -> None:
        """A gauge that is read when it is asked for."""
        Gauge(f"schedulerlog_placements_{name}", about, registry=self.registry).set_function(read)
