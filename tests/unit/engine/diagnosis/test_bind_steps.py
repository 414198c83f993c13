"""Questions about the bind, each answered from an attempt in which a node passed.

The words of refusals are those of a real API server (apimachinery's ``NewForbidden``, apiserver's admission plugins)
and of HAMi's node lock.
"""

from datetime import timedelta
from typing import Any

import pytest

from engine.diagnosis.bind_steps import answer_bind_questions, build_lock_obstacle
from engine.diagnosis.evidence import Evidence, Unknown
from engine.diagnosis.facts import DiagnosisFacts, HeldLock, NodeFacts
from engine.diagnosis.outcome import TreeStep
from schemas.events import BindOutcome, LockHolder
from tests.support.builders.events import STARTED, a_refusal, a_summary
from tests.support.builders.layer_objects import to_english

BOUND_AT = STARTED + timedelta(seconds=2)
NOW = STARTED + timedelta(minutes=3)
FORBIDDEN = (
    'pods "job-0" is forbidden: User "system:serviceaccount:kube-system:hami-scheduler" cannot create resource '
    '"pods/binding" in API group "" in the namespace "lab"'
)
BY_WEBHOOK = 'admission webhook "bind.example.com" denied the request: not today'
BY_POLICY = (
    "pods \"job-0\" is forbidden: ValidatingAdmissionPolicy 'no-binds' with binding 'all' denied request: not today"
)


def a_bind(error: str = "", **fields: Any) -> BindOutcome:
    plain = {"node": "node1", "bound": not error, "error": error, "ended_at": BOUND_AT}
    return BindOutcome.model_validate(plain | fields)


def answer(attempt: dict[str, Any], **more: Any) -> dict[str, TreeStep]:
    fields: dict[str, Any] = {"chosen": "node1", "fit_nodes": 1, "ended_at": STARTED}
    summary = a_summary(**fields | attempt)
    facts = DiagnosisFacts("default", "lab", "job-0", NOW, summary, **more)
    return {step.question: step for step in answer_bind_questions(facts, summary)}


def list_codes(steps: dict[str, TreeStep]) -> list[tuple[str, str, list[str]]]:
    return [(step.question, step.answer, [obstacle.code for obstacle in step.obstacles]) for step in steps.values()]


UNKNOWN = [Unknown("observations", "not-recorded"), Unknown("records", "not-recorded"), Unknown("nodes", "not-given")]


def test_a_pod_that_was_bound() -> None:
    steps = answer({"bind": a_bind()}, unknown=UNKNOWN)
    assert list_codes(steps) == [("Bound", "yes", [])]
    [evidence] = steps["Bound"].evidence
    assert (evidence.kind, evidence.time, list(steps["Bound"].not_known)) == ("bind", BOUND_AT, UNKNOWN[:1])


def test_a_chosen_node_without_a_bind_is_pending_since_the_end_of_the_filter() -> None:
    ended_at = STARTED + timedelta(minutes=1)
    steps = answer({"ended_at": ended_at}, unknown=UNKNOWN)
    assert list_codes(steps) == [("Bound", "not known", ["BindPending"])]
    [obstacle] = steps["Bound"].obstacles
    words = {name: to_english(word) for name, word in obstacle.words.items()}
    assert words == {"node": "node1", "namespace": "lab", "name": "job-0", "ago": "2 min"}
    assert (obstacle.numbers, obstacle.nodes) == ({"decided_seconds_ago": 180}, ["node1"])
    assert list(steps["Bound"].not_known) == UNKNOWN[:1]


def test_a_node_without_an_end_of_the_filter_is_pending_since_its_start() -> None:
    [obstacle] = answer({"ended_at": None})["Bound"].obstacles
    assert to_english(obstacle.words["ago"]) == "3 min"


@pytest.mark.parametrize(
    ("attempt", "expected"),
    [
        ({"nominated": "node1"}, [("Bound", "no", ["WaitsForVictims"])]),
        ({"nominated": "node2"}, [("Bound", "not known", ["BindPending"])]),
        ({"nominated": "node1", "bind": a_bind()}, [("Bound", "yes", [])]),
    ],
)
def test_a_pod_that_waits_for_the_ends_of_others_on_its_node(attempt: dict[str, Any], expected: list[Any]) -> None:
    steps = answer(attempt)
    assert list_codes(steps) == expected
    waits = expected[0][2] == ["WaitsForVictims"]
    assert steps["Bound"].is_end == waits
    if waits:
        assert (steps["Bound"].obstacles[0].words, steps["Bound"].obstacles[0].nodes) == ({"node": "node1"}, ["node1"])


def test_a_log_that_ends_before_the_bind() -> None:
    ended_at = STARTED + timedelta(seconds=1)
    steps = answer({"ended_at": ended_at}, log_ended_at=STARTED + timedelta(days=1))
    assert list_codes(steps) == [("Bound", "not known", ["LogEndsBeforeBind"])]
    [obstacle] = steps["Bound"].obstacles
    assert obstacle.words == {
        "node": "node1",
        "decided": "2026-11-21 03:06:24 UTC",
        "ended": "03:06:23 UTC",
    }
    [started] = answer({"ended_at": None}, log_ended_at=STARTED)["Bound"].obstacles
    assert started.words["decided"] == "03:06:23 UTC"


