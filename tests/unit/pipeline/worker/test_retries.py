"""A pending pod is tried again and again: what is written of a retry, also when records are read twice."""

from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.sinks.bulk import Document, body
from schemas.codec.records import decode, encode_value
from schemas.documents.attempts import repeated_of, summary_of
from schemas.events import AttemptEvent, AttemptRepeated, AttemptSummarized
from schemas.ids import attempt_id
from schemas.topics import ATTEMPTS
from summaries.fold import summarize
from summaries.retries import resolve
from tests.support.builders.attempts import STARTED, a_bind, about, an_attempt
from tests.support.fakes.index_and_topics import FakeIndex, FakeTopics, Log
from tests.support.harness.worker_in_memory import a_worker
from tests.support.stress import examples

FULL = {"node1": [["NumaNotFit", "CardCordoned"]], "node2": [["CardCordoned"] * 2]}
FREED = {"node1": [["NumaNotFit", "CardCordoned"]], "node2": [["picked", "fits"]]}


def a_try(minute: float, devices: Any = None, **fields: Any) -> list[AttemptEvent]:
    """An attempt of the one pod, ``minute`` minutes after the first."""
    started = STARTED + timedelta(minutes=minute)
    common = about() | {"attempt_id": attempt_id("hami-scheduler", "uid-trainer", started), "started_at": started}
    events = an_attempt(devices or FULL, **common, **fields)
    ended = started + timedelta(milliseconds=13)
    return [*events[:-1], events[-1].model_copy(update={"ended_at": ended})]


def whole(index: FakeIndex, attempt: str) -> AttemptSummarized:
    document = index.documents[attempt]
    repeated = repeated_of(document)
    if repeated is None:
        found = summary_of(document)
        assert isinstance(found, AttemptSummarized), found
        return found
    assert isinstance(repeated, AttemptRepeated), repeated
    return resolve(repeated, whole(index, repeated.repeats))


async def written(*attempts: list[AttemptEvent]) -> tuple[FakeIndex, FakeTopics]:
    index, topics, log = FakeIndex(), FakeTopics(), Log()
    log.append(*(event for events in attempts for event in events))
    async with a_worker(index, topics) as worker:
        await worker.read(*log.records)
    assert log.acknowledged == [record.offset for record in log.records]
    return index, topics


async def test_an_unchanged_retry_is_written_as_a_repetition_and_resolves_to_its_whole_summary() -> None:
    tries = [a_try(minute) for minute in range(3)]
    index, topics = await written(*tries)
    first = tries[0][0].attempt_id
    documents = [index.documents[events[0].attempt_id] for events in tries]
    assert ["summary" in each for each in documents] == [True, False, False]
    assert [each.get("repeats") for each in documents] == [None, first, first]
    assert {each["episode"] for each in documents} == {first}
    assert {each["episode_started_at"] for each in documents} == {documents[0]["@timestamp"]}
    for events in tries:
        assert encode_value(whole(index, events[0].attempt_id)) == encode_value(summarize(events))
    kinds = [type(decode(each.record.value, each.record.headers)) for each in topics.of(ATTEMPTS.name)]
    assert kinds == [AttemptSummarized, AttemptRepeated, AttemptRepeated]


async def test_an_unchanged_retry_writes_no_device_rows_and_less_than_two_thousand_bytes() -> None:
    class Weighing(FakeIndex):
        written = 0

        async def write(self, documents: Any) -> Any:
            # The counts of the minute are one for all attempts in it.
            self.written += len(body([each for each in documents if "trends" not in each.index]))
            return await super().write(documents)

    index, topics, log = Weighing(), FakeTopics(), Log()
    wide = {f"gpu-node-{number:05}": [["CardInsufficientMemory"] * 8] for number in range(300)}
    log.append(*a_try(0, wide, nodes_a_record=100), *a_try(1, wide, nodes_a_record=100))
    half = len(log.records) // 2
    async with a_worker(index, topics) as worker:
        await worker.read(*log.records[:half])
        first, index.written = index.written, 0
        await worker.read(*log.records[half:])
    assert 0 < index.written < 2_000
    assert first > 20 * index.written
    assert len([name for name in index.documents if "/devices/" in name]) == 3


async def test_pods_that_are_new_to_the_index_cost_one_search() -> None:
    index, topics, log = FakeIndex(), FakeTopics(), Log()
    known = a_try(0)
    log.append(*known)
    async with a_worker(index, topics) as worker:
        await worker.read(*log.records)
    index.asked.clear()
    new = [an_attempt(FULL, **about(f"new-{number}")) for number in range(20)]
    log.append(*(event for events in (a_try(1), *new) for event in events))
    async with a_worker(index, topics) as another:
        await another.read(*log.records[len(known) :])
    asked_of_pods = [str(body["query"]) for body in index.asked if "pod_uid" in str(body["query"])]
    assert ["terms" in query for query in asked_of_pods] == [True, False]
    assert "uid-trainer" in asked_of_pods[1]
    assert index.documents[a_try(1)[0].attempt_id]["repeats"] == known[0].attempt_id
    assert {index.documents[events[0].attempt_id].get("repeats") for events in new} == {None}


