"""Metrics of the trend counter, in the registry of the process that it runs in."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge

from pipeline.sinks.metrics import TopicsMetrics


class Metrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self.topics = TopicsMetrics("trends", registry)
        # The library appends `_total` to the names of counters.
        self.records = Counter(
            "schedulerlog_trends_records",
            "Attempt counts read, by outcome: counted, repeated, rejected.",
            ("outcome",),
            registry=registry,
        )
        self._attempts = Gauge(
            "schedulerlog_trends_attempts", "Attempts in memory, to count none of them twice.", registry=registry
        )

    def watch_attempts(self, read: Callable[[], float]) -> None:
        """Watch the number of attempts by ``read``, which a request for ``/metrics`` calls."""
        self._attempts.set_function(read)