@pytest.mark.parametrize("nodes", [0, 2])
def test_a_log_that_ends_after_the_filter(nodes: int) -> None:
    """The nodes that passed are named with their scores, the best first."""
    names = ["node1", "node2", "node3"]
    rows: dict[str, Any] = {
        "verdict": [1, 0, 1],
        "score": [1.0, 0.0, 2.5],
        "refused_by": [-1, 0, -1],
        "refusal": [-1, 0, -1],
    }
    if not nodes:
        rows = {"nodes": [], "verdict": [], "score": [], "refused_by": [], "refusal": []}
    attempt = {"nodes": names, "chosen": None, "fit_nodes": 2, "refusals": [a_refusal(CardInsufficientMemory=8)]}
    steps = answer(attempt | rows, log_ended_at=STARTED)
    assert list_codes(steps) == [("Bound", "not known", ["LogEndsAfterFilter"])]
    [obstacle] = steps["Bound"].obstacles
    assert (obstacle.words["ended"], obstacle.words["scheduler"]) == ("03:06:23 UTC", "hami-scheduler")
    assert obstacle.numbers == {"fit_nodes": 2, "of_nodes": 3 if nodes else 0}
    assert obstacle.clauses == (["refused"] if nodes else [])
    if nodes:
        assert to_english(obstacle.words["passed"]) == "node3 (2.50), node1 (1.00)"


def test_an_attempt_without_an_end_in_the_records() -> None:
    steps = answer({"chosen": None, "fit_nodes": 2}, unknown=UNKNOWN)
    assert list_codes(steps) == [("Bound", "not known", ["AttemptUnfinished"])]
    [obstacle] = steps["Bound"].obstacles
    words = {name: to_english(word) for name, word in obstacle.words.items()}
    assert (words, obstacle.numbers) == ({"ago": "3 min", "fit": 2}, {"fit_nodes": 2})
    assert list(steps["Bound"].not_known) == UNKNOWN[1:2]


@pytest.mark.parametrize(
    ("error", "may_bind", "bound"),
    [
        (FORBIDDEN, ("no", ["SchedulerForbidden"]), []),
        (BY_WEBHOOK, ("yes", []), ["BindDenied"]),
        ("etcdserver: request timed out", ("yes", []), ["BindingFailed"]),
        # A policy's refusal begins as that of a right which is missing, and no right would help.
        (BY_POLICY, ("yes", []), ["BindDenied"]),
    ],
)
def test_a_bind_that_the_api_server_refused(error: str, may_bind: tuple[str, list[str]], bound: list[str]) -> None:
    steps = answer({"bind": a_bind(error)})
    expected = [("NodeUnlocked", "yes", []), ("SchedulerMayBind", *may_bind), ("Bound", "no", bound)]
    assert list_codes(steps) == expected
    [obstacle] = [obstacle for step in steps.values() for obstacle in step.obstacles]
    assert (obstacle.words, obstacle.nodes) == ({"node": "node1", "words": error}, ["node1"])
    assert [evidence.words for evidence in obstacle.evidence] == [error]


LOCKED = a_bind(
    "node lock contention", lock_holder=LockHolder(pod="lab/other", locked_at=BOUND_AT - timedelta(seconds=90))
)


def test_a_locked_node_ends_the_bind_before_rights_matter() -> None:
    steps = answer({"bind": LOCKED}, unknown=UNKNOWN)
    assert list_codes(steps) == [
        ("NodeUnlocked", "no", ["node lock contention"]),
        ("SchedulerMayBind", "not known", []),
        ("Bound", "no", []),
    ]
    [obstacle] = steps["NodeUnlocked"].obstacles
    assert (obstacle.words["holder"], to_english(obstacle.words["held"])) == ("lab/other", "90 s")
    assert (obstacle.clauses, obstacle.numbers) == (["holder", "held"], {"held_seconds": 90})
    assert (obstacle.nodes, obstacle.node_count, list(steps["NodeUnlocked"].not_known)) == (["node1"], 1, UNKNOWN[2:])


def a_node(name: str = "node1", holder: str = "lab/third", *, is_locked: bool = True) -> NodeFacts:
    lock = HeldLock(STARTED, holder) if is_locked else None
    return NodeFacts(name, Evidence("node", f"/nodes/{name}", NOW), lock=lock)


STILL = ["holder", "held", "still"]


