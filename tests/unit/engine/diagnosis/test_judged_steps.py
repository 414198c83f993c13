"""The scheduler's counts of nodes against verdicts that were worked out on objects; the counts are set by hand."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from engine.diagnosis.facts import DiagnosisFacts, Evidence, PodOnCluster
from engine.diagnosis.headline import FITS_NOW
from engine.diagnosis.judged_steps import (
    check_judged,
    compare_with_scheduler,
    counts_only,
    is_of_extender,
    list_unexplained,
    sum_by_obstacle,
    uses_judged,
)
from engine.diagnosis.outcome import FoundObstacle, JudgedPod, TreeStep
from schemas.events import AttemptSummarized, Condition, Reconstruction
from tests.support.builders.events import STARTED, a_summary

CPU, TAINT = "Insufficient cpu", "node(s) had untolerated taint(s)"
OLD_TAINT = "node(s) had untolerated taint {gpu: only}"
PORT = "node(s) didn't have free ports for the requested pod ports"


def an_attempt(counts: dict[str, int] | None = None, **fields: Any) -> AttemptSummarized:
    plain: dict[str, Any] = {"refused_nodes": counts or {}, "refusals": [], "refusal": [], "verdict": []}
    return a_summary([], **plain | {"refused_by": [], "score": [], "offered_nodes": 3} | fields)


def ask(attempt: AttemptSummarized | None, *, seconds: int = 30) -> DiagnosisFacts:
    return DiagnosisFacts("default", "llm", "trainer", STARTED + timedelta(seconds=seconds), attempt)


def an_obstacle(code: str, nodes: int = 1) -> FoundObstacle:
    return FoundObstacle(code, {}, node_count=nodes)


def a_judgement(
    counts: dict[str, int] | None = None,
    fitting: Sequence[str] = (),
    obstacles: Sequence[FoundObstacle] = (),
    *,
    is_certain: bool = True,
    **fields: Any,
) -> JudgedPod:
    return JudgedPod(obstacles, fitting, 3, counts or {}, is_certain, **fields)


def leave_open(counts: dict[str, int], **fields: Any) -> JudgedPod:
    return a_judgement(counts, is_certain=False, **fields)


def list_codes(step: TreeStep) -> list[str]:
    return [obstacle.code for obstacle in step.obstacles]


@pytest.mark.parametrize(
    ("fitting", "is_certain", "answer"),
    [(["n1"], True, "yes"), (["n1"], False, "not known"), ([], True, "no"), ([], False, "no")],
)
def test_a_fit_is_known_only_where_everything_that_decides_was_read(
    fitting: list[str], is_certain: bool, answer: str
) -> None:
    step = check_judged(ask(None), a_judgement(fitting=fitting, is_certain=is_certain))
    assert step.answer == answer
    assert uses_judged([step])
    assert not uses_judged([TreeStep("NodesOpen", "no")])


@pytest.mark.parametrize(
    ("theirs", "ours", "words"),
    [
        ({CPU: 2, TAINT: 1}, {CPU: 2, TAINT: 1}, "kube-scheduler counted the same nodes under the same reasons"),
        ({CPU: 3}, {CPU: 2, TAINT: 1}, "kube-scheduler counted otherwise: 3 Insufficient cpu"),
    ],
)
def test_the_evidence_says_whether_both_counted_alike(theirs: dict[str, int], ours: dict[str, int], words: str) -> None:
    step = check_judged(ask(an_attempt(theirs)), a_judgement(ours))
    assert [evidence.words for evidence in step.evidence if evidence.kind == "attempt"] == [words]
    assert not [item for item in check_judged(ask(None), a_judgement(ours)).evidence if item.kind == "attempt"]


@pytest.mark.parametrize(
    ("attempt", "is_certain", "is_stated"),
    [
        (an_attempt({CPU: 3}), True, True),
        (an_attempt({CPU: 3}), False, False),
        (an_attempt({CPU: 3}, chosen="n1"), True, False),
        (None, True, False),
    ],
    ids=["refused", "open", "chosen", "no attempt"],
)
def test_that_the_pod_fits_now_contradicts_only_an_attempt_that_refused_it(
    attempt: AttemptSummarized | None, is_certain: bool, is_stated: bool
) -> None:
    step = check_judged(ask(attempt), a_judgement({CPU: 2}, ["n1"], is_certain=is_certain))
    assert (FITS_NOW in list_codes(step)) is is_stated
    assert FITS_NOW not in list_codes(check_judged(ask(attempt), a_judgement({CPU: 3})))


@pytest.mark.parametrize(("seconds", "clauses"), [(59, []), (60, ["untried"]), (61, ["untried"])])
def test_a_scheduler_that_has_not_tried_again_for_a_minute_is_named(seconds: int, clauses: list[str]) -> None:
    step = check_judged(ask(an_attempt({CPU: 3}), seconds=seconds), a_judgement(fitting=["n1"]))
    assert [list(obstacle.clauses) for obstacle in step.obstacles if obstacle.code == FITS_NOW] == [clauses]


@pytest.mark.parametrize(
    ("theirs", "codes"),
    [
        (
            {CPU: 2, TAINT: 3},
            ["InsufficientResource", "NodeNotReady", "TaintNotTolerated"],
        ),  # one reason for all taints
        ({CPU: 2, TAINT: 1}, ["InsufficientResource", "NodeNotReady"]),
        ({CPU: 1, TAINT: 2}, ["TaintNotTolerated"]),
        ({CPU: 2}, ["InsufficientResource"]),
        ({PORT: 9}, []),
    ],
)
def test_where_a_node_fits_now_only_what_the_scheduler_counted_is_an_obstacle(
    theirs: dict[str, int], codes: list[str]
) -> None:
    obstacles = [
        an_obstacle("InsufficientResource", 2),
        an_obstacle("NodeNotReady"),
        an_obstacle("TaintNotTolerated", 2),
    ]
    attempt = an_attempt(theirs)
    step = check_judged(ask(attempt), a_judgement({}, ["n1"], obstacles))
    assert list_codes(step) == [*codes, FITS_NOW]
    # Where none fits, all of them are.
    assert len(check_judged(ask(attempt), a_judgement({}, [], obstacles)).obstacles) == 3


@pytest.mark.parametrize(("status", "agreement"), [("False", "equal"), ("True", "not compared")])
def test_without_an_attempt_the_counts_are_those_of_the_pods_condition(status: str, agreement: str) -> None:
    refusal = Condition(type="PodScheduled", status=status, message="0/3 nodes are available: 3 Insufficient cpu.")
    facts = replace(ask(None), pod=PodOnCluster(Evidence("pod", "p"), conditions=[refusal]))
    comparison = compare_with_scheduler(facts, a_judgement({CPU: 3}))
    assert comparison
    assert comparison.agreement == agreement
    assert comparison.scheduler_counts == ({CPU: 3} if status == "False" else {})


@pytest.mark.parametrize(
    ("theirs", "judged", "agreement", "words"),
    [
        ({CPU: 3}, a_judgement({CPU: 3}), "equal", "proved: the scheduler counted the same (3 Insufficient cpu)"),
        ({OLD_TAINT: 3}, a_judgement({TAINT: 3}), "equal", "proved"),  # releases word it differently
        ({CPU: 3}, a_judgement({CPU: 2}), "different", "counted 3 Insufficient cpu; the objects give 2 Insufficient"),
        ({CPU: 3, "CardInsufficientMemory": 1}, a_judgement({CPU: 3}), "equal", "proved"),  # HAMi's are no filter's
        ({}, a_judgement({CPU: 3}), "not compared", "(3 Insufficient cpu); the scheduler left no counts"),
        ({CPU: 3}, leave_open({CPU: 3}, unread=frozenset(("Pod", "Node"))), "not compared", "Node, Pod could not be"),
        ({CPU: 3}, leave_open({}), "not compared", "scheduler's counts (3 Insufficient cpu), because what"),
        ({CPU: 3}, leave_open({}, unread=frozenset(("Pod",))), "not compared", "there is no Pod among"),
        ({CPU: 3}, leave_open({}, causes=["a claim is malformed"]), "not compared", "open: a claim is malformed"),
    ],
)  # fmt: skip
def test_counts_are_compared_by_what_they_are_about(
    theirs: dict[str, int], judged: JudgedPod, agreement: str, words: str
) -> None:
    comparison = compare_with_scheduler(ask(an_attempt(theirs)), judged)
    assert comparison
    assert comparison.agreement == agreement
    assert words in comparison.text.en, comparison.text.en
    assert comparison.scheduler_counts == theirs


def test_a_readers_comparison_stands_where_nothing_is_judged_now() -> None:
    reconstruction = Reconstruction(agreement="equal", counts={CPU: 3})
    comparison = compare_with_scheduler(ask(an_attempt({CPU: 3}, reconstruction=reconstruction)), None)
    assert comparison
    assert (comparison.agreement, comparison.counts) == ("equal", {CPU: 3})
    assert compare_with_scheduler(ask(an_attempt({CPU: 3})), None) is None
    assert compare_with_scheduler(ask(None), None) is None


def test_a_readers_equal_counts_outlast_a_fit_of_now() -> None:
    attempt = an_attempt({CPU: 3}, reconstruction=Reconstruction(agreement="equal", counts={CPU: 3}))
    comparison = compare_with_scheduler(ask(attempt), a_judgement({CPU: 2}, ["n1"]))
    assert comparison
    assert comparison.agreement == "equal"
    other = an_attempt({CPU: 3}, reconstruction=Reconstruction(agreement="different", counts={CPU: 1}))
    judged = compare_with_scheduler(ask(other), a_judgement({CPU: 2}, ["n1"]))
    assert judged
    assert judged.counts == {CPU: 2}


def test_what_the_objects_do_not_explain_is_left_to_the_attempt() -> None:
    attempt = an_attempt({CPU: 2, PORT: 1, "NodeUnfitPod": 4})
    of_filters = a_judgement({CPU: 2}, (), [an_obstacle("InsufficientResource", 2)])
    assert list_unexplained(attempt, of_filters) == {PORT: 1, "NodeUnfitPod": 4}
    # Devices that were judged one by one explain HAMi's single word for a node.
    of_devices = a_judgement(
        {CPU: 2}, (), [an_obstacle("InsufficientResource", 2), an_obstacle("CardInsufficientMemory")]
    )
    assert list_unexplained(attempt, of_devices) == {PORT: 1}


@pytest.mark.parametrize(
    ("attempt", "is_counted"),
    [
        (an_attempt({CPU: 3}), True),
        (an_attempt({}), False),
        (an_attempt({CPU: 3}, chosen="n1"), False),
        (a_summary(["n1"], refused_nodes={CPU: 3}), False),
        (a_summary(["n1"], refused_nodes={CPU: 3}, reconstruction=Reconstruction(agreement="equal")), True),
    ],
    ids=["counts", "no counts", "chosen", "nodes", "nodes of a reader"],
)
def test_a_source_that_counts_names_no_nodes(attempt: AttemptSummarized, is_counted: bool) -> None:
    assert counts_only(attempt) is is_counted


def test_sums_are_by_obstacle_and_resource() -> None:
    sums = sum_by_obstacle({TAINT: 1, OLD_TAINT: 2, CPU: 3, "Insufficient memory": 4})
    assert sums == {
        ("TaintNotTolerated", ""): 3,
        ("InsufficientResource", "cpu"): 3,
        ("InsufficientResource", "memory"): 4,
    }


def test_reasons_of_hamis_catalogue_are_those_of_an_extender() -> None:
    assert is_of_extender("CardInsufficientMemory")
    assert not is_of_extender(CPU)
