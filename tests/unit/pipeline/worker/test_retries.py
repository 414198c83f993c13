"""A pending pod is tried again and again: what is published of a retry, also after a restart."""

import json
from datetime import timedelta
from typing import Any

import pytest

from engine.diagnosis.waiting import derive_wait
from engine.summaries.fold import summarize
from pipeline.worker.published import WITHOUT_COMPARISON
from schemas.codec.records import encode_value
from schemas.events import AttemptEvent, AttemptRepeated, AttemptSummarized, PodWait
from schemas.ids import derive_attempt_id
from schemas.topics import ATTEMPTS, DEVICE_VERDICTS
from tests.support.builders.attempts import STARTED, a_bind, an_attempt, build_common
from tests.support.fakes.topics import FakeTopics, Log, list_published
from tests.support.harness.worker_in_memory import a_worker

FULL = {"node1": [["NumaNotFit", "CardCordoned"]], "node2": [["CardCordoned"] * 2]}
FREED = {"node1": [["NumaNotFit", "CardCordoned"]], "node2": [["picked", "fits"]]}


def a_try(minute: float, devices: Any = None, **fields: Any) -> list[AttemptEvent]:
    """An attempt of the one pod, ``minute`` minutes after the first."""
    started = STARTED + timedelta(minutes=minute)
    common = build_common() | {
        "attempt_id": derive_attempt_id("default", "hami-scheduler", "uid-trainer", started),
        "started_at": started,
    }
    events = an_attempt(devices or FULL, **common, **fields)
    ended = started + timedelta(milliseconds=13)
    return [*events[:-1], events[-1].model_copy(update={"ended_at": ended})]


Published = AttemptSummarized | AttemptRepeated


async def publish_one_by_one(*attempts: list[AttemptEvent], restart: bool = False) -> list[list[Published]]:
    """Publish attempts, and return the records of each; before each one the worker is started again, or it is the same
    one.
    """
    topics, log = FakeTopics(), Log()
    for events in attempts:
        log.append(*events)
    unread = list(log.records)
    batches = [[unread.pop(0) for _ in events] for events in attempts]
    for batch in batches if restart else [log.records]:
        async with a_worker(topics) as worker:
            await worker.read(*batch)
    assert log.acknowledged == [record.offset for record in log.records]
    published: dict[str, list[Published]] = {events[0].attempt_id: [] for events in attempts}
    for event in topics.list_events(ATTEMPTS.name):
        published[event.attempt_id].append(event)
    assert {name: encode_value(summary) for name, summary in strip_comparison(list_published(topics)).items()} == {
        events[0].attempt_id: encode_value(summarize(events)) for events in attempts
    }
    return list(published.values())


def strip_comparison(summaries: dict[str, AttemptSummarized]) -> dict[str, AttemptSummarized]:
    """Strip what the comparison with the attempt before adds."""
    return {name: summary.model_copy(update=WITHOUT_COMPARISON) for name, summary in summaries.items()}


