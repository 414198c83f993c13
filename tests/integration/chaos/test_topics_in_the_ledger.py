"""The comparison of topics and index must find what is wrong, or the runs that use it would prove nothing."""

import json
from dataclasses import replace
from typing import Any

from schemas.json_types import Json
from tests.chaos.published import Topics, compare_topics

POD = {"namespace": "n", "name": "p", "uid": "u"}
KEY = "default/n/p/s"


def a_record(value: Json, id_: str) -> tuple[str, bytes]:
    return id_, json.dumps(value).encode()


def an_attempt(attempt: str, second: int, version: int = 1, **fields: Any) -> Json:
    began = f"2026-11-22T10:00:{second:02}Z"
    return {
        "cluster": "default",
        "attempt_id": attempt,
        "pod": POD,
        "scheduler": "s",
        "started_at": began,
        "version": version,
    } | fields


def a_count(attempt: str, version: int = 1) -> tuple[str, bytes]:
    value = {"attempt_id": attempt, "adds": {"version": version}}
    return a_record(value, f"{attempt}/counted/{version}")


FIRST = an_attempt("a", 1, status="failed")
AGAIN = an_attempt("b", 2, status="failed", repeats="a")
JUDGED = {"a/devices/0": b'{"attempt_id": "a", "part": 0}', "b/devices/0": b'{"attempt_id": "b", "part": 0}'}
MESSAGE = {"attempt_id": "a", "reason": "FilteringFailed", "code": ""}
RIGHT = Topics(
    attempts=[a_record(FIRST, "a/summary/1/0"), a_record(AGAIN, "b/repeated/1")],
    messages=[a_record(MESSAGE, "a/message")],
    device_verdicts=[("a/devices/0", JUDGED["a/devices/0"])],
    attempt_counts=[a_count("a"), a_count("b")],
    histories={KEY: json.dumps({"attempts": [{"attempt_id": "b", "version": 1}]}).encode()},
    trends={"failed": 2},
)
DOCUMENTS = [("a", {"summary": FIRST}), ("b", {"repeated": AGAIN})]


def list_differences(topics: Topics = RIGHT, documents: Any = DOCUMENTS, trends: Any = None) -> list[str]:
    return list(compare_topics(topics, documents, {"failed": 2} if trends is None else trends, JUDGED))


def test_topics_that_agree_with_each_other_and_the_index_are_right_however_often_they_repeat() -> None:
    assert list_differences() == []
    twice = replace(
        RIGHT,
        attempts=[*RIGHT.attempts, *RIGHT.attempts],
        device_verdicts=[*RIGHT.device_verdicts, *RIGHT.device_verdicts],
        attempt_counts=[*RIGHT.attempt_counts, *RIGHT.attempt_counts],
    )
    assert list_differences(twice) == []


def test_a_record_under_two_ids_is_found() -> None:
    attempts = [*RIGHT.attempts, a_record(FIRST, "other")]
    assert list_differences(replace(RIGHT, attempts=attempts)) == ["summary a has 2 ids"]
    messages = [*RIGHT.messages, a_record(MESSAGE, "other")]
    assert list_differences(replace(RIGHT, messages=messages)) == ["message a has 2 ids"]
    counts = [*RIGHT.attempt_counts, ("other", a_count("a")[1])]
    assert list_differences(replace(RIGHT, attempt_counts=counts)) == ["count a has 2 ids"]


def test_an_id_with_two_contents_is_found() -> None:
    attempts = [a_record(FIRST | {"status": "pending"}, "a/summary/1/0"), *RIGHT.attempts]
    assert list_differences(replace(RIGHT, attempts=attempts)) == ["summary a/summary/1/0 has 2 contents"]


def test_a_document_that_is_not_the_latest_on_the_topic_is_found() -> None:
    stale = [("a", {"summary": FIRST | {"status": "pending"}}), DOCUMENTS[1]]
    assert list_differences(documents=stale) == ["document of attempt a: not the latest on the topic"]


def test_device_verdicts_that_are_lost_invented_or_changed_are_found() -> None:
    assert list_differences(replace(RIGHT, device_verdicts=[])) == ["device verdicts a/devices/0: not forwarded"]
    invented = [*RIGHT.device_verdicts, ("c/devices/0", b'{"attempt_id": "c", "part": 0}')]
    assert list_differences(replace(RIGHT, device_verdicts=invented)) == [
        "device verdicts c/devices/0: forwarded and never published"
    ]
    changed = [("a/devices/0", b'{"attempt_id": "a", "part":  0}')]
    assert list_differences(replace(RIGHT, device_verdicts=changed)) == [
        "device verdicts a/devices/0: forwarded with another content"
    ]


def test_counts_that_differ_from_the_attempts_are_found() -> None:
    assert list_differences(replace(RIGHT, trends={"failed": 3}), trends={"failed": 1}) == [
        "topic of trends: {'failed': 3} attempts by result, not {'failed': 2}",
        "index of trends: {'failed': 1} attempts by result, not {'failed': 2}",
    ]
    assert list_differences(replace(RIGHT, attempt_counts=[a_count("a")])) == [
        "attempt b: version None is counted, not 1"
    ]


def test_a_history_of_another_attempt_or_version_is_found() -> None:
    for latest in ({"attempt_id": "a", "version": 1}, {"attempt_id": "b", "version": 0}):
        histories = {KEY: json.dumps({"attempts": [latest]}).encode()}
        assert list_differences(replace(RIGHT, histories=histories)) == [f"history of {KEY}: not of attempt b"]
    assert list_differences(replace(RIGHT, histories={})) == [f"history of {KEY}: not of attempt b"]
