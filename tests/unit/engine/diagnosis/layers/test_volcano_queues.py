"""Volcano's queues: what keeps a group of pods out, by the fields of its Queue (v1beta1) and the cluster's nodes.

Each expected amount is worked out by hand: what the queue or the cluster has, what is allocated, what the group wants.
"""

from datetime import UTC, datetime
from typing import Any

import pytest

from engine.diagnosis.facts import DiagnosisFacts, Evidence, PodOnCluster
from engine.diagnosis.layers.group_members import Group
from engine.diagnosis.layers.statements import Statement
from engine.diagnosis.layers.volcano_queues import describe_refusal, explain_queue
from engine.diagnosis.outcome import FoundObstacle
from engine.snapshot.case_objects import collect_objects
from schemas.json_types import Json
from tests.support.builders.layer_objects import a_node, a_pod, to_english

NOW = datetime(2026, 11, 24, 8, 30, tzinfo=UTC)
GPU = "nvidia.com/gpu"
SILENT = "pod group is not ready, 2 Pending, 2 minAvailable; Pending: 2 Unschedulable"
POD = Evidence("pod", "lab/job-0")


def a_queue(name: str = "night", state: str = "Open", allocated: Json | None = None, **spec: Any) -> Json:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}, "spec": spec,
        "status": {"state": state, "allocated": allocated or {}},
    }  # fmt: skip


def a_group(queue: str = "night", phase: str = "Pending", minimum: int = 2, **ask: Any) -> Group:
    amounts = {name.replace("gpu", GPU): amount for name, amount in ask.items()}
    spec = {"queue": queue, "minResources": amounts}
    group = {"metadata": {"name": "ring"}, "spec": spec, "status": {"phase": phase}}
    members = [a_pod("job-0"), a_pod("job-1")]
    return Group("Volcano", "ring", "minMember", minimum, group, members)


def build_facts(*objects: Json, refusal: str = "", annotations: Json | None = None, is_read: bool = True) -> Any:
    events = [Evidence("event", "e", NOW, "volcano", words=f"FailedScheduling: {refusal}")] if refusal else []
    described = PodOnCluster(POD, annotations=annotations or {})
    collected = collect_objects(objects) if is_read else None
    return DiagnosisFacts("default", "lab", "job-0", NOW, pod=described, objects=collected, events=events)


def get_code(obstacle: FoundObstacle | None) -> str:
    return obstacle.code if obstacle else ""


@pytest.mark.parametrize(
    ("group", "annotation", "queue"),
    [
        (a_group("night"), "", "night"),
        (a_group("night"), "day", "night"),
        (a_group(""), "day", "day"),
        (None, "day", "day"),
        (a_group(""), "", "default"),
    ],
)
def test_the_queue_is_that_of_the_group_before_that_of_the_pod(
    group: Group | None, annotation: str, queue: str
) -> None:
    annotations = {"scheduling.volcano.sh/queue-name": annotation} if annotation else {}
    obstacle = explain_queue(build_facts(a_queue("another"), annotations=annotations), group)
    assert obstacle is not None
    assert (obstacle.code, obstacle.words["queue"]) == ("QueueMissing", queue)
    assert list(obstacle.evidence) == [POD]


def test_a_queue_is_missing_only_where_queues_were_read() -> None:
    assert explain_queue(build_facts(), a_group()) is None
    assert explain_queue(build_facts(is_read=False), a_group()) is None
    # A pod without a group and without the annotation is in no queue.
    assert explain_queue(build_facts(a_queue("another")), None) is None


@pytest.mark.parametrize(
    ("state", "phase", "code"),
    [
        ("Open", "Pending", ""),
        ("Closed", "Pending", "QueueClosed"),
        ("Closing", "", "QueueClosed"),
        ("Unknown", "Pending", ""),
        # A group that is in the queue already is not kept out by its end.
        ("Closed", "Inqueue", ""),
        ("Closed", "Running", ""),
    ],
)
def test_a_closed_queue_lets_no_group_in(state: str, phase: str, code: str) -> None:
    obstacle = explain_queue(build_facts(a_queue(state=state)), a_group(phase=phase))
    assert get_code(obstacle) == code
    if obstacle:
        assert obstacle.words["state"] == state


