"""Every metric of the API, in one list. Names of pods and nodes are never labels."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
_BUCKETS_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """The application gives each gauge the function that reads its value (``set_function``)."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "schedulerlog_api_requests", "Requests answered.", ["route", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "schedulerlog_api_request_seconds",
            "From the request to the end of its answer.",
            ["route"],
            buckets=_BUCKETS_SECONDS,
            registry=self.registry,
        )
        self.lookups = Counter(
            "schedulerlog_api_lookups",
            "Pods looked up in memory: hit or miss.",
            ["outcome"],
            registry=self.registry,
        )
        # A ratio of hits needs both series from the start.
        for outcome in ("hit", "miss"):
            self.lookups.labels(outcome)
        self.index_seconds = Histogram(
            "schedulerlog_api_opensearch_seconds",
            "Requests to OpenSearch.",
            ["request", "outcome"],
            buckets=_BUCKETS_SECONDS,
            registry=self.registry,
        )
        self.cache_pods = self._gauge("schedulerlog_api_cache_pods", "Pods in memory.")
        self.cache_bytes = self._gauge("schedulerlog_api_cache_bytes", "Size of their attempts as JSON.")
        self.cache_evicted = self._gauge("schedulerlog_api_cache_evicted", "Pods evicted to keep the bounds of memory.")
        self.topic_lag = self._gauge(
            "schedulerlog_api_topic_lag_records", "Records on the attempts topic that are not read yet."
        )
        self.topic_following = self._gauge(
            "schedulerlog_api_topic_following", "1 while memory is as current as the attempts topic."
        )
        self.topic_records = self._gauge("schedulerlog_api_topic_records", "Records read from the attempts topic.")
        self.topic_rejected = self._gauge("schedulerlog_api_topic_rejected", "Of these, records that are not attempts.")

    def _gauge(self, name: str, description: str) -> Gauge:
        return Gauge(name, description, registry=self.registry)

    def observe_index(self, request: str, outcome: str, seconds: float) -> None:
        """Count one request to OpenSearch; a ``RequestObserver`` of ``api.index.client``."""
        self.index_seconds.labels(request, outcome).observe(seconds)

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self.registry)
