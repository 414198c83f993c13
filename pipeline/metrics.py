"""Metrics of the pipeline: those of sinks, under the name of their process, and those of each process.

docs/metrics.md has a line for each; the library appends ``_total`` to the names of counters.
"""

from collections.abc import Callable
from functools import cache
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

from runtime.kafka.broker_clock import BrokerClock

# Doubled each time, up to `TIMEOUT_SECONDS` of the client.
_SECONDS: Final = (0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 30.0)


class _ProcessMetrics:
    """The registry of a process."""

    def __init__(self) -> None:
        # Each counter and histogram would have a second series with the time it was created, which no query of ours
        # uses.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()


class IndexMetrics:
    """The metrics of ``OpenSearchSink``."""

    def __init__(self, process: str, registry: CollectorRegistry) -> None:
        documents = Counter(
            f"schedulerlog_{process}_documents",
            "Documents by what OpenSearch answered: done, conflict, split, refused, retry.",
            ("outcome",),
            registry=registry,
        )
        self.documents: Callable[..., Counter] = documents.labels
        self.retries = Counter(
            f"schedulerlog_{process}_bulk_retries",
            "Bulk requests of which some documents had to be sent again.",
            registry=registry,
        )
        self.bulk_seconds = Histogram(
            f"schedulerlog_{process}_bulk_seconds",
            "From a bulk request to its answer.",
            registry=registry,
            buckets=_SECONDS,
        )
        self.lost_indices = Counter(
            f"schedulerlog_{process}_lost_indices",
            "Indices that were deleted or restored while this process ran, other than by retention.",
            registry=registry,
        )


class TopicsMetrics:
    """The metrics of ``TopicsSink``."""

    def __init__(self, process: str, registry: CollectorRegistry) -> None:
        self.publish_retries = Counter(
            f"schedulerlog_{process}_publish_retries",
            "Times that records had to be sent to Kafka again.",
            registry=registry,
        )
        self.oversize = Counter(
            f"schedulerlog_{process}_oversize_records",
            "Records that are too large for their topic, and became dead letters.",
            registry=registry,
        )
        self._process, self._registry = process, registry

    def watch_clock(self, clock: BrokerClock) -> None:
        """Show the difference of the clocks that ``clock`` measures."""
        Gauge(
            f"schedulerlog_{self._process}_clock_ahead_seconds",
            "Time that this machine's clock is ahead of Kafka's; below 0 behind it. Beyond a minute the process waits.",
            registry=self._registry,
        ).set_function(lambda: clock.ahead_seconds)


class TrendsMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self.topics = TopicsMetrics("trends", registry)
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


WORKER_GAUGES: Final = {
    "open_attempts": "Attempts of which records are missing.",
    "unacknowledged_records": "Records read and not acknowledged.",
    "queued_bytes": "Memory of what waits to be published, approximately.",
    "cached_summaries": "Whole summaries in memory, for what the next record or attempt changes.",
    "pod_histories": "Pods whose latest attempts the worker knows; one that was tried again lately may count twice.",
    "lag_records": "Records in this worker's partitions that are not committed.",
    "group_lag_records": "Records in all partitions of decisions that are not committed, also in partitions that no "
    "worker reads. Every worker shows this number.",
    "is_waiting": "1 while the broker does not answer.",
    "waiting_seconds": "How long the broker has not answered; 0 while it does. `/readyz` and the log name the cause.",
}
"""Gauges whose value is read when ``/metrics`` is requested."""


