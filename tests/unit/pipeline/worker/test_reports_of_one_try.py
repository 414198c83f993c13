"""Several sources report the same tries: each try is one attempt, whatever comes, in whatever order, however often."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.summaries.trends import Minute, list_weights
from pipeline.worker.published import WITHOUT_COMPARISON
from schemas.codec.records import encode_value
from schemas.events import (
    FILTER_END,
    AttemptConcluded,
    AttemptCounted,
    AttemptEvent,
    AttemptSummarized,
    BindConcluded,
    NodesJudged,
    PodRef,
    Provenance,
    Request,
)
from schemas.ids import derive_attempt_id
from schemas.topics import ATTEMPT_COUNTS
from tests.support.builders.attempts import STARTED, an_attempt
from tests.support.fakes.topics import FakeTopics, Log, list_published
from tests.support.harness.worker_in_memory import a_worker
from tests.support.stress import count_examples

APART: Final = timedelta(seconds=8)
"""More than an event of Kubernetes can be late, and its second can be rounded."""
REFUSING = {"node1": [["NumaNotFit", "CardCordoned"]], "node2": [["CardCordoned"]]}
PLACED = {"node1": [["picked", "fits"]], "node2": [["CardCordoned"]]}
SOURCES: Final = ("", "hami-log", "kube-events", "volcano-log")
POD = PodRef(namespace="ml", name="trainer", uid="uid-trainer")
BARE = PodRef(namespace="ml", name="trainer")
OUTCOMES: Final = ("refused", "bound", "not bound", "placed")

Chunk = list[AttemptEvent]
"""Records of one source that complete something: the filter, or the bind."""


def about(reader: str, started_at: datetime, pod: PodRef = POD) -> dict[str, Any]:
    return {
        "cluster": "default",
        "attempt_id": derive_attempt_id("default", f"hami-scheduler/{reader}", pod.uid, started_at),
        "pod": pod, "scheduler": "hami-scheduler", "reader": reader, "started_at": started_at,
    }  # fmt: skip


def a_bind_of(common: dict[str, Any], ended_at: datetime, *, bound: bool, error: str = "locked") -> BindConcluded:
    return BindConcluded(
        **common, node="node1", bound=bound, error="" if bound else error, bind_started_at=ended_at, ended_at=ended_at
    )


def by_scheduler(outcome: str, at: datetime) -> list[Chunk]:
    common = about("", at)
    devices = REFUSING if outcome == "refused" else PLACED
    events = an_attempt(devices, chosen=None if outcome == "refused" else "node1", **common)
    events[-1] = events[-1].model_copy(update={"ended_at": at + timedelta(milliseconds=13)})
    bind = a_bind_of(common, at + timedelta(milliseconds=40), bound=outcome == "bound")
    return [events, [bind]] if outcome in ("bound", "not bound") else [events]


def by_log(reader: str, outcome: str, at: datetime, pod: PodRef) -> list[Chunk]:
    """Of a log without device lines: nodes with their counts; the policies are not in it."""
    common = about(reader, at + timedelta(milliseconds=3), pod)
    own = by_scheduler(outcome, at)
    nodes = [event.model_copy(update=common) for event in own[0] if isinstance(event, NodesJudged)]
    end = own[0][-1].model_copy(
        update=common
        | {
            "ended_at": at + timedelta(milliseconds=12), "node_policy": "", "device_policy": "", "picked": [],
            "judged_devices": 0, "device_records": 0, "provenance": Provenance(levels=[4], not_reported=["devices"]),
            "scheduler_message": f"in the words of {reader}",
        }
    )  # fmt: skip
    binds: list[Chunk] = [
        [a_bind_of(common, at + timedelta(milliseconds=39), bound=event.bound)]
        for chunk in own[1:]
        for event in chunk
        if isinstance(event, BindConcluded)
    ]
    return [[*nodes, end], *binds]


def by_events(outcome: str, at: datetime, late: timedelta, *, is_whole_second: bool) -> list[Chunk]:
    """As ``ingest.readers.kube.events`` makes them of kube-scheduler's own events."""
    noted = at + timedelta(milliseconds=45) + late
    noted = noted.replace(microsecond=0) if is_whole_second else noted
    common = about("kube-events", noted)
    end: dict[str, Any] = {
        "ended_at": noted, "requests": [Request(container="c0", count=1)], "offered_nodes": 1, "judged_nodes": 0,
        "judged_devices": 0, "device_records": 0, "node_records": 0,
    }  # fmt: skip
    if outcome == "bound":
        nodes = NodesJudged(
            **common, part=0, containers=[""], verdicts=["picked"], refusals=[], nodes=["node1"], verdict=[0],
            score=[0.0], refused_by=[-1], refusal=[-1],
        )  # fmt: skip
        gaps = Provenance(not_reported=["the nodes that were not chosen", FILTER_END, "offered nodes"])
        more = {"judged_nodes": 1, "node_records": 1, "chosen": "node1", "provenance": gaps}
        return [[nodes, AttemptConcluded(**common | end | more)], [a_bind_of(common, noted, bound=True)]]
    if outcome == "refused":
        text = "0/5 nodes are available: 3 Insufficient cpu, 2 node unsuitable"
        more = {
            "offered_nodes": 5, "refused_nodes": {"Insufficient cpu": 3, "node unsuitable": 2},
            "scheduler_message": text, "provenance": Provenance(not_reported=["which nodes were refused"]),
        }  # fmt: skip
        return [[AttemptConcluded(**common | end | more)]]
    if outcome == "not bound":
        more = {"offered_nodes": 0, "error": "running Bind plugin: locked", "provenance": Provenance()}
        return [[AttemptConcluded(**common | end | more)]]
    return []


