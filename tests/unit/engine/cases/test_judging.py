"""Waiting pods judged on a case's objects, with the scheduler's own counts beside the judge's."""

from datetime import UTC, datetime
from typing import Any

import pytest

from engine.cases.pod_facts import CaseFacts
from engine.diagnosis.tree import diagnose
from engine.snapshot.case_objects import collect_objects
from schemas.answers.diagnosis import Diagnosis

NOW = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
GPU = "nvidia.com/gpu"


def a_node(name: str, gpus: int | None = 0, *, taint: str = "", **labels: str) -> dict[str, Any]:
    amounts = {"cpu": "16", "memory": "64Gi", "pods": "110"} | ({GPU: str(gpus)} if gpus is not None else {})
    taints = [{"key": taint, "value": "x", "effect": "NoSchedule"}] if taint else []
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints}, "status": {"allocatable": amounts, "capacity": amounts},
    }  # fmt: skip


def a_pod(name: str = "p", gpus: int = 1, node: str = "", scheduler: str = "default-scheduler") -> dict[str, Any]:
    resources = {"limits": {GPU: str(gpus)}, "requests": {GPU: str(gpus)}}
    spec: dict[str, Any] = {"schedulerName": scheduler, "containers": [{"name": "c", "resources": resources}]}
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "ml", "uid": f"uid-{name}"},
        "spec": spec | ({"nodeName": node} if node else {}), "status": {"phase": "Running" if node else "Pending"},
    }  # fmt: skip


def diagnose_case(*objects: dict[str, Any], unread: tuple[str, ...] = ()) -> Diagnosis:
    facts = CaseFacts(collect_objects(objects, unread), NOW)
    return diagnose(facts.build("ml", "p"), judged=facts.judge("ml", "p"))


def test_a_resource_that_no_node_offers_is_no_matter_of_waiting() -> None:
    diagnosis = diagnose_case(a_pod(), a_node("n1", None), a_node("n2", None))
    assert diagnosis.obstacle is not None
    assert diagnosis.obstacle.code == "ResourceNotOffered"
    assert "wait" not in diagnosis.obstacle.who_acts
    assert GPU in diagnosis.sentence.en


def test_a_share_of_hami_in_a_pod_of_another_scheduler_is_no_fault_of_the_nodes() -> None:
    pod, memory = a_pod(), "nvidia.com/gpumem"
    for amounts in pod["spec"]["containers"][0]["resources"].values():
        amounts[memory] = "20000"
    diagnosis = diagnose_case(pod, a_node("n1", 80))
    assert diagnosis.obstacle is not None
    assert diagnosis.obstacle.code == "ShareOfOtherScheduler"
    assert memory in diagnosis.sentence.en
    assert "default-scheduler" in diagnosis.sentence.en
    assert "schedulerName" in diagnosis.obstacle.remedy.en


def test_a_resource_in_use_names_who_holds_it() -> None:
    diagnosis = diagnose_case(a_pod(), a_pod("other", 1, "n1"), a_node("n1", 1))
    assert diagnosis.obstacle is not None
    assert diagnosis.obstacle.code == "ResourceInUse"
    assert "ml/other" in diagnosis.sentence.en


def test_a_taint_of_other_nodes_stands_behind_what_refuses_the_nodes_meant() -> None:
    diagnosis = diagnose_case(a_pod(gpus=4), a_node("n1", 2), a_node("cp", taint="control-plane"))
    assert diagnosis.obstacle is not None
    assert diagnosis.obstacle.code == "ResourceNeverEnough"
    assert [obstacle.code for obstacle in diagnosis.other_obstacles] == ["TaintNotTolerated"]


def test_pods_that_could_not_be_read_leave_a_fit_open() -> None:
    diagnosis = diagnose_case(a_pod(), a_node("n1", 1), unread=("Pod",))
    assert diagnosis.obstacle is None
    (step,) = [step for step in diagnosis.steps if step.step == "NodesOpen"]
    assert step.answer == "not known"


def test_devices_of_hami_are_judged_by_its_fit() -> None:
    pod = a_pod(scheduler="hami-scheduler")
    pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpumem"] = "90000"
    node = a_node("n1", 10)
    device = "GPU-1,10,46068,100,NVIDIA-A40,0,true,0,hami-core"
    node["metadata"]["annotations"] = {
        "hami.io/node-handshake": f"Reported {NOW:%Y-%m-%d %H:%M:%S}",
        "hami.io/node-nvidia-register": f"{device}:",
    }
    diagnosis = diagnose_case(pod, node)
    assert diagnosis.obstacle is not None
    assert "46,068" in diagnosis.sentence.en or "90,000" in diagnosis.sentence.en


def test_a_pod_on_a_node_is_not_judged() -> None:
    assert diagnose_case(a_pod(node="n1"), a_node("n1", None)).state == "placed"


