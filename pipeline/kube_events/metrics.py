"""Metrics of the process of events. docs/metrics.md has a line for each."""

from prometheus_client import CollectorRegistry, Counter, Gauge, disable_created_metrics


class Metrics:
    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        # The library appends `_total` to the names of counters.
        self.messages = Counter(
            "schedulerlog_events_messages",
            "Messages by outcome: counted (by an event), repeated, pod_gone, too_old, passed_over, rejected, refused.",
            ("outcome",),
            registry=self.registry,
        )
        self.requests = Counter(
            "schedulerlog_events_api_requests",
            "Requests to the API server, by verb and HTTP status (none: no answer).",
            ("verb", "result"),
            registry=self.registry,
        )
        self.known_events = Gauge(
            "schedulerlog_events_known", "Events of Kubernetes that the process has in memory.", registry=self.registry
        )