@pytest.fixture(params=[False, True], ids=["one worker", "a worker each"])
def restart(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


async def test_every_attempt_says_why_its_pod_waits(restart: bool) -> None:
    """A retry that changed nothing too: a list of waiting pods reads no other record."""
    ((first,), (retry,), (placed,)) = await publish_one_by_one(a_try(0), a_try(1), a_try(2, FREED), restart=restart)
    assert isinstance(retry, AttemptRepeated)
    assert first.wait == retry.wait == derive_wait(summarize(a_try(0)))
    assert retry.wait is not None
    assert retry.wait.code in ("CardCordoned", "NumaNotFit")
    assert placed.wait is not None, "there is no bind yet"
    assert placed.wait.code == ""


async def test_the_reason_of_the_wait_is_derived_once_for_equal_attempts_of_one_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    derived: list[AttemptSummarized] = []

    def note_and_derive(summary: AttemptSummarized, pool_of: Any) -> PodWait | None:
        derived.append(summary)
        return derive_wait(summary, pool_of)

    monkeypatch.setattr("pipeline.worker.derivations.derive_wait", note_and_derive)
    other = {"node1": [["NumaNotFit", "CardCordoned"]]}
    ((first,), (retry,), (changed,)) = await publish_one_by_one(a_try(0), a_try(1), a_try(2, other))
    assert [summary.attempt_id for summary in derived] == [first.attempt_id, changed.attempt_id]
    assert first.wait == retry.wait
    assert changed.wait == derive_wait(summarize(a_try(2, other)))


async def test_an_unchanged_retry_is_published_as_a_repetition(restart: bool) -> None:
    tries = [a_try(minute) for minute in range(3)]
    first = tries[0][0]
    (summary,), *others = await publish_one_by_one(*tries, restart=restart)
    assert isinstance(summary, AttemptSummarized)
    for (event,) in others:
        assert isinstance(event, AttemptRepeated)
        assert (event.repeats, event.repeats_started_at) == (first.attempt_id, first.started_at)
        assert (event.episode, event.episode_started_at) == (first.attempt_id, first.started_at)
        assert (event.offered_nodes, event.fit_nodes, event.judged_devices) == (2, 0, 4)
        assert event.reasons == ["CardCordoned", "NumaNotFit"]
        assert event.text == "no available node, 2 nodes do not meet"


async def test_an_attempt_that_is_read_again_when_the_history_has_dropped_it_is_published_as_before() -> None:
    topics, log = FakeTopics(), Log()
    tries = [a_try(minute) for minute in range(7)]
    for events in [*tries, tries[0]]:
        log.append(*events)
    again = len(tries[0])
    for records in (log.records[:-again], log.records[-again:]):
        async with a_worker(topics) as worker:
            await worker.read(*records)
    published_events = [json.loads(encode_value(event)) for event in topics.list_events(ATTEMPTS.name)]
    first, *others = [event for event in published_events if event["attempt_id"] == tries[0][0].attempt_id]
    for other in others:
        assert other | {"attempts": 1} == first
    assert [event["attempts"] for event in published_events[:7]] == [1, 2, 3, 4, 5, 6, 7]


async def test_an_unchanged_retry_publishes_no_device_rows_and_less_than_eight_thousand_bytes() -> None:
    topics, log = FakeTopics(), Log()
    wide = {f"gpu-node-{number:05}": [["CardInsufficientMemory"] * 8] for number in range(300)}
    for minute in range(5):
        log.append(*a_try(minute, wide, nodes_a_record=100))
    others = len(log.records) * 4 // 5
    async with a_worker(topics) as worker:
        await worker.read(*log.records[:others])
        before = len(topics.sent)
        await worker.read(*log.records[others:])
    # As many as for two nodes: the attempt itself, its messages and counts, and the history of four attempts.
    assert 0 < sum(len(entry.value) for entry in topics.sent[before:]) < 8_000
    assert len(topics.list_sent(DEVICE_VERDICTS.name)) == 3


async def test_a_change_begins_an_episode_that_names_what_changed(restart: bool) -> None:
    tries = [a_try(0), a_try(1), a_try(2, FREED, chosen="node2"), a_try(3)]
    events = [last for (*_, last) in await publish_one_by_one(*tries, restart=restart)]
    assert [event.episode for event in events] == [tries[index][0].attempt_id for index in (0, 0, 2, 3)]
    assert [event.changes for event in events if isinstance(event, AttemptSummarized)] == [
        [], ["node2: 2/2 CardCordoned became fit"], ["node2: fit became 2/2 CardCordoned"],
    ]  # fmt: skip


async def test_a_bind_is_part_of_what_an_episode_has_in_common(restart: bool) -> None:
    placed = [a_try(minute, FREED, chosen="node2") for minute in range(3)]
    binds = [
        a_bind(bound=bound, error="" if bound else "locked", node="node2", attempt_id=events[0].attempt_id,
               started_at=events[0].started_at, ended_at=events[0].started_at + timedelta(seconds=1))
        for events, bound in zip(placed, (False, False, True), strict=True)
    ]  # fmt: skip
    tries = [[*events, bind] for events, bind in zip(placed, binds, strict=True)]
    latest = [last for (*_, last) in await publish_one_by_one(*tries, restart=restart)]
    assert [event.episode for event in latest] == [placed[index][0].attempt_id for index in (0, 0, 2)]
    assert isinstance(latest[2], AttemptSummarized)
    assert latest[2].changes == ["bind: locked became bound to node2"]
    assert [event.status for event in latest] == ["failed", "failed", "succeeded"]


async def test_a_retry_hours_later_or_on_the_next_day_is_published_whole_in_the_same_episode() -> None:
    tries = [a_try(minute) for minute in (0, 5 * 60, 7 * 60, 22 * 60)]
    events = [event for (event,) in await publish_one_by_one(*tries)]
    assert [isinstance(event, AttemptSummarized) for event in events] == [True, False, True, True]
    assert {event.episode for event in events} == {tries[0][0].attempt_id}


async def test_a_pod_of_the_same_name_is_another_pod() -> None:
    again = [event.model_copy(update={"pod": event.pod.model_copy(update={"uid": "other"})}) for event in a_try(1)]
    (first,), (other,) = await publish_one_by_one(a_try(0), again)
    assert isinstance(first, AttemptSummarized)
    assert isinstance(other, AttemptSummarized)
    assert first.episode != other.episode


async def test_the_verdicts_of_another_scheduler_are_no_repetition() -> None:
    other = [event.model_copy(update={"scheduler": "volcano"}) for event in a_try(1)]
    (_,), (event,) = await publish_one_by_one(a_try(0), other)
    assert isinstance(event, AttemptSummarized)
    assert event.episode == other[0].attempt_id


async def test_what_a_bind_adds_to_a_repetition_that_only_the_topics_know(restart: bool) -> None:
    late = a_bind(node="node1", attempt_id=a_try(1)[0].attempt_id, started_at=a_try(1)[0].started_at)
    topics, log = FakeTopics(), Log()
    log.append(*a_try(0), *a_try(1), late)
    sessions = [log.records[:-1], log.records[-1:]] if restart else [log.records]
    for records in sessions:
        async with a_worker(topics) as worker:
            await worker.read(*records)
    summary = topics.list_events(ATTEMPTS.name)[-1]
    assert isinstance(summary, AttemptSummarized)
    assert (summary.attempt_id, summary.status, summary.nodes) == (late.attempt_id, "succeeded", ["node1", "node2"])
    assert encode_value(strip_comparison({"": summary})[""]) == encode_value(summarize([*a_try(1), late]))


async def test_an_attempt_that_comes_after_a_later_one_is_compared_with_those_before_it() -> None:
    tries = [a_try(0), a_try(2), a_try(1)]
    events = [event for (event,) in await publish_one_by_one(*tries)]
    assert [event.episode for event in events] == [tries[0][0].attempt_id] * 3
