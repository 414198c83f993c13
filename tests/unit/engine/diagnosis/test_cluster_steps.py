"""Questions about what the pod needs from the cluster, each answered from a few facts.

A handshake that starts with ``Deleted_`` is that of a node which HAMi's scheduler has given up; one that starts with
``Requesting_`` is its question, which device plugins since v2.8 leave unanswered.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from engine.diagnosis.cluster_steps import (
    check_open_nodes,
    check_quotas,
    check_registered_devices,
    find_closed_nodes,
    is_blocking,
)
from engine.diagnosis.evidence import Evidence, Unknown
from engine.diagnosis.facts import DiagnosisFacts, NodeFacts, PodOnCluster, Quota, SchedulerState
from engine.diagnosis.open_nodes import Closed
from engine.diagnosis.outcome import FoundObstacle, TreeStep
from schemas.events import NodeProblem
from tests.support.builders.events import STARTED, a_request
from tests.support.builders.layer_objects import to_english

POD = Evidence("pod", "/pods/job-0")
UNKNOWN = [Unknown(subject, "not-given") for subject in ("quotas", "nodes", "pod", "registrations")]
COMPLETE_DEVICE = a_request(count=1, memory_mib=None)


def build_facts(**facts: Any) -> DiagnosisFacts:
    return DiagnosisFacts("default", "lab", "job-0", STARTED, **{"unknown": UNKNOWN} | facts)


def list_subjects(step: TreeStep) -> list[str]:
    return [unknown.subject for unknown in step.not_known]


def translate(obstacle: FoundObstacle) -> dict[str, str | int]:
    return {name: to_english(word) for name, word in obstacle.words.items()}


def a_quota(name: str, hard: dict[str, str], used: dict[str, str]) -> Quota:
    return Quota(name, Evidence("quota", name, STARTED, "api-server"), hard, used)


@pytest.mark.parametrize(
    ("hard", "used", "is_full"),
    [
        ("8", "8", True),
        ("8", "9", True),
        ("8", "7", False),
        ("0", None, True),
        ("8", None, False),
        # Amounts that nobody can read fill nothing.
        ("lots", "9", False),
        ("8", "lots", False),
    ],
)
def test_a_quota_is_full_when_all_of_a_resource_is_used(hard: str, used: str | None, is_full: bool) -> None:
    quota = a_quota("team", {"limits.nvidia.com/gpu": hard}, {} if used is None else {"limits.nvidia.com/gpu": used})
    step = check_quotas(build_facts(quotas=[a_quota("open", {"pods": "5"}, {"pods": "4"}), quota]))
    assert step.answer == ("no" if is_full else "yes")
    if is_full:
        numbers = {"limits.nvidia.com/gpu.used": int(used or 0), "limits.nvidia.com/gpu.hard": int(hard)}
        assert step.evidence == [Evidence("quota", "team", STARTED, "api-server", numbers)]
    else:
        assert [(evidence.record, evidence.numbers) for evidence in step.evidence] == [("open", {}), ("team", {})]


def test_a_namespace_without_quotas_has_capacity_and_unread_ones_are_not_known() -> None:
    assert check_quotas(build_facts(quotas=[])) == TreeStep("QuotaLeft", "yes", [])
    step = check_quotas(build_facts())
    assert (step.answer, list_subjects(step)) == ("not known", ["quotas"])


def a_node(
    name: str, *taints: str, labels: dict[str, str] | None = None, cordoned: bool = False, **facts: Any
) -> NodeFacts:
    entries = [{"key": taint, "effect": "NoSchedule"} for taint in taints]
    spec = {"taints": entries, "unschedulable": cordoned}
    plain: dict[str, Any] = {"node": {"metadata": {"name": name, "labels": labels or {}}, "spec": spec}}
    return NodeFacts(name, Evidence("node", f"/nodes/{name}", STARTED), **plain | facts)


def a_pod(**fields: Any) -> PodOnCluster:
    return PodOnCluster(POD, **{"spec": {}} | fields)


TAINTED = a_node("n1", "gpu")
CORDONED = a_node("n2", cordoned=True)
OPEN = a_node("n3")


def test_nodes_that_refuse_the_pod_now_are_found_without_those_that_were_judged() -> None:
    closed = {"n1": Closed("TaintNotTolerated", "gpu:NoSchedule"), "n2": Closed("NodeCordoned")}
    unread = NodeFacts("n4", Evidence("node", "n4"))
    facts: dict[str, Any] = {"pod": a_pod(), "nodes": [TAINTED, CORDONED, OPEN, unread]}
    assert find_closed_nodes(build_facts(**facts)) == closed
    assert find_closed_nodes(build_facts(**facts), ["n1"]) == {"n2": Closed("NodeCordoned")}
    # The present state does not explain an attempt that others followed.
    assert find_closed_nodes(build_facts(**facts | {"is_latest": False})) == {}
    assert find_closed_nodes(build_facts(**facts | {"pod": None})) == {}
    assert find_closed_nodes(build_facts(**facts | {"pod": a_pod(spec=None)})) == {}
    assert find_closed_nodes(build_facts(**facts | {"nodes": None})) == {}


def check_nodes(nodes: Sequence[NodeFacts], spec: dict[str, Any] | None = None, *, is_judged: bool = False) -> TreeStep:
    facts = build_facts(pod=a_pod(spec=spec or {}), nodes=nodes)
    closed = find_closed_nodes(facts)
    return check_open_nodes(facts, closed, is_judged=True) if is_judged else check_open_nodes(facts, closed)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [({"pod": a_pod()}, "not known"), ({"nodes": [OPEN]}, "not known"), ({"pod": a_pod(), "nodes": [OPEN]}, "yes")],
)
def test_nodes_and_the_pods_spec_are_needed_to_find_an_open_node(facts: dict[str, Any], expected: str) -> None:
    step = check_open_nodes(build_facts(**facts), {})
    assert (step.answer, list_subjects(step)) == (expected, ["nodes", "pod"] if expected == "not known" else ["nodes"])


@pytest.mark.parametrize(
    ("nodes", "is_judged", "expected"),
    [
        ([TAINTED, CORDONED], False, ("no", ["NodeCordoned", "TaintNotTolerated"])),
        # An open node leaves no obstacle, unless a scheduler has refused it.
        ([TAINTED, OPEN], False, ("yes", [])),
        ([TAINTED, OPEN], True, ("yes", ["TaintNotTolerated"])),
        ([OPEN], False, ("yes", [])),
        ([OPEN], True, ("yes", [])),
    ],
)
def test_each_cause_that_closes_nodes_is_an_obstacle(
    nodes: list[NodeFacts], is_judged: bool, expected: tuple[str, list[str]]
) -> None:
    step = check_nodes(nodes, is_judged=is_judged)
    assert (step.answer, [obstacle.code for obstacle in step.obstacles]) == expected


def test_closed_nodes_are_evidence_and_five_are_shown() -> None:
    nodes = [a_node(f"gpu-{index}", "gpu") for index in range(6)]
    step = check_nodes([CORDONED, *nodes])
    rows = [(evidence.record, evidence.words) for evidence in step.evidence]
    assert rows[:2] == [("/nodes/n2", "NodeCordoned"), ("/nodes/gpu-0", "TaintNotTolerated: gpu:NoSchedule")]
    assert len(rows) == 5
    _, tainted = step.obstacles
    assert (tainted.numbers, tainted.node_count, len(tainted.evidence)) == ({"nodes": 6, "of_nodes": 7}, 6, 5)


def test_taints_are_listed_once_in_order() -> None:
    [obstacle] = check_nodes([a_node("n1", "gpu"), a_node("n2", "batch"), a_node("n3", "gpu")]).obstacles
    words = {"refused": 3, "share": "3 of 3 nodes", "taints": "batch:NoSchedule, gpu:NoSchedule"}
    assert (translate(obstacle), obstacle.clauses, obstacle.nodes) == (words, ["taints"], ["n1", "n2", "n3"])


FAST = {"tier": "fast"}


def test_what_closes_the_selected_nodes_counts_and_not_the_selector() -> None:
    nodes = [a_node("n1", labels=FAST, cordoned=True), OPEN]
    [obstacle] = check_nodes(nodes, {"nodeSelector": FAST}).obstacles
    words = {"refused": 1, "share": "the only node that the pod selects", "taints": ""}
    assert (obstacle.code, translate(obstacle), obstacle.nodes) == ("NodeCordoned", words, ["n1"])
    assert (obstacle.clauses, obstacle.numbers) == ([], {"nodes": 1, "of_nodes": 1})


def test_a_selector_that_excludes_every_node_is_the_obstacle() -> None:
    [obstacle] = check_nodes([TAINTED, OPEN], {"nodeSelector": FAST | {"zone": "a"}}).obstacles
    words = {"refused": 2, "share": "2 of 2 nodes", "taints": "", "selector": "tier=fast, zone=a"}
    assert (obstacle.code, translate(obstacle), obstacle.clauses) == ("AffinityMismatch", words, ["selector"])


def test_an_affinity_that_excludes_every_node_names_no_selector() -> None:
    expression = {"key": "tier", "operator": "In", "values": ["fast"]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    [obstacle] = check_nodes([OPEN], {"affinity": affinity}).obstacles
    assert (obstacle.code, obstacle.clauses) == ("AffinityMismatch", [])


def a_problem(code: str = "RegistrationMissing", **fields: Any) -> NodeProblem:
    return NodeProblem.model_validate({"code": code, "vendor": "NVIDIA", "message": "m"} | fields)


def check_devices(
    *nodes: NodeFacts, unregistered: frozenset[str] | None = None, requests: Any = (COMPLETE_DEVICE,), **facts: Any
) -> TreeStep | None:
    pod = a_pod(requests=requests, scheduler=facts.pop("scheduler", "hami-scheduler"))
    return check_registered_devices(build_facts(pod=pod, nodes=nodes, **facts), unregistered)


PLAIN = a_node("n1")
"""A node without devices and marks of HAMi."""


@pytest.mark.parametrize(
    ("nodes", "facts", "is_asked"),
    [
        ([PLAIN], {}, True),
        ([PLAIN], {"requests": [a_request(count=0)]}, False),
        ([PLAIN], {"requests": []}, False),
        # Only HAMi's schedulers read registrations.
        ([PLAIN], {"scheduler": "volcano"}, False),
        ([PLAIN], {"scheduler": "4pd-scheduler"}, True),
        ([PLAIN], {"scheduler": "volcano", "requests": [a_request(memory_mib=1)]}, True),
        ([PLAIN], {"scheduler": "volcano", "requests": [a_request(memory_mib=None, cores_percent=1)]}, True),
        ([PLAIN], {"scheduler": "volcano", "requests": [COMPLETE_DEVICE, a_request()]}, True),
        ([PLAIN, a_node("n2", devices=1)], {"scheduler": "volcano"}, True),
        ([PLAIN, a_node("n2", devices=0)], {"scheduler": "volcano"}, False),
        ([PLAIN, a_node("n2", node=None)], {"scheduler": "volcano"}, True),
        ([PLAIN, a_node("n2", node={"metadata": {"annotations": {"a": "", "hami.io/x": ""}}})],
         {"scheduler": "volcano"}, True),
        ([a_node("n2", node={"metadata": {"annotations": {"example.com/a": ""}}})], {"scheduler": "volcano"}, False),
        ([PLAIN], {"scheduler": "volcano", "schedulers": [SchedulerState("s", POD, "KAI")]}, False),
        ([PLAIN], {"scheduler": "volcano", "schedulers": [SchedulerState("s", POD, "KAI"),
         SchedulerState("s", POD, "schedulerlog")]}, True),
        ([PLAIN], {"scheduler": "volcano", "schedulers": [SchedulerState("s", POD, "HAMi")]}, True),
        ([PLAIN], {"scheduler": "volcano", "unregistered": frozenset(("n1",))}, True),
    ],
)  # fmt: skip
def test_registrations_matter_where_hami_places_devices(
    nodes: list[NodeFacts], facts: dict[str, Any], is_asked: bool
) -> None:
    assert (check_devices(*nodes, **facts) is not None) == is_asked


def test_requests_without_a_source_may_be_for_devices() -> None:
    facts = build_facts(nodes=[a_node("n1", devices=0, node=None)])
    step = check_registered_devices(facts)
    assert step
    assert step.answer == "no"


@pytest.mark.parametrize(("unregistered", "expected"), [(None, "not known"), (frozenset(("n1",)), "no")])
def test_without_nodes_registrations_are_not_known(unregistered: frozenset[str] | None, expected: str) -> None:
    step = check_devices(unregistered=unregistered)
    assert step
    assert (step.answer, step.evidence, list_subjects(step)) == (expected, (), ["nodes", "registrations"])


def test_devices_are_counted_over_all_nodes() -> None:
    step = check_devices(a_node("n1", devices=8), a_node("n2", devices=0), a_node("n3"))
    assert step
    numbers = {"nodes": 3, "nodes_with_devices": 1, "devices": 8}
    assert step.evidence == [Evidence("nodes", "", STARTED, "", numbers)]
    assert (step.answer, step.obstacles) == ("yes", [])


def test_a_cluster_without_any_device_is_the_obstacle() -> None:
    step = check_devices(a_node("n1", devices=0))
    assert step
    [obstacle] = step.obstacles
    assert (step.answer, obstacle.code, obstacle.words, obstacle.numbers) == (
        "no", "NoDevicesRegistered", {"of": 1}, {"nodes": 1},
    )  # fmt: skip
    assert (obstacle.evidence, step.evidence[0].record) == ([a_node("n1").source], "/nodes/n1")


def test_only_the_nodes_that_an_attempt_refused_count() -> None:
    step = check_devices(a_node("n1", devices=8), a_node("n2", devices=4), unregistered=frozenset(("n2",)))
    assert step
    # They are registered now, but were not when the attempt judged them.
    assert (step.answer, step.evidence[0].numbers["devices"], step.obstacles) == ("no", 4, [])
    empty = check_devices(a_node("n2", devices=0), unregistered=frozenset(("n2",)))
    assert empty
    assert empty.obstacles == []


UNANSWERED = a_problem("HandshakeTooOld", handshake="Requesting_2026", is_asked=True, allocatable=8)


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (UNANSWERED, False),
        (UNANSWERED.model_copy(update={"allocatable": 0}), True),
        (UNANSWERED.model_copy(update={"allocatable": None}), True),
        (UNANSWERED.model_copy(update={"is_asked": False}), True),
        (UNANSWERED.model_copy(update={"handshake": "Deleted_2026.11.21 03:00:00"}), True),
        (UNANSWERED.model_copy(update={"code": "RegistrationMissing"}), True),
    ],
)
def test_an_unanswered_question_keeps_no_device_from_use_that_the_kubelet_offers(
    problem: NodeProblem, expected: bool
) -> None:
    assert is_blocking(problem) == expected


def list_obstacles(*nodes: NodeFacts) -> list[FoundObstacle]:
    step = check_devices(*nodes)
    assert step
    return list(step.obstacles)


def test_the_first_problem_of_a_node_causes_the_others() -> None:
    problems = [UNANSWERED, a_problem(allocatable=None), a_problem("RegistrationUnusable")]
    step = check_devices(a_node("n1", problems=problems), a_node("n2", problems=[UNANSWERED], devices=1))
    assert step
    [obstacle] = step.obstacles
    assert (obstacle.code, obstacle.nodes, obstacle.node_count) == ("RegistrationMissing", ["n1"], 1)
    assert (translate(obstacle), obstacle.clauses) == ({"refused": 1, "nodes": "n1"}, [])
    evidence = Evidence("node", "/nodes/n1", STARTED, words="RegistrationMissing: m")
    assert (step.evidence[1:], obstacle.evidence) == ([evidence], [evidence])


def test_five_nodes_with_problems_are_evidence_and_all_are_counted() -> None:
    nodes = [a_node(f"n{index}", problems=[a_problem()]) for index in (5, 4, 3, 2, 1, 0)]
    step = check_devices(*nodes)
    assert step
    [obstacle] = step.obstacles
    assert (len(step.evidence), len(obstacle.evidence), obstacle.node_count) == (1 + 5, 5, 6)
    assert obstacle.nodes == [f"n{index}" for index in range(6)]


@pytest.mark.parametrize(("allocatable", "slots"), [([8, 16, None], 16), ([None, None, None], None), ([0, 0, 0], None)])
def test_a_missing_registration_names_the_slots_that_the_kubelet_offers(
    allocatable: list[int | None], slots: int | None
) -> None:
    nodes = [a_node(f"n{index}", problems=[a_problem(allocatable=n)]) for index, n in enumerate(allocatable)]
    [obstacle] = list_obstacles(*nodes)
    assert (obstacle.words.get("slots"), obstacle.clauses) == (slots, ["slots"] if slots else [])


def test_the_oldest_handshake_is_named_with_its_node() -> None:
    ages = {"n1": 300, "n2": 600, "n3": None}
    nodes = []
    for name, age in ages.items():
        moment = None if age is None else STARTED - timedelta(seconds=age)
        problem = a_problem("HandshakeTooOld", handshake="Reported_x", handshake_at=moment, allocatable=8)
        nodes.append(a_node(name, problems=[problem]))
    [obstacle] = list_obstacles(*nodes)
    assert (obstacle.code, obstacle.clauses) == ("HandshakeTooOld", ["age"])
    assert translate(obstacle) == {"refused": 3, "nodes": "n1, n2, n3", "age": "10 min", "node": "n2"}
    [without_time] = list_obstacles(nodes[2])
    assert (without_time.clauses, "age" in without_time.words) == ([], False)


def test_a_node_that_hami_has_given_up_is_another_obstacle() -> None:
    deleted = a_problem("HandshakeTooOld", handshake="Deleted_2026.11.21 03:00:00", handshake_at=STARTED, allocatable=8)
    old = a_problem("HandshakeTooOld", handshake="Reported_x", allocatable=8)
    missing = a_problem("RegistrationMissing", handshake="Deleted_2026.11.21 03:00:00", handshake_at=STARTED)
    obstacles = list_obstacles(
        a_node("n1", problems=[deleted]), a_node("n2", problems=[old]), a_node("n3", problems=[missing])
    )
    assert [(obstacle.code, obstacle.nodes) for obstacle in obstacles] == [
        ("HandshakeDeleted", ["n1"]), ("HandshakeTooOld", ["n2"]), ("RegistrationMissing", ["n3"]),
    ]  # fmt: skip
    assert obstacles[0].words["handshake"] == "Deleted_2026.11.21 03:00:00"
    assert obstacles[0].clauses == obstacles[2].clauses == []
