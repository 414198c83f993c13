"""Fields of attempts in lists of waiting pods."""

from datetime import timedelta
from typing import Any

import pytest

from engine.diagnosis.facts import DiagnosisFacts
from engine.diagnosis.tree import diagnose
from engine.diagnosis.waiting import MAX_NEAREST, derive_wait, digest_wait_inputs
from schemas.documents.attempts import compute_verdict_digest
from schemas.documents.pod_states import describe_request
from schemas.events import (
    AttemptSummarized,
    Balance,
    BindOutcome,
    PodRef,
    PodWait,
    Reconstruction,
    Refusal,
    Report,
    Request,
)
from schemas.events.decisions import LockHolder
from tests.support.builders.events import STARTED, a_refusal, a_report, a_summary

TWO_OF_FOUR = a_refusal(CardInsufficientMemory=6, AllocatedCardsInsufficientRequest=2)
THREE_OF_FOUR = a_refusal(CardInsufficientMemory=5, AllocatedCardsInsufficientRequest=3)
FOUR = Request(container="main", vendor="NVIDIA", count=4, memory_mib=20_000, cores_percent=30)


def derive_existing_wait(summary: AttemptSummarized) -> PodWait:
    wait = derive_wait(summary)
    assert wait is not None
    return wait


def digest_inputs(summary: AttemptSummarized) -> bytes:
    return digest_wait_inputs(summary, compute_verdict_digest(summary))


def test_a_pod_that_was_placed_waits_for_nothing() -> None:
    bound = BindOutcome(node="node1", bound=True, ended_at=STARTED)
    assert derive_wait(a_summary(status="succeeded", chosen="node1", bind=bound)) is None


def test_the_obstacle_is_that_of_the_diagnosis() -> None:
    summary = a_summary([f"node{number}" for number in range(9)], requests=[FOUR])
    facts = DiagnosisFacts(summary.cluster, summary.pod.namespace, summary.pod.name, STARTED, attempt=summary)
    main = diagnose(facts).obstacle
    wait = derive_existing_wait(summary)
    assert main is not None
    assert (wait.code, wait.sentence_en, wait.sentence_zh) == (main.code, main.sentence.en, main.sentence.zh)
    assert wait.code == "CardInsufficientMemory"
    assert wait.devices == 4


def test_the_nodes_that_lack_the_fewest_devices_are_nearest() -> None:
    nodes = ["full", "three-1", "three-2", "two"]
    refusals = [a_refusal(CardInsufficientMemory=8), TWO_OF_FOUR, THREE_OF_FOUR]
    wait = derive_existing_wait(a_summary(nodes, requests=[FOUR], refusals=refusals, refusal=[0, 2, 2, 1]))
    assert (wait.nearest_nodes, wait.missing_devices, wait.asked) == (["three-1", "three-2"], 1, FOUR)
    assert wait.reasons == {"CardInsufficientMemory": 5, "AllocatedCardsInsufficientRequest": 3}


def test_what_other_pods_use_is_nearer_than_devices_of_another_type() -> None:
    refusals = [a_refusal(CardTypeMismatch=8), a_refusal(CardInsufficientMemory=8)]
    assert derive_existing_wait(a_summary(["a", "b"], refusals=refusals, refusal=[0, 1])).nearest_nodes == ["b"]


def test_no_node_is_near_that_was_refused_for_something_else() -> None:
    tainted = Refusal(bare="node(s) had untolerated taint {dedicated: infra}")
    wait = derive_existing_wait(a_summary(["a", "b"], refusals=[tainted]))
    assert (wait.nearest_nodes, wait.missing_devices, wait.reasons) == ([], None, {})
    assert wait.code == "TaintNotTolerated"


def test_no_node_is_near_where_one_fitted_and_its_bind_failed() -> None:
    bind = BindOutcome(node="node1", bound=False, error="node lock contention", ended_at=STARTED)
    wait = derive_existing_wait(
        a_summary(
            chosen="node1", bind=bind, requests=[FOUR], fit_nodes=1, verdict=[2, 0], refusal=[-1, 0], refused_by=[-1, 0]
        )
    )
    assert (wait.nearest_nodes, wait.missing_devices, wait.asked) == ([], None, FOUR)


def test_of_thousands_of_equally_near_nodes_some_are_kept() -> None:
    assert (
        len(derive_existing_wait(a_summary([f"node{number:04}" for number in range(5_000)])).nearest_nodes)
        == MAX_NEAREST
    )


def test_while_a_bind_has_no_result_nothing_is_known_to_be_in_the_way() -> None:
    wait = derive_existing_wait(
        a_summary(status="pending", chosen="node1", verdict=[2, 0], refusal=[-1, 0], refused_by=[-1, 0])
    )
    assert (wait.code, wait.sentence_en) == ("", "")


def test_the_pod_that_held_a_lock_is_not_named() -> None:
    holder = LockHolder(pod="secret/training-0", locked_at=STARTED)
    error = "node node1 has been locked within 5m0s: node lock contention"
    bind = BindOutcome(node="node1", bound=False, error=error, lock_holder=holder, ended_at=STARTED)
    wait = derive_existing_wait(
        a_summary(chosen="node1", bind=bind, verdict=[2, 0], refusal=[-1, 0], refused_by=[-1, 0])
    )
    assert "node1" in wait.sentence_en
    assert "secret" not in wait.model_dump_json()


