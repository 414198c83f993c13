"""Parts of devices that KAI gives: expected by hand from what the pods on a node have of its devices."""

from datetime import UTC, datetime
from typing import Any

import pytest

from engine.cases.pod_facts import CaseFacts
from engine.diagnosis.outcome import JudgedPod
from engine.diagnosis.texts import write_sentence
from engine.snapshot.case_objects import collect_objects

NOW = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
GPU = "nvidia.com/gpu"


def a_node(name: str = "n1", devices: int = 1, memory_mib: int = 40_960) -> dict[str, Any]:
    amounts = {"cpu": "16", "memory": "64Gi", "pods": "110", GPU: str(devices)}
    labels = {"nvidia.com/gpu.memory": str(memory_mib)} if memory_mib else {}
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": amounts, "capacity": amounts},
    }  # fmt: skip


def a_pod(name: str = "p", node: str = "", group: str = "", devices: int = 0, **annotations: str) -> dict[str, Any]:
    amounts = {GPU: str(devices)} if devices else {}
    named = {key.replace("_", "-"): value for key, value in annotations.items()}
    labels = {"runai-gpu-group": group} if group else {}
    resources = {"limits": amounts, "requests": amounts}
    spec: dict[str, Any] = {"schedulerName": "kai-scheduler", "containers": [{"name": "c", "resources": resources}]}
    metadata = {"name": name, "namespace": "ml", "uid": name, "annotations": named, "labels": labels}
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": metadata,
        "spec": spec | ({"nodeName": node} if node else {}), "status": {"phase": "Running" if node else "Pending"},
    }  # fmt: skip


def reserve(group: str, node: str = "n1") -> dict[str, Any]:
    """Build the pod by which KAI holds a shared device."""
    pod = a_pod(f"reservation-{group}", node, group, devices=1)
    pod["metadata"]["namespace"] = "kai-resource-reservation"
    return pod


def judge(*objects: dict[str, Any]) -> JudgedPod:
    judged = CaseFacts(collect_objects(objects), NOW).judge("ml", "p")
    assert judged
    return judged


def get_verdict(judged: JudgedPod) -> str:
    """Return the code of the only obstacle, or `fits`."""
    codes = [obstacle.code for obstacle in judged.obstacles]
    assert bool(judged.fitting) != bool(codes)
    return codes[0] if codes else "fits"


SHARED = [a_node(), reserve("g"), a_pod("other", "n1", "g", gpu_fraction="0.7")]


@pytest.mark.parametrize(
    ("annotations", "objects", "code"),
    [
        # 0.3 of the only device is left.
        ({"gpu_fraction": "0.5"}, SHARED, "KaiShareInUse"),
        ({"gpu_fraction": "0.3"}, SHARED, "fits"),
        # KAI counts 40,900 of the 40,960 MiB, and 0.3 of them are 12,270.
        ({"gpu_memory": "12271"}, SHARED, "KaiShareInUse"),
        ({"gpu_memory": "12270"}, SHARED, "fits"),
        # A second device is free as a whole.
        ({"gpu_fraction": "0.5"}, [a_node(devices=2), *SHARED[1:]], "fits"),
        ({"gpu_fraction": "0.5", "gpu_fraction_num_devices": "2"}, [a_node(devices=2), *SHARED[1:]], "KaiShareInUse"),
        ({"gpu_fraction": "0.3", "gpu_fraction_num_devices": "2"}, [a_node(devices=2), *SHARED[1:]], "fits"),
        # Another pod holds the whole device.
        ({"gpu_fraction": "0.5"}, [a_node(), a_pod("other", "n1", devices=1)], "KaiShareInUse"),
        ({"gpu_memory": "50000"}, SHARED, "KaiShareTooLarge"),
        # Without the label nobody knows what the MiB are of a device.
        ({"gpu_memory": "50000"}, [a_node(memory_mib=0)], "fits"),
    ],
)
def test_a_share_is_judged_by_what_each_device_has_left(
    annotations: dict[str, Any], objects: list[dict[str, Any]], code: str
) -> None:
    assert get_verdict(judge(a_pod(**annotations), *objects)) == code


def test_the_sentence_names_the_freest_device_and_who_has_the_rest() -> None:
    sentence = write_sentence(judge(a_pod(gpu_fraction="0.5"), *SHARED).obstacles[0]).en
    assert "0.3 of a GPU left, on n1, next to ml/other" in sentence


@pytest.mark.parametrize("fraction", ["half", "-1", "inf", "nan", "0", "1e400", "0." + "3" * 100])
def test_a_share_without_a_positive_number_is_ignored(fraction: str) -> None:
    """KAI's webhook refuses such a pod; the judge says nothing about its devices."""
    assert get_verdict(judge(a_pod(gpu_fraction=fraction), *SHARED)) == "fits"


def test_a_pod_of_another_scheduler_gets_no_share() -> None:
    pod = a_pod(gpu_fraction="0.5")
    pod["spec"]["schedulerName"] = "default-scheduler"
    assert get_verdict(judge(pod, *SHARED)) == "fits"
