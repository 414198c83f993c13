"""Attempts that a log does not end, and states of the scheduler near them: which line explains which attempt."""

from datetime import timedelta
from typing import Any

import pytest

from engine.diagnosis.facts import DiagnosisFacts
from engine.diagnosis.log_ends import (
    NEAR,
    describe_nodes_at_end,
    find_unfinished,
    find_zero_memory,
    iterate_log_notes,
)
from engine.diagnosis.logged_facts import LoggedFact, LoggedKind
from engine.diagnosis.outcome import FoundObstacle
from schemas.answers.diagnosis import InBothLanguages
from schemas.events import BindOutcome
from tests.support.builders.events import STARTED, a_refusal, a_request, a_summary
from tests.support.builders.layer_objects import to_english

ENDED = STARTED + timedelta(minutes=10)
NEAR_SECONDS = NEAR.total_seconds()


def a_fact(kind: LoggedKind, seconds: float = 0, **fields: Any) -> LoggedFact:
    return LoggedFact(kind, STARTED + timedelta(seconds=seconds), **fields)


def find(*logged: LoggedFact, nodes: tuple[str, ...] = (), **fields: Any) -> FoundObstacle | None:
    """Find what the log says of an attempt without an end."""
    ended_at = fields.pop("log_ended_at", ENDED)
    attempt = a_summary(nodes, **{"judged_devices": 0} | fields)
    facts = DiagnosisFacts("default", "llm", "deepseek-a", ENDED, attempt, logged=logged, log_ended_at=ended_at)
    return find_unfinished(facts, attempt)


def find_code(*logged: LoggedFact, **more: Any) -> str:
    obstacle = find(*logged, **more)
    return obstacle.code if obstacle else ""


@pytest.mark.parametrize(
    ("logged", "fields", "code"),
    [
        ([], {}, "UnfinishedAttempt"),
        ([], {"log_ended_at": None}, ""),
        ([], {"ended_at": STARTED}, ""),
        ([], {"bind": BindOutcome(node="n1", bound=True, ended_at=STARTED)}, ""),
        # Of one that judged nodes or devices a log may be cut where no line is missing.
        ([], {"nodes": ("n1",)}, ""),
        ([], {"judged_devices": 8}, ""),
        ([a_fact("scheduler crashed")], {}, "SchedulerCrashed"),
        ([a_fact("scheduler crashed", 0)], {"nodes": ("n1",)}, "SchedulerCrashed"),
        ([a_fact("scheduler crashed", 5)], {"judged_devices": 8}, "SchedulerCrashed"),
        # A crash before it did not end it.
        ([a_fact("scheduler crashed", -5)], {"nodes": ("n1",)}, ""),
        ([a_fact("scheduler crashed", NEAR_SECONDS)], {}, "SchedulerCrashed"),
        ([a_fact("scheduler crashed", -NEAR_SECONDS)], {}, "SchedulerCrashed"),
        ([a_fact("scheduler crashed", NEAR_SECONDS + 1)], {}, "UnfinishedAttempt"),
        ([a_fact("scheduler crashed", -NEAR_SECONDS - 1)], {}, "UnfinishedAttempt"),
        ([a_fact("log ended", 1)], {}, "UnfinishedAttempt"),
    ],
)
def test_a_crash_near_the_attempt_or_the_end_of_the_log_explains_it(
    logged: list[LoggedFact], fields: dict[str, Any], code: str
) -> None:
    assert find_code(*logged, **fields) == code


@pytest.mark.parametrize(
    ("seconds", "pod", "is_evicted"),
    [(0, "llm/deepseek-a", True), (1, "llm/deepseek-a", False), (0, "llm/other", False)],
)
def test_an_eviction_is_that_of_the_moment_and_of_the_pod(seconds: float, pod: str, is_evicted: bool) -> None:
    obstacle = find(a_fact("pod evicted", seconds, pod=pod, node="n7", words="evicted"))
    assert obstacle
    assert (obstacle.code != "UnfinishedAttempt") is is_evicted
    if is_evicted:
        assert to_english(obstacle.words["place"]) == "the pod's place on node n7"


@pytest.mark.parametrize(
    ("logged", "clause"),
    [
        ([a_fact("not leader")], "not_leader"),
        ([a_fact("cache not synced")], "not_synced"),
        # Of two states at once the one that stopped a call says more, and of one kind the nearest.
        ([a_fact("not leader"), a_fact("cache not synced", 60)], "not_synced"),
        ([], None),
    ],
)
def test_a_scheduler_that_did_not_lead_or_had_no_state_is_named(logged: list[LoggedFact], clause: str | None) -> None:
    obstacle = find(*logged)
    assert obstacle
    assert list(obstacle.clauses) == ["asked", *([clause] if clause else [])]


