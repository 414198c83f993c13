"""An attempt that its scheduler found unchanged is published as if all its records had come."""

import asyncio
import json
from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.codec.records import encode_value
from schemas.events import (
    AttemptConcluded,
    AttemptEvent,
    AttemptRepeated,
    AttemptSummarized,
    AttemptUnchanged,
    PodHistoryChanged,
)
from schemas.ids import derive_attempt_id
from schemas.topics import ATTEMPT_COUNTS, ATTEMPTS, DEVICE_VERDICTS, FINDINGS, MESSAGES, POD_HISTORIES
from tests.support.builders.attempts import STARTED, an_attempt, build_common
from tests.support.fakes.topics import FakeTopics, Log
from tests.support.harness.worker_in_memory import a_worker
from tests.support.stress import count_examples

REFUSED: tuple[dict[str, Any], ...] = (
    {"node1": [["NumaNotFit", "CardCordoned"]], "node2": [["CardCordoned"] * 2]},
    {"node1": [["CardCordoned"] * 2], "node2": [["CardCordoned"] * 2]},
    {"node1": [["CardCordoned"] * 2, []], "node3": [["CardInsufficientMemory", "NumaNotFit"]]},
)
PLACED = {"node1": [["NumaNotFit", "CardCordoned"]], "node2": [["picked", "fits"]]}
Attempt = list[AttemptEvent]


def a_try(seconds: float, devices: Any, reader: str = "", **fields: Any) -> Attempt:
    started = STARTED + timedelta(seconds=seconds)
    common = build_common() | {
        "attempt_id": derive_attempt_id("default", f"hami-scheduler/{reader}", "uid-trainer", started),
        "started_at": started, "reader": reader,
    }  # fmt: skip
    events = an_attempt(devices, **common, **fields)
    return [*events[:-1], events[-1].model_copy(update={"ended_at": started + timedelta(milliseconds=13)})]


def an_event_about(attempt: Attempt) -> Attempt:
    """kube-scheduler's event about the attempt, which another reader publishes."""
    noted = attempt[0].started_at + timedelta(milliseconds=300)
    common = build_common() | {
        "attempt_id": derive_attempt_id("default", "hami-scheduler/kube-events", "uid-trainer", noted),
        "started_at": noted, "reader": "kube-events",
    }  # fmt: skip
    end = AttemptConcluded(
        **common, ended_at=noted, requests=[], offered_nodes=2, judged_nodes=0, judged_devices=0, device_records=0,
        node_records=0, refused_nodes={"node unsuitable": 2}, scheduler_message="0/2 nodes are available",
    )  # fmt: skip
    return [end]


def to_unchanged(attempt: Attempt, original: Attempt) -> Attempt:
    end = attempt[-1]
    assert isinstance(end, AttemptConcluded)
    names = ("cluster", "attempt_id", "pod", "scheduler", "reader", "started_at", "ended_at")
    fields = {name: getattr(end, name) for name in names}
    first = original[0]
    return [AttemptUnchanged(**fields, repeats=first.attempt_id, repeats_started_at=first.started_at)]


async def publish(attempts: Sequence[Attempt], restarts: frozenset[int] = frozenset()) -> FakeTopics:
    """Publish the attempts; before those in ``restarts`` another worker takes over."""
    topics, log = FakeTopics(), Log()
    for events in attempts:
        log.append(*events)
    unread = list(log.records)
    batches = [[unread.pop(0) for _ in events] for events in attempts]
    starts = sorted({0, *restarts, len(batches)})
    for start, stop in pairwise(starts):
        async with a_worker(topics) as worker:
            for batch in batches[start:stop]:
                await worker.read(*batch)
    assert log.acknowledged == [record.offset for record in log.records]
    return topics


def list_published(topics: FakeTopics) -> dict[str, list[Any]]:
    """List what is published, without what only says how it came: positions, and what a source repeats."""
    names = (ATTEMPTS, MESSAGES, ATTEMPT_COUNTS, FINDINGS, DEVICE_VERDICTS, POD_HISTORIES)
    published = {topic.name: [json.loads(encode_value(e)) for e in topics.list_events(topic.name)] for topic in names}
    for history in published[POD_HISTORIES.name]:
        del history["published_until"]
        for attempt in history["attempts"]:
            for report in attempt["reports"]:
                del report["repeats"]
    for count in published[ATTEMPT_COUNTS.name]:
        del count["recorded_at"]
    return published


