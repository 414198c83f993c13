"""Metrics of the scheduler, by name and unit."""

from collections.abc import Callable
from typing import Final

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

from engine.fit.judge.checks import verdict_codes
from engine.fit.judge.decision import Decision
from runtime.telemetry.exposition import ReadAtScrape

# Up to 30 s, after which kube-scheduler has given up (`httpTimeout` in HAMi's chart).
_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 30.0)

GAUGES: Final = {
    "spool_bytes": "Bytes that Kafka does not have yet.",
    "spool_oldest_age_seconds": "How long the oldest record that Kafka does not have has waited.",
    "spool_is_failing": "1 while the disk can't be written (decisions wait in memory) or read (nothing is sent).",
    "registered_nodes": "Nodes whose devices are known, and can be given to pods.",
    "withheld_nodes": "Nodes whose devices are given to no pod, because pods of another scheduler hold some of them.",
    "node_locks_held": "Nodes that a pod is being bound to right now.",
    "binds_open": "Binds without a recorded end: under way, or cut off and to be recovered.",
    "cache_age_seconds": "Time since the API server last sent anything on the quietest watch; a minute is usual.",
    "is_leader": "1 while this scheduler holds the lease, or needs none.",
    "certificate_is_broken": "1 while the certificate files can't be used and the pair loaded before stays in force.",
}
"""Gauges that are read at each scrape; each exists only where its source does: API server, certificate."""

COUNTERS: Final = {
    "spool_dropped_detail_records": "Records of device detail dropped because the spool was full.",
    "spool_dropped_decision_records": "Other records lost because the spool was full.",
    "spool_damaged_places": "Places in spool files that could not be read.",
    "watch_restarts": "Times a watch of the API server ended and was started again.",
    "certificate_reloads": "Times a new certificate was loaded.",
    "klog_dropped_calls": "Filter and bind calls that --v left out because its lines are read too slowly.",
}
"""Counters that are read at each scrape, where their source exists; exported with the suffix `_total`."""

PREFIX: Final = "schedulerlog_scheduler_"


class Metrics:
    """One registry per scheduler, so that two in one process do not count together."""

    def __init__(self) -> None:
        # Else each counter and histogram has a second time series, the time at which it was made.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self._read_at_scrape = ReadAtScrape(PREFIX, GAUGES, COUNTERS)
        self.registry.register(self._read_at_scrape)
        self.filter_seconds = self._add_histogram("filter_seconds", "From the body of POST /filter to its answer.")
        self.bind_seconds = self._add_histogram("bind_seconds", "From the body of POST /bind to its answer.")
        self.webhook_seconds = self._add_histogram("webhook_seconds", "From the body of POST /webhook to its answer.")
        self.decisions = self._add_counter(
            "decisions", "Filter calls by result: placed, refused, failed, not_ours (no device requested).", "result"
        )
        self.binds = self._add_counter("binds", "Bind calls by result: bound, failed.", "result")
        self.devices_refused = self._add_counter("devices_refused", "Refused devices by reason code.", "reason")
        self.kube_api_requests = self._add_counter(
            "kube_api_requests",
            "Requests to the API server by verb and HTTP status (none: no answer).",
            "verb",
            "result",
        )
        self.node_states = self._add_counter(
            "node_states", "States of nodes' devices written: changed ones, and each again within a day."
        )
        self.unencodable = self._add_counter("unencodable_events", "Events that have no JSON or UTF-8 form.")
        self.published = self._add_counter("published_records", "Records that Kafka has acknowledged.")
        self.publish_failures = self._add_counter(
            "publish_failures", "Times a producer was given up and replaced by a new one."
        )
        self.unsendable = self._add_counter("unsendable_records", "Records that Kafka refuses for their size.")
        self.publish_lag = self._add_gauge(
            "publish_lag_seconds", "How old the latest acknowledged record was when Kafka acknowledged it."
        )
        self.nodes_with_problem = self._add_gauge(
            "nodes_with_problem",
            "Nodes by what is wrong with their registration or handshake: HandshakeTooOld, HandshakeUnreadable, "
            "RegistrationMissing, RegistrationUnusable.",
            "problem",
        )
        self.handshake_age = self._add_gauge(
            "handshake_oldest_age_seconds", "How old the oldest handshake of a node is."
        )
        self.cluster_applied = self._add_gauge(
            "cluster_file_applied_timestamp_seconds", "Modification time of the cluster file as it was last applied."
        )
        self.cluster_broken = self._add_gauge(
            "cluster_file_is_broken", "1 while the cluster file can't be read and the last good state holds."
        )

    def watch(self, name: str, read: Callable[[], float]) -> None:
        """Export a metric of `GAUGES` or `COUNTERS` from now on."""
        self._read_at_scrape.add(name, read)

    def count(self, decision: Decision, *, is_placed: bool) -> None:
        """Count one decision, and every refused device by its reason."""
        self.decisions.labels("placed" if is_placed else "refused").inc()
        # Summed by code first: a call may judge 40,000 devices, and `inc` runs in Python.
        verdicts = np.zeros(len(verdict_codes.VERDICTS), np.int64)
        for judged in decision.judgements:
            verdicts += np.bincount(judged.verdict, minlength=len(verdict_codes.VERDICTS))
        for code in np.flatnonzero(verdicts).tolist():
            if code >= verdict_codes.FIRST_REASON:
                self.devices_refused.labels(verdict_codes.VERDICTS[code]).inc(int(verdicts[code]))

    def _add_counter(self, name: str, description: str, *labels: str) -> Counter:
        return Counter(PREFIX + name, description, labels, registry=self.registry)

    def _add_gauge(self, name: str, description: str, *labels: str) -> Gauge:
        return Gauge(PREFIX + name, description, labels, registry=self.registry)

    def _add_histogram(self, name: str, description: str) -> Histogram:
        return Histogram(PREFIX + name, description, registry=self.registry, buckets=_SECONDS)
