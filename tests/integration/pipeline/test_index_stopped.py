"""OpenSearch stands still (SIGSTOP): attempts are answered, announced, counted and alerted on, and indexed later."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from dev import embedded
from schemas.codec.records import decode
from schemas.events import (
    AlertChanged,
    AttemptConcluded,
    AttemptEvent,
    AttemptRepeated,
    AttemptSummarized,
    DevicesJudged,
    MessagesEmitted,
    TrendsCounted,
)
from schemas.topics import ALERTS, ATTEMPTS, DEVICE_VERDICTS, MESSAGES, TRENDS
from tests.support.builders.attempts import an_attempt, build_common
from tests.support.harness.api_process import Served, serving
from tests.support.harness.pipeline_process import Pipeline, pipeline
from tests.support.waiting import eventually, until

NAMESPACE = "stopped"
REFUSING = {"node1": [["CardInsufficientMemory"] * 2], "node2": [["NumaNotFit"] * 2]}
FITTING = {"node1": [["picked", "fits"]], "node2": [["CardCordoned"] * 2]}
PENDING_MINUTES = (40, 35, 30, 25, 10, 1)
"""Longer than the rule waits for."""


def build_try(pod: str, minutes_ago: float, devices: Any, chosen: str | None = None) -> list[AttemptEvent]:
    started = datetime.now(UTC) - timedelta(minutes=minutes_ago)
    common = build_common(pod, NAMESPACE) | {"attempt_id": f"{pod}-{minutes_ago}", "started_at": started}
    # Alerts go by the time at which an attempt ended.
    ended = {"ended_at": started + timedelta(milliseconds=13)}
    events = an_attempt(devices, chosen=chosen, **common)
    return [event.model_copy(update=ended) if isinstance(event, AttemptConcluded) else event for event in events]


def build_attempts() -> dict[str, list[AttemptEvent]]:
    """Build attempts by id: a pod that is refused for long, and others."""
    attempts = [build_try("pending", minutes, REFUSING) for minutes in PENDING_MINUTES]
    attempts += [build_try(f"refused-{number}", 1, REFUSING) for number in range(12)]
    attempts += [build_try(f"placed-{number}", 1, FITTING, "node1") for number in range(12)]
    return {events[0].attempt_id: events for events in attempts}


@pytest.fixture
def running(servers: embedded.Backends, tmp_path: Path) -> Iterator[Pipeline]:
    with pipeline(tmp_path, servers) as running:
        running.start_all()
        running.processes.start("alerts", "pipeline", "alerts")
        yield running


@pytest.fixture
def api(running: Pipeline) -> Iterator[Served]:
    addresses = running.servers.bootstrap_servers, running.servers.opensearch_url
    with serving(*addresses, SCHEDULERLOG_OPENSEARCH_TIMEOUT="3") as api:
        assert until(api.is_ready)
        yield api


def read_events(running: Pipeline, topic: str) -> list[Any]:
    return [decode(record.value, record.headers) for record in running.read_topic(topic)]


def list_announced(running: Pipeline) -> set[str]:
    return {event.attempt_id for event in read_events(running, MESSAGES.name) if isinstance(event, MessagesEmitted)}


def count_results(running: Pipeline) -> Counter[str]:
    """Count attempts by result, on the topic of trends."""
    latest: dict[tuple[Any, ...], TrendsCounted] = {}
    for event in read_events(running, TRENDS.name):
        if isinstance(event, TrendsCounted):
            latest[event.started_at, event.partition, event.recorded_at, event.part] = event
    counts: Counter[str] = Counter()
    for trend in latest.values():
        rows = zip(trend.namespace, trend.dimension, trend.result, trend.attempts.tolist(), strict=True)
        for namespace, dimension, result, count in rows:
            if (namespace, dimension) == (NAMESPACE, "all"):
                counts[result] += count
    return counts


def is_firing(running: Pipeline) -> bool:
    alerts = (event for event in read_events(running, ALERTS.name) if isinstance(event, AlertChanged))
    return any(alert.state == "firing" and alert.labels.get("pod") == "pending" for alert in alerts)


def search_hits(running: Pipeline, alias: str) -> list[dict[str, Any]]:
    """Search every document about the namespace, in whatever index it is."""
    url = f"{running.servers.opensearch_url}/{alias}"
    httpx.post(f"{url}/_refresh", params={"allow_no_indices": "true"}, timeout=30)
    body = {"size": 10_000, "query": {"term": {"namespace": NAMESPACE}}}
    hits: list[dict[str, Any]] = httpx.post(f"{url}/_search", json=body, timeout=30).json()["hits"]["hits"]
    return hits


def test_attempts_are_answered_announced_counted_and_alerted_on_and_indexed_later(
    running: Pipeline, api: Served
) -> None:
    sent = build_attempts()
    expected = Counter({"failed": len(PENDING_MINUTES) + 12, "pending": 12})
    running.servers.opensearch.pause()
    try:
        running.send([event for attempt in sent.values() for event in attempt])
        for pod, status in (("pending", "failed"), ("refused-7", "failed"), ("placed-7", "pending")):
            answer = until(partial(api.get_schedulerlog, f"{NAMESPACE}/{pod}"), lambda current: current.is_success)
            assert answer.json().get("status") == status, answer.text
        assert until(lambda: list_announced(running), lambda current: current >= sent.keys()) >= sent.keys()
        assert until(lambda: count_results(running), lambda current: current == expected) == expected
        eventually(lambda: is_firing(running), "no alert about the pod that is refused for long")
    finally:
        running.servers.opensearch.resume()
    running.settle()
    assert_indexed_once(running, sent)
    rows = until(lambda: count_indexed(running), lambda current: current == expected)
    assert rows == expected
    running.processes.check()


def count_indexed(running: Pipeline) -> Counter[str]:
    counts: Counter[str] = Counter()
    for hit in search_hits(running, "schedulerlog-trends"):
        if hit["_source"]["dimension"] == "all":
            counts[hit["_source"]["result"]] += hit["_source"]["attempts"]
    return counts


def assert_indexed_once(running: Pipeline, sent: dict[str, list[AttemptEvent]]) -> None:
    documents = search_hits(running, "schedulerlog-attempts")
    assert Counter(hit["_id"] for hit in documents) == Counter(sent.keys())
    published = [event for event in read_events(running, ATTEMPTS.name) if event.pod.namespace == NAMESPACE]
    summarized_ids = {event.attempt_id for event in published if isinstance(event, AttemptSummarized)}
    assert {
        event.attempt_id for event in published if isinstance(event, AttemptRepeated)
    } == sent.keys() - summarized_ids
    verdicts = {event.id for id_ in summarized_ids for event in sent[id_] if isinstance(event, DevicesJudged)}
    forwarded = {event.id for event in read_events(running, DEVICE_VERDICTS.name) if event.pod.namespace == NAMESPACE}
    assert forwarded == verdicts
    assert Counter(hit["_id"] for hit in search_hits(running, "schedulerlog-devices")) == Counter(verdicts)