kinds = st.lists(st.tuples(st.sampled_from([0, 0, 0, 0, 1, 2, 3]), st.booleans()), min_size=2, max_size=9)


@settings(max_examples=count_examples(40), deadline=None)
@given(kinds, st.frozensets(st.integers(1, 8), max_size=3))
def test_what_is_published_is_the_same_as_of_attempts_with_all_their_records(
    tries: list[tuple[int, bool]], restarts: frozenset[int]
) -> None:
    """The cluster's event comes after some of the attempts, as long as it says of all or of none the same."""
    in_full: list[Attempt] = []
    short: list[Attempt] = []
    original: tuple[int, Attempt] | None = None
    for number, (kind, has_event) in enumerate(tries):
        attempt = a_try(20 * number, PLACED, chosen="node2") if kind == 3 else a_try(20 * number, REFUSED[kind])
        is_unchanged = original is not None and original[0] == kind
        in_full.append(attempt)
        short.append(to_unchanged(attempt, original[1]) if is_unchanged and original else attempt)
        if not is_unchanged:
            original = (kind, attempt) if kind != 3 else None
        if has_event and kind != 3:
            in_full.append(an_event_about(attempt))
            short.append(an_event_about(attempt))
    expected = list_published(asyncio.run(publish(in_full, restarts)))
    assert list_published(asyncio.run(publish(short, restarts))) == expected


async def test_the_record_of_an_unchanged_attempt_read_twice_is_published_once() -> None:
    first, retry = a_try(0, REFUSED[0]), a_try(20, REFUSED[0])
    again = to_unchanged(retry, first)
    topics = await publish([first, again, again], frozenset({2}))
    assert [type(event) for event in topics.list_events(ATTEMPTS.name)] == [AttemptSummarized, AttemptRepeated]


async def test_an_unchanged_attempt_is_incomplete_when_nothing_is_known_of_the_one_that_it_repeats() -> None:
    lost, retry = a_try(0, REFUSED[0]), a_try(20, REFUSED[0])
    topics = await publish([to_unchanged(retry, lost)])
    (summary,) = topics.list_events(ATTEMPTS.name)
    assert isinstance(summary, AttemptSummarized)
    assert (summary.status, summary.complete, summary.nodes) == ("failed", False, [])
    assert summary.ended_at == STARTED + timedelta(seconds=20, milliseconds=13)
    assert summary.missing == f"it ended as attempt {lost[0].attempt_id}, which is not known"


async def test_an_unchanged_attempt_does_not_take_the_verdicts_of_another_source() -> None:
    """A log reader's records came whole, the scheduler's own did not: the verdicts are not what the scheduler gave."""
    by_log = a_try(0, REFUSED[1], reader="hami-log")
    by_scheduler = a_try(0.001, REFUSED[0])
    retry = to_unchanged(a_try(20, REFUSED[0]), by_scheduler)
    topics, log = FakeTopics(), Log()
    log.append(*by_log, *by_scheduler[1:], *retry)
    async with a_worker(topics) as worker:
        await worker.read(*log.records[:-1])
        await worker.wait(40)
        await worker.read(log.records[-1])
    last = topics.list_events(ATTEMPTS.name)[-1]
    assert isinstance(last, AttemptSummarized)
    assert (last.attempt_id, last.complete, last.nodes) == (retry[0].attempt_id, False, [])


async def test_the_histories_name_what_a_source_repeats_over_many_attempts() -> None:
    first = a_try(0, REFUSED[0])
    retries = [to_unchanged(a_try(100 * number, REFUSED[0]), first) for number in range(1, 9)]
    topics = await publish([first, *retries], frozenset({3, 6, 8}))
    *_, latest = topics.list_events(POD_HISTORIES.name)
    assert isinstance(latest, PodHistoryChanged)
    assert {report.repeats for attempt in latest.attempts for report in attempt.reports} == {first[0].attempt_id}
    assert {attempt.whole.attempt_id for attempt in latest.attempts} == {first[0].attempt_id}
    assert latest.latest.attempts == 9
