"""Metrics of the process of alerts and of the bridge to Alertmanager. docs/metrics.md has a line for each."""

from prometheus_client import CollectorRegistry, Counter, Gauge, disable_created_metrics


class Metrics:
    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        # The library appends `_total` to the names of counters.
        self.records = Counter(
            "schedulerlog_alerts_records", "Records read, by topic.", ("topic",), registry=self.registry
        )
        self.published = Counter(
            "schedulerlog_alerts_published",
            "Alerts published, by rule and state, daily repetitions included.",
            ("rule", "state"),
            registry=self.registry,
        )
        self.firing = Gauge(
            "schedulerlog_alerts_firing", "Alerts that fire, by severity.", ("severity",), registry=self.registry
        )
        self.clock_lag = Gauge(
            "schedulerlog_alerts_clock_lag_seconds",
            "Delay of the latest tick behind the present; rules are evaluated that much later.",
            registry=self.registry,
        )


class BridgeMetrics:
    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self.alerts = Counter(
            "schedulerlog_alertmanager_alerts", "Alerts posted, repetitions included.", registry=self.registry
        )
        self.failures = Counter(
            "schedulerlog_alertmanager_failures",
            "Posts that Alertmanager did not answer or failed to handle; they are repeated.",
            registry=self.registry,
        )