def chunks_of(source: str, outcome: str, at: datetime, draw: st.DataObject) -> list[Chunk]:
    match source:
        case "":
            return by_scheduler(outcome, at)
        case "kube-events":
            late = timedelta(milliseconds=draw.draw(st.integers(0, 1900)))
            return by_events(outcome, at, late, is_whole_second=draw.draw(st.booleans()))
        case _:
            return by_log(source, outcome, at, draw.draw(st.sampled_from([POD, BARE])))


async def read_by_workers(sessions: Sequence[Sequence[Chunk]]) -> FakeTopics:
    """What is on the topics when each worker has read its chunks."""
    topics, log = FakeTopics(), Log()
    for chunks in sessions:
        start = len(log.records)
        log.append(*(event for chunk in chunks for event in chunk))
        async with a_worker(topics) as worker:
            await worker.read(*log.records[start:])
    return topics


def plain(summary: AttemptSummarized) -> dict[str, Any]:
    """All but what names the attempt, and what the comparison with the one before it adds."""
    named = {"attempt_id": "", "started_at": STARTED}
    fields: dict[str, Any] = orjson.loads(encode_value(summary.model_copy(update=WITHOUT_COMPARISON | named)))
    return fields


def attempts_in(topics: FakeTopics) -> list[AttemptSummarized]:
    return sorted(list_published(topics).values(), key=lambda attempt: attempt.started_at)


def counted_attempts(topics: FakeTopics) -> int:
    """As the trends count them."""
    minutes: dict[datetime, Minute] = {}
    for event in topics.list_events(ATTEMPT_COUNTS.name):
        assert isinstance(event, AttemptCounted)
        at = event.started_at.replace(second=0, microsecond=0)
        minute = minutes.setdefault(at, Minute("default", at, 0, at))
        replaces = list_weights("ml", event.replaces) if event.replaces else ()
        minute.put("ml/trainer", list_weights("ml", event.adds), replaces)
    rows = [row for minute in minutes.values() for row in minute.list_rows() if row.key[2] == "all"]
    assert all(row.attempts >= 0 for row in rows)
    return sum(row.attempts for row in rows)


@given(st.data())
@settings(max_examples=count_examples(15))
def test_each_try_is_one_attempt_whatever_sources_report_it_in_whatever_order(data: st.DataObject) -> None:
    outcomes = data.draw(st.lists(st.sampled_from(OUTCOMES), min_size=1, max_size=3))
    tries: list[list[list[Chunk]]] = []
    for number, outcome in enumerate(outcomes):
        sources = data.draw(st.lists(st.sampled_from(SOURCES), min_size=1, max_size=4, unique=True))
        at = STARTED + number * APART
        tries.append([reports for source in sources if (reports := chunks_of(source, outcome, at, data))])
    tries = [reports for reports in tries if reports]
    chunks = [chunk for reports in tries for report in reports for chunk in report]
    again = data.draw(st.lists(st.integers(0, len(chunks) - 1), max_size=3)) if chunks else []
    turns = [chunks[at] for at in data.draw(st.permutations([*range(len(chunks)), *again]))]
    cut = data.draw(st.integers(0, len(turns)))
    in_order = asyncio.run(read_by_workers([chunks]))
    shuffled = asyncio.run(read_by_workers([turns[:cut], turns[cut:]]))
    for topics in (in_order, shuffled):
        found = attempts_in(topics)
        assert [len(attempt.reports) for attempt in found] == list(map(len, tries))
        assert not any(attempt.may_duplicate for attempt in found)
        assert counted_attempts(topics) == len(tries)
    for one, other in zip(attempts_in(shuffled), attempts_in(in_order), strict=True):
        fields, others = plain(one), plain(other)
        assert {name: value for name, value in fields.items() if others[name] != value} == {}
