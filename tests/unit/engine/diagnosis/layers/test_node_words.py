"""Reasons of nodes in the words of HAMi, Volcano, Koordinator and of plugins that kube-scheduler asks late."""

import pytest

from engine.hami.vendor_catalog import is_counted_by_extender
from tests.support.builders.layer_objects import a_node, a_pod, an_event, diagnose_case, get_code


@pytest.mark.parametrize("resource", ["huawei.com/Ascend310P-memory", "nvidia.com/gpumem", "hygon.com/dcucores"])
def test_a_resource_that_hamis_extender_counts_is_missing_from_its_managed_resources(resource: str) -> None:
    words = f"0/4 nodes are available: 4 Insufficient {resource}."
    diagnosis = diagnose_case(a_pod(refusal=words), an_event("FailedScheduling", words))
    assert get_code(diagnosis) == "ResourceOfExtender"
    assert f"4 of 4 nodes for {resource}" in diagnosis.sentence.en
    assert diagnosis.obstacle
    assert diagnosis.obstacle.who_acts == ["you", "administrator"]


@pytest.mark.parametrize(
    "resource", ["nvidia.com/gpu", "huawei.com/Ascend310P", "aws.amazon.com/neuroncore", "cpu", ""]
)
def test_what_a_device_plugin_offers_is_counted_by_kube_scheduler(resource: str) -> None:
    assert not is_counted_by_extender(resource)


def test_the_old_spelling_of_an_unregistered_node_means_the_same() -> None:
    words = "0/6 nodes are available: 2 node unregisterd, 4 node(s) didn't match Pod's node affinity/selector."
    diagnosis = diagnose_case(a_pod(refusal=words), an_event("FailedScheduling", words))
    assert {"node unregistered", "AffinityMismatch"} == {
        obstacle.code for obstacle in (diagnosis.obstacle, *diagnosis.other_obstacles) if obstacle
    }


def test_volcanos_vgpu_plugin_names_what_a_device_may_lack() -> None:
    words = "0/2 nodes are unavailable: 2 hami-vgpuDeviceSharing error."
    pod = a_pod(spec={"schedulerName": "volcano"}, refusal=words)
    diagnosis = diagnose_case(pod, an_event("FailedScheduling", words, reporter="volcano"))
    assert get_code(diagnosis) == "DeviceShareRefused"
    assert diagnosis.sentence.en.startswith("On 2 of 2 nodes, Volcano's plugin deviceshare found no card")


def test_a_node_that_offers_slots_and_has_no_registration_says_how_many_slots() -> None:
    words = "0/1 nodes are available: 1 node unregistered."
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3000"}
    spec = {"schedulerName": "hami-scheduler", "containers": [{"name": "c", "resources": {"limits": limits}}]}
    node = a_node("n-9", allocatable={"nvidia.com/gpu": "40"})
    diagnosis = diagnose_case(a_pod(spec=spec, refusal=words), node)
    assert get_code(diagnosis) == "RegistrationMissing"
    assert diagnosis.sentence.en.endswith(
        "n-9; the device plugin offers 40 slots to the kubelet (HAMi counts several for one card), so it runs."
    )


def test_a_cluster_without_hami_misses_no_registration() -> None:
    spec = {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}
    diagnosis = diagnose_case(a_pod(spec=spec), a_node("n", allocatable={"nvidia.com/gpu": "8"}))
    assert "DevicesRegistered" not in [step.step for step in diagnosis.steps]


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        (
            (
                "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by "
                "another pod"
            ),
            "ClaimOfOnePod",
        ),
        ("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)", "VolumeGone"),
        ("node(s) did not have enough free storage", "StorageFull"),
        ("cannot allocate all claims", "DevicesNotAllocatable"),
        ("Insufficient Topology Scoped GPU Devices", "DeviceShareShort"),
        ("node(s) resource fit failed", "FitNotNamed"),
        ("node(s) pod number exceeded", "TooManyPods"),
        ("a reason of a plugin of its own", "RefusedInOtherWords"),
        ("node(s) didn't match pod topology spread constraints", "TopologySpread"),
    ],
)
def test_the_nodes_that_passed_taints_come_before_more_nodes_with_a_taint(reason: str, code: str) -> None:
    words = f"0/9 nodes are available: 2 {reason}, 7 node(s) had untolerated taint(s)."
    diagnosis = diagnose_case(a_pod(refusal=words), an_event("FailedScheduling", words))
    assert get_code(diagnosis) == code
    assert "2 of 9" in diagnosis.sentence.en
    assert [other.code for other in diagnosis.other_obstacles] == ["TaintNotTolerated"]
