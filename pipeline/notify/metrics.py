"""Metrics of the process of messages. docs/metrics.md has a line for each."""

from prometheus_client import CollectorRegistry, Counter, disable_created_metrics


class NotifyMetrics:
    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self.sent = Counter("schedulerlog_notify_messages", "Messages delivered.", ("target",), registry=self.registry)
        self.failures = Counter(
            "schedulerlog_notify_failures",
            "Messages that a target did not take; they are tried again unless it refused them for good.",
            ("target",),
            registry=self.registry,
        )
