"""Every metric of the API, in one list. Names of pods and nodes are never labels."""

import time
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from api.memory.attempts_consumer import TopicState
from api.memory.latest_attempts import LatestAttempts

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "schedulerlog_api_requests", "Requests answered.", ["route", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "schedulerlog_api_request_seconds",
            "From request to answer.",
            ["route"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.lookups = Counter(
            "schedulerlog_api_lookups",
            "Pods looked up: hit in memory, or miss.",
            ["outcome"],
            registry=self.registry,
        )
        self.index_seconds = Histogram(
            "schedulerlog_api_opensearch_seconds",
            "Requests to OpenSearch.",
            ["request", "outcome"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        for outcome in ("hit", "miss"):
            self.lookups.labels(outcome)

    def watch(self, latest: LatestAttempts, topic: TopicState) -> None:
        """Gauges that are read off when somebody asks."""
        pods = latest.pods
        self._gauge("schedulerlog_api_cache_pods", "Pods answered from memory.").set_function(lambda: len(pods))
        self._gauge("schedulerlog_api_cache_bytes", "What their attempts take, as JSON.").set_function(
            lambda: pods.size_bytes
        )
        self._gauge("schedulerlog_api_cache_evicted", "Pods that left for want of room.").set_function(
            lambda: pods.evicted
        )
        self._gauge("schedulerlog_api_topic_lag_records", "Records on the attempts topic still to read.").set_function(
            lambda: topic.lag
        )
        self._gauge("schedulerlog_api_topic_following", "1 while memory is as fresh as the topic.").set_function(
            lambda: float(topic.is_following(time.monotonic()))
        )
        self._gauge("schedulerlog_api_topic_records", "Records read from the attempts topic.").set_function(
            lambda: topic.records
        )
        self._gauge("schedulerlog_api_topic_rejected", "Of them, those that say no attempt.").set_function(
            lambda: topic.rejected
        )

    def _gauge(self, name: str, about: str) -> Gauge:
        return Gauge(name, about, registry=self.registry)

    def observe_index(self, request: str, outcome: str, seconds: float) -> None:
        self.index_seconds.labels(request, outcome).observe(seconds)

    def text(self) -> bytes:
        return generate_latest(self.registry)
