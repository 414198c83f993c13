"""What the process counts, beside what its sinks count (``pipeline.sinks.metrics``) in the same registry."""

from prometheus_client import CollectorRegistry, Counter, disable_created_metrics

from pipeline.sinks.metrics import IndexMetrics, TopicsMetrics


class Metrics:
    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self.index = IndexMetrics("node_states", self.registry)
        self.topics = TopicsMetrics("node_states", self.registry)
        # The library appends `_total` to the names of counters.
        self.records = Counter(
            "schedulerlog_node_states_records",
            "Records read, by outcome: taken, passed_over, rejected; of those taken: contradicting, refused.",
            ("outcome",),
            registry=self.registry,
        )
