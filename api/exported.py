"""What the metrics read at each scrape."""

import time

from api.handlers.watching import WatchHandlers
from api.index.reading.client import OpenSearch
from api.memory.attempts_consumer import TopicState
from api.memory.latest_attempts import LatestAttempts
from api.metrics import Metrics


def export(
    metrics: Metrics, latest: LatestAttempts, topic: TopicState, watching: WatchHandlers, index: OpenSearch
) -> None:
    """Let ``metrics`` read what memory, consumer, watches and index count."""
    pods = latest.pods
    metrics.watch("cached_pods", lambda: len(pods))
    metrics.watch("cache_bytes", lambda: pods.size_bytes)
    metrics.watch("cache_evicted_pods", lambda: pods.evicted)
    metrics.watch("topic_lag_records", lambda: topic.lag_records)
    metrics.watch("topic_following", lambda: float(topic.is_following(time.monotonic())))
    metrics.watch("topic_records", lambda: topic.records)
    metrics.watch("topic_rejected_records", lambda: topic.rejected)
    metrics.watch("watches", lambda: len(watching.streams))
    metrics.watch("watchable_changes", lambda: len(watching.log))
    metrics.watch("watchable_bytes", lambda: watching.log.size_bytes)
    metrics.watch("watches_cut_off", lambda: watching.streams.cut_off)
    metrics.watch("opensearch_refused_requests", lambda: index.refused)
    metrics.watch("watch_objects", lambda: watching.shown.made)