def build_ring(pod: dict[str, Any], size: int = 3) -> list[dict[str, Any]]:
    """Return a group of this size, and the pods that are like this one."""
    pods = []
    for index in range(size):
        metadata = {**pod["metadata"], "name": "p" if index == 0 else f"p-{index}", "uid": f"uid-{index}"}
        labels = {"scheduling.x-k8s.io/pod-group": "ring"}
        pods.append({**pod, "metadata": {**metadata, "labels": labels}, "spec": dict(pod["spec"])})
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
        "metadata": {"name": "ring", "namespace": "ml"}, "spec": {"minMember": size},
    }  # fmt: skip
    return [group, *pods]


def test_a_gang_that_fits_in_part_is_counted_with_the_first_member_that_does_not() -> None:
    diagnosis = diagnose_case(*build_ring(a_pod()), a_node("n1", 1), a_node("n2", 1), a_node("n3", 0))
    assert diagnosis.obstacle is not None
    assert diagnosis.obstacle.code == "GangTooLarge"
    assert diagnosis.obstacle.numbers == {"members": 3, "fitting": 2}
    assert "(group ring); 3 of its pods have to start together: 2 of 3 members fit now" in diagnosis.sentence.en
    assert "p-2 is the first that does not" in diagnosis.sentence.en


def test_members_with_nodes_are_part_of_what_the_gang_needs() -> None:
    group, first, second, third = build_ring(a_pod())
    third["spec"]["nodeName"] = "n1"
    facts = CaseFacts(collect_objects([group, first, second, third, a_node("n1", 1), a_node("n2", 1)]), NOW)
    gang = facts.build("ml", "p").gang
    assert gang is not None
    assert (gang.members, gang.fitting, gang.member) == (2, 1, "p-1")


def test_a_gang_that_fits_as_a_whole_has_no_obstacle_of_its_own() -> None:
    assert CaseFacts(collect_objects([*build_ring(a_pod()), a_node("n1", 3)]), NOW).build("ml", "p").gang is None


def test_a_member_that_fits_nowhere_by_itself_has_the_reasons_of_the_nodes() -> None:
    diagnosis = diagnose_case(*build_ring(a_pod(gpus=4)), a_node("n1", 2))
    assert diagnosis.obstacle is not None
    assert diagnosis.obstacle.code == "ResourceNeverEnough"


def test_a_gated_gang_is_not_judged() -> None:
    group, *pods = build_ring(a_pod())
    pods[1]["spec"] = {**pods[1]["spec"], "schedulingGates": [{"name": "quota"}]}
    assert CaseFacts(collect_objects([group, *pods, a_node("n1", 1)]), NOW).build("ml", "p").gang is None


@pytest.mark.parametrize(
    ("node", "phase", "waits"),
    [("", "Pending", True), ("n1", "Running", False), ("", "Succeeded", False), ("", "Failed", False)],
)
def test_only_a_pod_without_a_node_that_has_not_ended_is_judged(node: str, phase: str, waits: bool) -> None:
    pod = a_pod(node=node) | {"status": {"phase": phase}}
    facts = CaseFacts(collect_objects([pod, a_node("n1", 1)]), NOW)
    assert (facts.judge("ml", "p") is not None) is waits
    assert bool(facts.list_nodes("ml", "p")) is waits


@pytest.mark.parametrize(
    ("resource", "offered", "code"),
    [
        # Profiles and replicas are counted on their own: another profile's instances do not help.
        ("nvidia.com/mig-3g.20gb", {"nvidia.com/mig-3g.20gb": "2", "nvidia.com/mig-1g.5gb": "7"}, "ResourceInUse"),
        ("nvidia.com/mig-3g.20gb", {"nvidia.com/mig-1g.5gb": "7"}, "ResourceNotOffered"),
        ("nvidia.com/gpu.shared", {"nvidia.com/gpu.shared": "2"}, "ResourceInUse"),
        ("nvidia.com/gpu.shared", {"nvidia.com/gpu": "2"}, "ResourceNotOffered"),
    ],
)
def test_profiles_and_replicas_of_nvidias_plugin_are_resources_of_their_own(
    resource: str, offered: dict[str, str], code: str
) -> None:
    node, holder, pod = a_node("n1", None), a_pod("holder", 1, "n1"), a_pod()
    for amounts in node["status"].values():
        amounts.update(offered)
    for waiting_or_not, count in ((pod, "1"), (holder, offered.get(resource, "0"))):
        resources = waiting_or_not["spec"]["containers"][0]["resources"]
        resources |= {"limits": {resource: count}, "requests": {resource: count}}
    diagnosis = diagnose_case(pod, holder, node)
    assert diagnosis.obstacle is not None
    assert diagnosis.obstacle.code == code
    assert resource in diagnosis.sentence.en
