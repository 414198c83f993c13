"""What the writer of events counts."""

from prometheus_client import CollectorRegistry, Counter, Gauge, disable_created_metrics


class Metrics:
    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self.messages = Counter(
            "schedulerlog_event_messages",
            "Messages by outcome: counted by an event, repeated, pod_gone, too_old, passed_over, rejected, refused.",
            ("outcome",),
            registry=self.registry,
        )
        self.requests = Counter(
            "schedulerlog_event_requests",
            "Requests to the API server, by verb and status (none: no answer).",
            ("verb", "result"),
            registry=self.registry,
        )
        self.known = Gauge(
            "schedulerlog_events_known", "Events that the process keeps count of.", registry=self.registry
        )