def test_a_pod_of_another_namespace_in_the_words_of_a_scheduler_is_not_named() -> None:
    error = "node node1 is held by pod secret/training-0"
    bind = BindOutcome(node="node1", bound=False, error=error, ended_at=STARTED)
    wait = derive_existing_wait(
        a_summary(chosen="node1", bind=bind, verdict=[2, 0], refusal=[-1, 0], refused_by=[-1, 0])
    )
    assert "node node1 is held by pod a pod of another namespace" in wait.sentence_en
    assert "secret" not in wait.model_dump_json()


def test_models_and_pools_of_what_was_judged_are_sorted_and_named_once() -> None:
    balance = Balance(judged_nodes=2, judged_devices=16, models={"H800": 8, "A100": 8})
    wait = derive_wait(a_summary(["b1", "a1", "a2"], balance=balance), lambda node: node[0])
    assert wait is not None
    assert (wait.models, wait.pools) == (["A100", "H800"], ["a", "b"])


def test_what_is_asked_is_written_equally_for_equal_requests() -> None:
    assert describe_request(derive_existing_wait(a_summary(requests=[FOUR]))) == "4 x 20,000 MiB, 30 % of cores"
    half = Request(container="main", vendor="NVIDIA", count=1, memory_percent=50)
    assert describe_request(derive_existing_wait(a_summary(requests=[half]))) == "1 x 50 % of memory"
    both = [half, FOUR.model_copy(update={"container": "other"})]
    assert (
        describe_request(derive_existing_wait(a_summary(requests=both, refused_by=[1, 1])))
        == "4 of 5 x 20,000 MiB, 30 % of cores"
    )


LATER = STARTED + timedelta(minutes=7)
OTHER_TRY: dict[str, Any] = {
    "attempt_id": "other", "started_at": LATER, "ended_at": LATER, "version": 9, "attempts": 4,
    "first_judged_at": LATER,
    "pod": PodRef(namespace="llm", name="another-pod", uid="another"),
    "reports": [a_report(attempt_id="other", started_at=LATER)],
}  # fmt: skip


def test_pods_that_the_same_nodes_refuse_alike_have_equal_digests_and_wait_alike() -> None:
    summary = a_summary(requests=[FOUR], ended_at=STARTED, pod=PodRef(namespace="llm", name="a-pod"))
    other = summary.model_copy(update=OTHER_TRY)
    assert digest_inputs(summary) == digest_inputs(other)
    assert derive_existing_wait(summary) == derive_existing_wait(other)


@pytest.mark.parametrize(
    "change",
    [
        {"requests": [FOUR.model_copy(update={"count": 3})]},
        {"refusals": [a_refusal(CardInsufficientMemory=7)]},
        {"nodes": ["node1", "node3"]},
        {"refused_by": [0, -1]},
        {"refusal": [0, -1]},
        {"verdict": [1, 0]},
        {"scheduler_message": "0/2 nodes are available: 2 Insufficient cpu."},
        {"error": "no node was offered"},
        {"nominated": "node1"},
        {"offered_nodes": 3},
        {"fit_nodes": 1},
        {"ended_at": None},
        {"constraints": {"nvidia.com/use-gputype": "A100"}},
        {"refused_nodes": {"NodeUnfitPod": 2}},
        {"balance": Balance(judged_nodes=2, judged_devices=16, models={"H800": 8})},
        {"pod": PodRef(namespace="other", name="trainer")},
        {"reports": [a_report(source="hami-log", levels=[4])]},
        {"bind": BindOutcome(node="node1", bound=False, error="denied", ended_at=STARTED)},
        {"reconstruction": Reconstruction(agreement="equal")},
    ],
    ids=lambda change: next(iter(change)),
)
def test_whatever_a_wait_may_depend_on_changes_the_digest(change: dict[str, Any]) -> None:
    fields: dict[str, Any] = {"requests": [FOUR], "verdicts": ["refused", "fits"], "verdict": [0, 0]}
    fields |= {"ended_at": STARTED, "offered_nodes": 2}
    before = a_summary(**fields)
    assert digest_inputs(before) != digest_inputs(a_summary(**{"nodes": before.nodes, **fields, **change}))


def test_a_pod_that_its_schedulers_text_names_waits_for_itself_and_the_others_of_its_gang_for_it() -> None:
    words = (
        "pod group is not ready, 2 Pending, 2 minAvailable; Pending: 2 Unschedulable. "
        "Origin reason is ring-1: 0/5 nodes are unavailable: 5 Insufficient nvidia.com/gpu."
    )
    report = Report(source="kube-events", attempt_id="a", started_at=STARTED)
    fields: dict[str, Any] = {"scheduler_message": words, "reports": [report], "refusals": [], "refusal": []}
    fields |= {
        "verdict": [],
        "refused_by": [],
        "refused_nodes": {"Insufficient nvidia.com/gpu": 5},
        "ended_at": STARTED,
    }
    blamed, waiting = (a_summary([], pod=PodRef(namespace="llm", name=name), **fields) for name in ("ring-1", "ring-2"))
    assert digest_inputs(blamed) != digest_inputs(waiting)
    assert derive_existing_wait(waiting).code == "GangWaits"
    assert derive_existing_wait(blamed).code not in ("GangWaits", "")
