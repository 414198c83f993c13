"""Every metric of the API. Names of pods and nodes are never labels."""

from collections.abc import Callable
from functools import cache
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram

from runtime.telemetry.exposition import ReadAtScrape, encode_metrics, with_process

PREFIX: Final = "schedulerlog_api_"
# Up to the default time-out of a request to OpenSearch.
_BUCKETS_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

# Up to an hour: decisions that waited on a scheduler's disk while Kafka was away.
_DELAY_BUCKETS_SECONDS: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0)

GAUGES: Final = {
    "cached_pods": "Pods in memory.",
    "cache_bytes": "Size of the attempts in memory, as JSON.",
    "topic_lag_records": "Records on the attempts topic that the API has not read yet.",
    "topic_following": "1 while memory is as current as the attempts topic.",
    "watches": "Open watches.",
    "watchable_changes": "Changes of attempts in memory that a watch may still read.",
    "watchable_bytes": "Size of the attempts of watchable changes, as JSON.",
    "certificates_current": "1 while the API uses certificate, key and authorities as their sources have them now.",
}
"""Gauges that each scrape reads."""

COUNTERS: Final = {
    "cache_evicted_pods": "Pods evicted to keep the bounds of memory.",
    "watches_cut_off": "Watches ended because their clients took nothing for 10 s.",
    "opensearch_refused_requests": "Requests not sent to OpenSearch because it did not answer the last ones in time.",
    "watch_objects": "Objects made for watches; all watches of a change share one.",
    "topic_records": "Records read from the attempts topic.",
    "topic_rejected_records": "Records on the attempts topic that are not attempts.",
}
"""Counters that each scrape reads; exported with the suffix `_total`."""


class Metrics:
    """Metrics of one application in their own registry, so that two applications in one process count apart."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._exported = with_process(self.registry)
        requests = Counter(PREFIX + "requests", "Requests answered.", ["route", "status"], registry=self.registry)
        seconds = Histogram(
            PREFIX + "request_seconds",
            "Time from a request to the end of its answer.",
            ["route"],
            buckets=_BUCKETS_SECONDS,
            registry=self.registry,
        )
        # Routes and statuses are few: finding a series again takes longer than counting.
        self._count, self._observe_request = cache(requests.labels), cache(seconds.labels)
        lookups = Counter(
            PREFIX + "lookups", "Pods looked up in memory: hit or miss.", ["outcome"], registry=self.registry
        )
        # A ratio of hits needs both series from the start.
        self.hits, self.misses = lookups.labels("hit"), lookups.labels("miss")
        self.index_seconds = Histogram(
            PREFIX + "opensearch_seconds",
            "Requests to OpenSearch.",
            ["request", "outcome"],
            buckets=_BUCKETS_SECONDS,
            registry=self.registry,
        )
        self.delays = Histogram(
            PREFIX + "decision_delay_seconds",
            "Time from the latest event of an attempt until the attempt is in memory, by who reported it.",
            ["source"],
            buckets=_DELAY_BUCKETS_SECONDS,
            registry=self.registry,
        )
        self._read_at_scrape = ReadAtScrape(PREFIX, GAUGES, COUNTERS)
        self.registry.register(self._read_at_scrape)

    def watch(self, name: str, read: Callable[[], float]) -> None:
        """Export ``read()`` as ``name``, one of ``GAUGES`` and ``COUNTERS``, at each scrape."""
        self._read_at_scrape.add(name, read)

    def count(self, route: str, status: int) -> None:
        """Count one request."""
        self._count(route, str(status)).inc()

    def observe_request(self, route: str, seconds: float) -> None:
        """Record the duration of one answer."""
        self._observe_request(route).observe(seconds)

    def observe_index(self, request: str, outcome: str, seconds: float) -> None:
        """Count one request to OpenSearch; a ``RequestObserver`` of ``api.index.reading.client``."""
        self.index_seconds.labels(request, outcome).observe(seconds)

    def observe_delay(self, source: str, seconds: float) -> None:
        """Record the delay of one attempt read from the topic."""
        self.delays.labels(source).observe(seconds)

    def encode(self, accept: str) -> tuple[str, bytes]:
        """Encode all metrics with those of the process; return content type and body in the accepted format."""
        return encode_metrics(self._exported, accept)