def test_a_closed_queue_keeps_out_a_pod_without_a_group_too() -> None:
    facts = build_facts(a_queue(state="Closed"), annotations={"scheduling.volcano.sh/queue-name": "night"})
    assert get_code(explain_queue(facts, None)) == "QueueClosed"


@pytest.mark.parametrize(
    ("deserved", "allocated", "ask", "numbers"),
    [
        ({GPU: "8"}, {GPU: "6"}, {"gpu": "4"}, {"limit": 8, "used": 6, "asked": 4}),
        ({GPU: "8"}, {}, {"gpu": "9"}, {"limit": 8, "used": 0, "asked": 9}),
        # Exactly what it deserves.
        ({GPU: "8"}, {GPU: "4"}, {"gpu": "4"}, None),
        ({GPU: "8"}, {GPU: "9"}, {"cpu": "4"}, None),
        ({}, {GPU: "9"}, {"gpu": "4"}, None),
        ({"cpu": "4", GPU: "8"}, {"cpu": "1", GPU: "8"}, {"gpu": "1", "cpu": "3"}, {"limit": 8, "used": 8, "asked": 1}),
        # Kubernetes' CPU is counted in thousandths.
        ({"cpu": "4"}, {"cpu": "3500m"}, {"cpu": "1"}, {"limit": 4000, "used": 3500, "asked": 1000}),
        ({GPU: "much", "cpu": "1"}, {}, {"gpu": "4"}, None),
    ],
)
def test_a_silent_refusal_is_explained_by_what_the_queue_deserves(
    deserved: Json, allocated: Json, ask: Json, numbers: dict[str, int] | None
) -> None:
    facts = build_facts(a_queue(deserved=deserved, allocated=allocated), refusal=SILENT)
    obstacle = explain_queue(facts, a_group(phase="Inqueue", **ask))
    assert (obstacle.numbers if obstacle else None) == numbers
    if obstacle:
        assert (obstacle.code, list(obstacle.clauses)) == ("QueueFull", ["amounts"])
        assert obstacle.words["resource"] == (GPU if "gpu" in ask else "cpu")


@pytest.mark.parametrize(
    ("refusal", "minimum", "others"),
    [
        ("", 2, ()),
        ("0/2 nodes are unavailable: 2 Insufficient cpu.", 2, ()),
        # A text with a reason, a group that is not whole, and a member that nodes refuse explain themselves.
        (SILENT + ". Origin reason is job-1: 0/1 nodes are unavailable", 2, ()),
        (SILENT, 3, ()),
    ],
)
def test_a_refusal_with_a_reason_of_its_own_is_not_the_queues(refusal: str, minimum: int, others: Any) -> None:
    facts = build_facts(a_queue(deserved={GPU: "1"}), *others, refusal=refusal)
    assert explain_queue(facts, a_group(phase="Inqueue", minimum=minimum, gpu="4")) is None


def test_a_refused_member_explains_the_group() -> None:
    facts = build_facts(a_queue(deserved={GPU: "1"}), refusal=SILENT)
    group = a_group(phase="Inqueue", gpu="4")
    assert get_code(explain_queue(facts, group)) == "QueueFull"
    refused = a_pod("job-1", refusal="0/2 nodes are unavailable: 2 Insufficient cpu.")
    with_refused = Group(group.system, group.name, group.field, 2, group.object, [a_pod("job-0"), refused])
    assert explain_queue(facts, with_refused) is None


SAYS = Statement("queue resource quota insufficient", Evidence("event", "g"), "Unschedulable")


def describe(
    *objects: Json, ask: Json, resources: str = "", is_of_cluster: bool = False, is_read: bool = True
) -> FoundObstacle:
    facts = build_facts(*objects, is_read=is_read)
    return describe_refusal(facts, a_group(**ask), resources, SAYS, is_of_cluster=is_of_cluster)


def a_gpu_node(name: str, count: str) -> Json:
    return a_node(name, allocatable={GPU: count})


