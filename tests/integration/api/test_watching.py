"""Watches on a real topic: what is published afterwards, what comes after an interruption, and when they end."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import httpx
import orjson
import pytest

from schemas.events import AttemptSummarized
from tests.support.harness.api_process import Served, serving
from tests.support.harness.index_filling import NOW, Filling, an_attempt
from tests.support.waiting import eventually

Events = Iterator[dict[str, Any]]
LISTS = "/api/v1/schedulerlogs?watch=true&sendInitialEvents=false&timeoutSeconds=30"


@pytest.fixture(scope="module")
def replica(filling: Filling) -> Iterator[Served]:
    """Another one, which keeps few changes."""
    with serving(filling.bootstrap_servers, filling.url, SCHEDULERLOG_API_CACHED_PODS="4") as api:
        eventually(api.is_ready, "the other replica is not ready")
        yield api


@contextmanager
def watching(api: Served, path: str, **headers: str) -> Iterator[Events]:
    with api.client.stream("GET", path, headers=headers) as answer:
        assert answer.status_code == httpx.codes.OK, answer.read()
        yield (orjson.loads(line.removeprefix("data: ")) for line in answer.iter_lines() if line.endswith("}"))


def build_attempts(pod: str, count: int) -> list[AttemptSummarized]:
    return [an_attempt(pod, started_at=NOW + timedelta(minutes=number)) for number in range(count)]


def get_version(event: dict[str, Any]) -> str:
    version: str = event["object"]["metadata"]["resourceVersion"]
    return version


def test_a_watch_shows_an_attempt_that_is_published_after_it(filling: Filling, api: Served) -> None:
    first, second = build_attempts("watch-a/pod", 2)
    filling.publish(first)
    eventually(lambda: api.get_schedulerlog("watch-a/pod").status_code == 200, "the attempt is not on the topic")
    with watching(api, "/api/v1/namespaces/watch-a/pods/pod/schedulerlog?watch=true&timeoutSeconds=30") as events:
        assert next(events)["type"] == "ADDED"
        filling.publish(an_attempt("watch-a/other"), second)
        event = next(events)
    assert event["type"] == "MODIFIED"
    answer = api.get_schedulerlog("watch-a/pod").json()
    assert {name: event["object"][name] for name in answer} == answer


def test_another_replica_continues_behind_the_last_event(filling: Filling, api: Served, replica: Served) -> None:
    path, attempts = LISTS + "&namespace=watch-b", build_attempts("watch-b/pod", 6)
    with watching(api, path) as events:
        filling.publish(*attempts[:2])
        received = [next(events), next(events)]
    filling.publish(*attempts[2:4])
    with watching(replica, f"{path}&resourceVersion={get_version(received[-1])}") as events:
        received += [next(events), next(events)]
    filling.publish(*attempts[4:])
    with watching(api, path, **{"Accept": "text/event-stream", "Last-Event-ID": get_version(received[-1])}) as events:
        received += [next(events), next(events)]
    assert [event["object"]["attempt_id"] for event in received] == [attempt.attempt_id for attempt in attempts]


def test_a_place_that_is_too_old_is_gone(filling: Filling, replica: Served) -> None:
    path = LISTS + "&namespace=watch-c"
    with watching(replica, path) as events:
        filling.publish(*build_attempts("watch-c/pod", 1))
        old = get_version(next(events))
        filling.publish(*build_attempts("watch-d/pod", 40))
        filling.publish(*build_attempts("watch-c/last", 1))
        assert next(events)["object"]["name"] == "last"
    answer = replica.client.get(f"{path}&resourceVersion={old}")
    assert (answer.status_code, answer.json()["code"]) == (410, "Expired")


def test_the_process_ends_at_once_while_somebody_watches(filling: Filling) -> None:
    with serving(filling.bootstrap_servers, filling.url) as api:
        eventually(api.is_ready, "the API is not ready")
        with watching(api, LISTS + "&namespace=watch-e") as events:
            filling.publish(*build_attempts("watch-e/pod", 1))
            next(events)
            began = time.monotonic()
            assert api.process
            api.process.send_signal(signal.SIGTERM)
            # A stream that is cut off when the time to end is over raises instead. By itself the watch ends after 30 s.
            assert list(events) == []
            assert time.monotonic() - began < 20