def test_the_nearest_line_of_a_kind_counts() -> None:
    obstacle = find(a_fact("not leader", -60), a_fact("not leader", 30), a_fact("not leader", 90))
    assert obstacle
    assert obstacle.words["since"] == "03:06:53 UTC"
    crash = find(a_fact("scheduler crashed", 30, words="far"), a_fact("scheduler crashed", -20, words="near"))
    assert crash
    assert crash.words["words"] == "near"


def test_an_attempt_without_requests_has_no_amounts() -> None:
    obstacle = find(requests=[a_request(count=0)])
    assert obstacle
    assert (list(obstacle.clauses), obstacle.words["count"]) == ([], 0)
    asking = find(requests=[a_request(count=0), a_request(count=3)])
    assert asking
    assert (list(asking.clauses), asking.words["count"]) == (["asked"], 3)


@pytest.mark.parametrize(
    ("requests", "fields", "count"),
    [
        ([a_request(memory_mib=0)], {}, 2),
        ([a_request(memory_mib=0), a_request(memory_mib=0, count=1)], {}, 3),
        ([a_request(memory_mib=0), a_request(memory_mib=100, count=4)], {}, 2),
        ([a_request(memory_mib=0, count=0)], {}, None),
        ([a_request(memory_mib=1)], {}, None),
        ([a_request(memory_mib=0)], {"chosen": None}, None),
    ],
)
def test_devices_were_booked_without_memory_where_zero_was_read(
    requests: list[Any], fields: dict[str, Any], count: int | None
) -> None:
    attempt = a_summary(["n1"], requests=requests, **{"chosen": "n1"} | fields)
    facts = DiagnosisFacts("default", "llm", "deepseek-a", ENDED, attempt, log_ended_at=ENDED)
    obstacle = find_zero_memory(facts, attempt)
    assert (obstacle.words["count"] if obstacle else None) == count
    if obstacle:
        assert (list(obstacle.nodes), obstacle.numbers, obstacle.clauses) == (["n1"], {"booked_memory_mib": 0}, [])
    unread = DiagnosisFacts("default", "llm", "deepseek-a", ENDED, attempt)
    assert find_zero_memory(unread, attempt) is None


@pytest.mark.parametrize(
    ("pod", "is_noted"), [("", True), ("llm/", True), ("llm/deepseek-a", False), ("deepseek-a", False)]
)
def test_a_denial_is_a_note_about_the_log_where_the_pod_has_no_name_yet(pod: str, is_noted: bool) -> None:
    fact = a_fact("admission denied", pod=pod, words="too much")
    notes = list(iterate_log_notes([fact], lambda time: f"{time:%H:%M}"))
    assert bool(notes) is is_noted


def test_notes_have_the_latest_line_of_each_kind_and_how_many_there_were() -> None:
    logged = [
        a_fact("not leader", -60), a_fact("not leader", 60), a_fact("scheduler crashed", words="panic"),
        a_fact("devices dropped", node="n1"),
    ]  # fmt: skip
    notes = [note.en for note in iterate_log_notes(logged, lambda time: f"at {time:%H:%M:%S}")]
    assert len(notes) == 2
    assert "panic" in notes[0]
    assert "at 03:07:23" in notes[1]
    assert list(iterate_log_notes([], str)) == []


@pytest.mark.parametrize(("count", "listed"), [(5, 5), (6, 5)])
def test_nodes_at_the_end_of_a_log_are_listed_the_best_first(count: int, listed: int) -> None:
    names = ["low", "high", "picked", *(f"n{number}" for number in range(count))]
    attempt = a_summary(
        names, verdict=[1, 1, 2, *[0] * count], score=[1.5, 9.25, 3.0, *[0.0] * count],
        refusal=[-1, -1, -1, *[0] * count], refused_by=[-1, -1, -1, *[0] * count],
        refusals=[a_refusal(CardInsufficientMemory=8)],
    )  # fmt: skip
    words = describe_nodes_at_end(attempt)
    passed, refused = words["passed"], words["refused"]
    assert isinstance(passed, InBothLanguages)
    assert isinstance(refused, InBothLanguages)
    assert passed.en == "high (9.25), picked (3.00), low (1.50)"
    assert (words["fit"], words["of"]) == (3, count + 3)
    assert refused.en.count("8/8 CardInsufficientMemory") == listed
    assert "refused" not in describe_nodes_at_end(a_summary(["a"], verdict=[1], refusal=[-1], refused_by=[-1]))