@pytest.mark.parametrize(
    ("nodes", "is_latest", "clauses"),
    [
        ([a_node()], True, STILL),
        ([a_node("node2"), a_node()], True, STILL),
        ([a_node("node2")], True, STILL[:2]),
        ([a_node(is_locked=False)], True, STILL[:2]),
        # Later attempts followed: the present state does not explain it.
        ([a_node()], False, STILL[:2]),
    ],
)
def test_a_lock_that_the_node_still_has(nodes: list[NodeFacts], is_latest: bool, clauses: list[str]) -> None:
    [obstacle] = answer({"bind": LOCKED}, nodes=nodes, is_latest=is_latest)["NodeUnlocked"].obstacles
    assert (obstacle.clauses, obstacle.words["holder"]) == (clauses, "lab/other")
    if clauses == STILL:
        assert obstacle.words["since"] == "03:06:23 UTC"
        assert obstacle.evidence[-1] == Evidence("node", "/nodes/node1", NOW, words="locked since 03:06:23 UTC")
    else:
        assert [evidence.kind for evidence in obstacle.evidence] == ["bind"]


@pytest.mark.parametrize(
    ("holder", "clauses", "numbers"),
    [
        (LockHolder(pod="", locked_at=None), [], {}),
        (LockHolder(pod="lab/other", locked_at=None), ["holder"], {}),
        # A lock of the same second, or of a clock that is ahead, was held for no time.
        (LockHolder(pod="lab/other", locked_at=BOUND_AT), ["holder"], {"held_seconds": 0}),
        (LockHolder(pod="lab/other", locked_at=BOUND_AT + timedelta(seconds=5)), ["holder"], {"held_seconds": 0}),
        (
            LockHolder(pod="lab/other", locked_at=BOUND_AT - timedelta(seconds=1)),
            ["holder", "held"],
            {"held_seconds": 1},
        ),
    ],
)
def test_how_long_the_lock_was_held_when_the_bind_was_tried(
    holder: LockHolder, clauses: list[str], numbers: dict[str, int]
) -> None:
    bind = a_bind("node lock contention", lock_holder=holder)
    [obstacle] = answer({"bind": bind}, nodes=[a_node()], is_latest=False)["NodeUnlocked"].obstacles
    assert (obstacle.clauses, obstacle.numbers) == (clauses, numbers)


@pytest.mark.parametrize(("holder", "clauses"), [("lab/third", ["holder", "still"]), ("", ["still"])])
def test_without_a_bind_the_node_names_the_holder(holder: str, clauses: list[str]) -> None:
    facts = DiagnosisFacts("default", "lab", "job-0", NOW, nodes=[a_node(holder=holder)])
    obstacle = build_lock_obstacle(facts, "node1", [])
    assert (obstacle.clauses, obstacle.words.get("holder", "")) == (clauses, holder)


def test_a_bind_that_names_no_holder_is_not_explained_by_a_later_lock() -> None:
    bind = a_bind("node lock contention", lock_holder=LockHolder(pod="", locked_at=None))
    [obstacle] = answer({"bind": bind}, nodes=[a_node()])["NodeUnlocked"].obstacles
    assert (obstacle.clauses, "holder" in obstacle.words) == (["still"], False)


def a_finding(**numbers: int) -> Evidence:
    return Evidence("finding", "ReleasingMemoryCounted", numbers=numbers, words="node1 GPU-7")


def test_memory_that_others_had_not_given_back_is_named_from_the_log() -> None:
    finding = a_finding(memory_requested_mib=4000, memory_available_mib=1000, memory_releasing_mib=5000)
    other = Evidence("finding", "Other", numbers={"memory_requested_mib": 1})
    attempt = {"bind": a_bind()}
    steps = answer(attempt, findings=[other, finding], log_ended_at=NOW)
    assert list_codes(steps) == [("NodePassed", "yes", ["ReleasingMemoryCounted"]), ("Bound", "yes", [])]
    [obstacle] = steps["NodePassed"].obstacles
    words = {"node": "node1", "device": "GPU-7", "asked": 4000, "free": 1000, "releasing": 5000, "over": 3000}
    assert (obstacle.words, obstacle.nodes, obstacle.node_count) == (words, ["node1"], 1)
    assert (obstacle.numbers, obstacle.evidence) == (finding.numbers, [finding])
    # Where records are read, the placements show it.
    assert list_codes(answer(attempt, findings=[finding])) == [("Bound", "yes", [])]
    assert list_codes(answer(attempt, findings=[other], log_ended_at=NOW)) == [("Bound", "yes", [])]


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ({"memory_requested_mib": 4000}, None),
        ({"memory_available_mib": 4000}, None),
        ({"memory_requested_mib": 4000, "memory_available_mib": 0}, (0, 4000)),
        ({"memory_requested_mib": 4000, "memory_available_mib": 5000, "memory_releasing_mib": 7}, (7, 0)),
    ],
)
def test_counted_memory_needs_both_amounts(numbers: dict[str, int], expected: tuple[int, int] | None) -> None:
    steps = answer({"bind": a_bind()}, findings=[a_finding(**numbers)], log_ended_at=NOW)
    words = steps["NodePassed"].obstacles[0].words if "NodePassed" in steps else None
    assert (words and (words["releasing"], words["over"])) == expected