@pytest.mark.parametrize(
    ("queue", "resources", "is_of_cluster", "code", "clauses", "numbers"),
    [
        # By the queue: 8 may be used, 6 are, 4 are asked for.
        (a_queue(capability={GPU: "8"}, allocated={GPU: "6"}), "", False, "GroupNotEnqueued", ["capability"],
         {"limit": 8, "used": 6, "asked": 4}),
        (a_queue(capability={GPU: "8"}, allocated={GPU: "6"}), f"cpu, {GPU}", False, "GroupNotEnqueued", ["capability"],
         {"limit": 8, "used": 6, "asked": 4}),
        (a_queue(capability={GPU: "4"}, allocated={GPU: "1"}), GPU, False, "GroupNotEnqueued", ["capability"],
         {"limit": 4, "used": 1, "asked": 4}),
        (a_queue(capability={GPU: "3"}), "", False, "GroupNeverFits", [], {"limit": 3, "used": 0, "asked": 4}),
        # By the cluster: two nodes of 3 and 2, where both queues together have 5 allocated.
        (a_queue(capability={}, allocated={GPU: "4"}), GPU, False, "GroupNotEnqueued", ["cluster"],
         {"limit": 5, "used": 5, "asked": 4}),
        # Volcano says that the cluster is short, whatever the queue may use.
        (a_queue(capability={GPU: "8"}, allocated={GPU: "4"}), GPU, True, "GroupNotEnqueued", ["overused"],
         {"limit": 5, "used": 5, "asked": 4}),
        # No resource is named, and none lacks.
        (a_queue(capability={GPU: "8"}, allocated={GPU: "4"}), "", False, "GroupNotEnqueued", [], {}),
        (a_queue(capability={"cpu": "1"}, allocated={GPU: "4"}), "", False, "GroupNotEnqueued", [], {}),
        (a_queue(capability={GPU: "8"}), "memory", False, "GroupNotEnqueued", [], {}),
    ],
)  # fmt: skip
def test_a_group_is_measured_against_its_queue_or_the_cluster(
    queue: Json, resources: str, is_of_cluster: bool, code: str, clauses: list[str], numbers: dict[str, int]
) -> None:
    others = (a_queue("day", allocated={GPU: "1"}), a_gpu_node("a", "3"), a_gpu_node("b", "2"), a_node("c"))
    ask = {"gpu": "4"}
    obstacle = describe(queue, *others, ask=ask, resources=resources, is_of_cluster=is_of_cluster)
    assert (obstacle.code, list(obstacle.clauses), obstacle.numbers) == (code, clauses, numbers)
    assert list(obstacle.evidence) == [SAYS.evidence]


def test_the_bound_that_no_group_passes_is_named() -> None:
    by_queue = describe(a_queue(capability={GPU: "3"}), ask={"gpu": "4"})
    by_cluster = describe(a_queue(), a_gpu_node("a", "3"), ask={"gpu": "4"}, resources=GPU)
    assert [(item.code, to_english(item.words["bound"])) for item in (by_queue, by_cluster)] == [
        ("GroupNeverFits", "the queue (capability)"), ("GroupNeverFits", "the cluster"),
    ]  # fmt: skip


def test_the_root_queue_counts_all_others_once() -> None:
    queues = (
        a_queue(allocated={GPU: "2"}),
        a_queue("root", allocated={GPU: "3"}),
        a_queue("day", allocated={GPU: "1"}),
    )
    obstacle = describe(*queues, a_gpu_node("a", "8"), ask={"gpu": "6"}, resources=GPU)
    assert obstacle.numbers == {"limit": 8, "used": 3, "asked": 6}


def test_without_nodes_or_queues_nothing_is_measured() -> None:
    for objects in ((a_queue(),), (a_gpu_node("a", "8"),), ()):
        obstacle = describe(*objects, ask={"gpu": "4"}, resources=GPU)
        assert (obstacle.code, obstacle.numbers, list(obstacle.clauses)) == ("GroupNotEnqueued", {}, []), objects
    unread = describe(ask={"gpu": "4"}, is_read=False)
    assert to_english(unread.words["resources"]) == "of a resource that its event does not name"
    assert unread.words["queue"] == "night"