async def test_a_change_begins_an_episode_that_names_what_changed() -> None:
    tries = [a_try(0), a_try(1), a_try(2, FREED, chosen="node2"), a_try(3)]
    index, topics = await written(*tries)
    documents = [index.documents[events[0].attempt_id] for events in tries]
    episodes = [each["episode"] for each in documents]
    assert episodes == [tries[at][0].attempt_id for at in (0, 0, 2, 3)]
    assert [each.get("changes") for each in documents] == [
        [], None, ["node2: 2/2 CardCordoned became fit"], ["node2: fit became 2/2 CardCordoned"],
    ]  # fmt: skip
    records = [decode(each.record.value, each.record.headers) for each in topics.of(ATTEMPTS.name)]
    on_topic = {each.attempt_id: each.changes for each in records if isinstance(each, AttemptSummarized)}
    assert on_topic == {each["attempt_id"]: each["changes"] for each in documents if "changes" in each}


async def test_a_bind_is_part_of_what_an_episode_has_in_common() -> None:
    placed = [a_try(minute, FREED, chosen="node2") for minute in range(3)]
    binds = [
        a_bind(bound=bound, error="" if bound else "locked", node="node2", attempt_id=events[0].attempt_id,
               started_at=events[0].started_at, ended_at=events[0].started_at + timedelta(seconds=1))
        for events, bound in zip(placed, (False, False, True), strict=True)
    ]  # fmt: skip
    index, _ = await written(*([*events, bind] for events, bind in zip(placed, binds, strict=True)))
    documents = [index.documents[events[0].attempt_id] for events in placed]
    assert [each["episode"] for each in documents] == [placed[at][0].attempt_id for at in (0, 0, 2)]
    assert documents[2]["changes"] == ["bind: locked became bound to node2"]
    assert [each["status"] for each in documents] == ["failed", "failed", "succeeded"]


async def test_a_retry_hours_later_or_on_the_next_day_is_written_whole_in_the_same_episode() -> None:
    tries = [a_try(minute) for minute in (0, 5 * 60, 7 * 60, 22 * 60)]
    index, _ = await written(*tries)
    documents = [index.documents[events[0].attempt_id] for events in tries]
    assert ["summary" in each for each in documents] == [True, False, True, True]
    assert {each["episode"] for each in documents} == {tries[0][0].attempt_id}


async def test_a_pod_of_the_same_name_is_another_pod() -> None:
    again = [event.model_copy(update={"pod": event.pod.model_copy(update={"uid": "other"})}) for event in a_try(1)]
    index, _ = await written(a_try(0), again)
    assert all("summary" in each for each in index.attempts.values())
    assert len({each["episode"] for each in index.attempts.values()}) == 2


async def test_after_a_restart_the_next_retry_continues_the_episode() -> None:
    index, topics, log = FakeIndex(), FakeTopics(), Log()
    tries = [a_try(minute) for minute in range(3)]
    for events in tries:
        log.append(*events)
        async with a_worker(index, topics) as worker:
            await worker.read(*log.records[-len(events) :])
    assert [each.get("repeats") for each in index.attempts.values()] == [None, *[tries[0][0].attempt_id] * 2]


@settings(max_examples=examples(15))
@given(
    changes=st.lists(st.booleans(), min_size=2, max_size=7),
    sessions=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 21)), max_size=4),
)
async def test_restarts_and_reading_again_change_nothing(changes: list[bool], sessions: list[tuple[int, int]]) -> None:
    """A worker begins at or before the first unacknowledged record and is killed anywhere; another one continues."""
    tries = [
        a_try(minute, FREED if changed else None, **({"chosen": "node2"} if changed else {}))
        for minute, changed in enumerate(changes)
    ]
    undisturbed, _ = await written(*tries)
    index, topics, log = FakeIndex(), FakeTopics(), Log()
    log.append(*(event for events in tries for event in events))
    for attempts_back, many in sessions:
        done = max(log.acknowledged, default=-1) + 1
        start = max(done - len(tries[0]) * attempts_back, 0)
        async with a_worker(index, topics) as worker:
            await worker.read(*log.records[start : start + many])
    async with a_worker(index, topics) as worker:
        await worker.read(*log.records)
    assert index.documents == undisturbed.documents


async def test_what_a_bind_adds_to_an_attempt_that_only_the_index_knows() -> None:
    index, topics, log = FakeIndex(), FakeTopics(), Log()
    tries = [a_try(0), a_try(1)]
    log.append(*tries[0], *tries[1])
    late = a_bind(node="node1", attempt_id=tries[1][0].attempt_id, started_at=tries[1][0].started_at)
    log.append(late)
    async with a_worker(index, topics) as worker:
        await worker.read(*log.records[:-1])
    async with a_worker(index, topics) as worker:
        await worker.read(log.records[-1])
    found = whole(index, tries[1][0].attempt_id)
    assert (found.status, found.nodes) == ("succeeded", ["node1", "node2"])


def test_the_size_of_a_document_covers_its_line_of_the_request() -> None:
    document = Document("i", "d", orjson.dumps({"at": datetime(2026, 1, 1, tzinfo=UTC)}))
    assert len(body([document])) < document.size