class WorkerMetrics(_ProcessMetrics):
    """One registry per worker, so that two in one process do not count together."""

    def __init__(self) -> None:
        super().__init__()
        self.topics = TopicsMetrics("worker", self.registry)
        self.records = self._add_counter(
            "records", "Records read, by event type and outcome: folded, passed_over, repeated, rejected.",
            "type", "outcome",
        )  # fmt: skip
        self.attempts = self._add_counter(
            "attempts_published", "Summaries and repetitions published.", "status", "complete"
        )
        self.messages = self._add_counter("messages_published", "Event messages published, by reason.", "reason")
        self.dead_letters = Counter(
            "schedulerlog_worker_dead_letters", "Records that could not be processed.", registry=self.registry
        )
        self.batch_attempts = Histogram(
            "schedulerlog_worker_batch_attempts", "Attempts in one batch.", registry=self.registry,
            buckets=(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000),
        )  # fmt: skip

    def watch(self, name: str, read: Callable[[], float]) -> None:
        """Add one of the ``WORKER_GAUGES``."""
        Gauge(f"schedulerlog_worker_{name}", WORKER_GAUGES[name], registry=self.registry).set_function(read)

    def _add_counter(self, name: str, description: str, *labels: str) -> Callable[..., Counter]:
        """Add a counter; return a function from values of the ``labels``, of which there are few, to their child."""
        counter = Counter(f"schedulerlog_worker_{name}", description, labels, registry=self.registry)
        # The library checks and sorts the values of the labels for each record.
        return cache(counter.labels)


INDEX_GAUGES: Final = {
    "is_waiting": "1 while OpenSearch does not answer.",
    "waiting_seconds": "How long OpenSearch has not answered; 0 while it does. `/readyz` and the log name the cause.",
    "behind_seconds": "Age of the oldest record that was read and is not written.",
    "incomplete_summaries": "Summaries of which records are missing.",
}
"""Gauges whose value is read when ``/metrics`` is requested."""
# Up to an hour: records that waited while OpenSearch was away.
_DELAY_BUCKETS_SECONDS: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0)


class IndexWriterMetrics(_ProcessMetrics):
    def __init__(self) -> None:
        super().__init__()
        self.index = IndexMetrics("index", self.registry)
        self.topics = TopicsMetrics("index", self.registry)
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

        self.delays = Histogram(
            "schedulerlog_index_attempt_delay_seconds",
            "From Kafka's time of an attempt to OpenSearch having it; a search finds it within a second after that.",
            buckets=_DELAY_BUCKETS_SECONDS,
            registry=self.registry,
        )

    def watch(self, name: str, read: Callable[[], float]) -> None:
        """Add one of the ``INDEX_GAUGES``."""
        Gauge(f"schedulerlog_index_{name}", INDEX_GAUGES[name], registry=self.registry).set_function(read)


PLACEMENTS_GAUGES: Final = {
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


class PlacementsMetrics(_ProcessMetrics):
    def __init__(self) -> None:
        super().__init__()
        self.index = IndexMetrics("placements", self.registry)
        self.topics = TopicsMetrics("placements", self.registry)
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
        """Add one of the ``PLACEMENTS_GAUGES``."""
        Gauge(f"schedulerlog_placements_{name}", PLACEMENTS_GAUGES[name], registry=self.registry).set_function(read)


class AlertsMetrics(_ProcessMetrics):
    def __init__(self) -> None:
        super().__init__()
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


class BridgeMetrics(_ProcessMetrics):
    def __init__(self) -> None:
        super().__init__()
        self.alerts = Counter(
            "schedulerlog_alertmanager_alerts", "Alerts posted, repetitions included.", registry=self.registry
        )
        self.failures = Counter(
            "schedulerlog_alertmanager_failures",
            "Posts that Alertmanager did not answer or failed to handle; they are repeated.",
            registry=self.registry,
        )


class EventsMetrics(_ProcessMetrics):
    def __init__(self) -> None:
        super().__init__()
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


class NotifyMetrics(_ProcessMetrics):
    def __init__(self) -> None:
        super().__init__()
        self.sent = Counter("schedulerlog_notify_messages", "Messages delivered.", ("target",), registry=self.registry)
        self.failures = Counter(
            "schedulerlog_notify_failures",
            "Messages that a target did not take; they are tried again unless it refused them for good.",
            ("target",),
            registry=self.registry,
        )
