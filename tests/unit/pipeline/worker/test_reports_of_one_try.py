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


def build_head(reader: str, started_at: datetime, pod: PodRef = POD) -> dict[str, Any]:
    return {
        "cluster": "default",
        "attempt_id": derive_attempt_id("default", f"hami-scheduler/{reader}", pod.uid, started_at),
        "pod": pod, "scheduler": "hami-scheduler", "reader": reader, "started_at": started_at,
    }  # fmt: skip


def a_bind_of(common: dict[str, Any], ended_at: datetime, *, bound: bool, error: str = "locked") -> BindConcluded:
    return BindConcluded(
        **common, node="node1", bound=bound, error="" if bound else error, bind_started_at=ended_at, ended_at=ended_at
    )


def report_by_scheduler(outcome: str, started_at: datetime) -> list[Chunk]:
    common = build_head("", started_at)
    devices = REFUSING if outcome == "refused" else PLACED
    events = an_attempt(devices, chosen=None if outcome == "refused" else "node1", **common)
    events[-1] = events[-1].model_copy(update={"ended_at": started_at + timedelta(milliseconds=13)})
    bind = a_bind_of(common, started_at + timedelta(milliseconds=40), bound=outcome == "bound")
    return [events, [bind]] if outcome in ("bound", "not bound") else [events]


def report_by_log(reader: str, outcome: str, started_at: datetime, pod: PodRef) -> list[Chunk]:
    """Report as a log without device lines: nodes with their counts; the policies are not in it."""
    common = build_head(reader, started_at + timedelta(milliseconds=3), pod)
    scheduler_chunks = report_by_scheduler(outcome, started_at)
    nodes = [event.model_copy(update=common) for event in scheduler_chunks[0] if isinstance(event, NodesJudged)]
    end = scheduler_chunks[0][-1].model_copy(
        update=common
        | {
            "ended_at": started_at + timedelta(milliseconds=12), "node_policy": "", "device_policy": "", "picked": [],
            "judged_devices": 0, "device_records": 0, "provenance": Provenance(levels=[4], not_reported=["devices"]),
            "scheduler_message": f"in the words of {reader}",
        }
    )  # fmt: skip
    binds: list[Chunk] = [
        [a_bind_of(common, started_at + timedelta(milliseconds=39), bound=event.bound)]
        for chunk in scheduler_chunks[1:]
        for event in chunk
        if isinstance(event, BindConcluded)
    ]
    return [[*nodes, end], *binds]


def report_by_events(outcome: str, started_at: datetime, late: timedelta, *, is_whole_second: bool) -> list[Chunk]:
    """Report as ``ingest.readers.kube.events`` does from kube-scheduler's own events."""
    noted = started_at + timedelta(milliseconds=45) + late
    noted = noted.replace(microsecond=0) if is_whole_second else noted
    common = build_head("kube-events", noted)
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


def report_by(source: str, outcome: str, started_at: datetime, draw: st.DataObject) -> list[Chunk]:
    match source:
        case "":
            return report_by_scheduler(outcome, started_at)
        case "kube-events":
            late = timedelta(milliseconds=draw.draw(st.integers(0, 1900)))
            return report_by_events(outcome, started_at, late, is_whole_second=draw.draw(st.booleans()))
        case _:
            return report_by_log(source, outcome, started_at, draw.draw(st.sampled_from([POD, BARE])))


async def read_by_workers(sessions: Sequence[Sequence[Chunk]]) -> FakeTopics:
    """Read the chunks of each session by one worker, and return the topics."""
    topics, log = FakeTopics(), Log()
    for chunks in sessions:
        start = len(log.records)
        log.append(*(event for chunk in chunks for event in chunk))
        async with a_worker(topics) as worker:
            await worker.read(*log.records[start:])
    return topics


def to_plain(summary: AttemptSummarized) -> dict[str, Any]:
    """Return all fields but those that name the attempt, and those that the comparison with the one before it adds."""
    named = {"attempt_id": "", "started_at": STARTED}
    fields: dict[str, Any] = orjson.loads(encode_value(summary.model_copy(update=WITHOUT_COMPARISON | named)))
    return fields


def list_attempts(topics: FakeTopics) -> list[AttemptSummarized]:
    return sorted(list_published(topics).values(), key=lambda attempt: attempt.started_at)


def count_attempts(topics: FakeTopics) -> int:
    """Count the attempts as the trends do."""
    minutes: dict[datetime, Minute] = {}
    for event in topics.list_events(ATTEMPT_COUNTS.name):
        assert isinstance(event, AttemptCounted)
        start = event.started_at.replace(second=0, microsecond=0)
        minute = minutes.setdefault(start, Minute("default", start, 0, start))
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
        started_at = STARTED + number * APART
        tries.append([reports for source in sources if (reports := report_by(source, outcome, started_at, data))])
    tries = [reports for reports in tries if reports]
    chunks = [chunk for reports in tries for report in reports for chunk in report]
    again = data.draw(st.lists(st.integers(0, len(chunks) - 1), max_size=3)) if chunks else []
    turns = [chunks[index] for index in data.draw(st.permutations([*range(len(chunks)), *again]))]
    cut = data.draw(st.integers(0, len(turns)))
    in_order = asyncio.run(read_by_workers([chunks]))
    shuffled = asyncio.run(read_by_workers([turns[:cut], turns[cut:]]))
    for topics in (in_order, shuffled):
        attempts = list_attempts(topics)
        assert [len(attempt.reports) for attempt in attempts] == list(map(len, tries))
        assert not any(attempt.may_duplicate for attempt in attempts)
        assert count_attempts(topics) == len(tries)
    for shuffled_attempt, other in zip(list_attempts(shuffled), list_attempts(in_order), strict=True):
        fields, others = to_plain(shuffled_attempt), to_plain(other)
        assert {name: value for name, value in fields.items() if others[name] != value} == {}


def test_a_retry_keeps_its_message_when_the_cluster_reports_the_attempt_that_it_repeats() -> None:
    starts = [STARTED, STARTED + APART]
    logged = [report_by_log("hami-log", "refused", start, POD) for start in starts]
    reports = [
        report
        for start, log in zip(starts, logged, strict=True)
        for report in (report_by_scheduler("refused", start), log)
    ]
    late = report_by_events("refused", STARTED, timedelta(0), is_whole_second=False)
    topics = asyncio.run(read_by_workers([[chunk for report in (*reports, late) for chunk in report]]))
    messages = [attempt.scheduler_message for attempt in list_attempts(topics)]
    assert messages == ["0/5 nodes are available: 3 Insufficient cpu, 2 node unsuitable", "in the words of hami-log"]
