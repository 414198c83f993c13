"""Metrics of the sinks of a process, under the name of that process."""

from collections.abc import Callable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from runtime.kafka.broker_clock import BrokerClock

# Doubled each time, up to `TIMEOUT_SECONDS` of the client.
_SECONDS: Final = (0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 30.0)


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
