"""A pod's words that no device suits decide, whichever check a device fails first: HAMi asks for health before them."""

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from engine.cases.pod_facts import CaseFacts
from engine.diagnosis.tree import diagnose
from engine.snapshot.case_objects import collect_objects
from tests.support.builders.simulations import a_gpu_node, a_gpu_pod, simulate

REGISTER = "hami.io/node-nvidia-register"


def a_node_with_a_broken_device() -> dict[str, Any]:
    """Build a node with GPU-n1-0, which is healthy, and GPU-n1-1, which is not."""
    node = a_gpu_node("n1", 2)
    devices = orjson.loads(node["metadata"]["annotations"][REGISTER])
    devices[1]["health"] = False
    node["metadata"]["annotations"][REGISTER] = orjson.dumps(devices).decode()
    return node


def a_waiting_pod(annotations: dict[str, str]) -> dict[str, Any]:
    pod = a_gpu_pod("p", gpu=1, gpumem=1000) | {"status": {"phase": "Pending"}}
    pod["metadata"] |= {"namespace": "ml", "uid": "p", "annotations": annotations}
    pod["spec"]["schedulerName"] = "hami-scheduler"
    return pod


@pytest.mark.parametrize(
    ("annotations", "code"),
    [
        ({"nvidia.com/use-gpuuuid": "GPU-of-last-year"}, "CardUuidMismatch"),
        ({"nvidia.com/use-gputype": "H100"}, "CardTypeMismatch"),
        ({"nvidia.com/vgpu-mode": "mig"}, "CardTypeMismatch"),
        # The device that the pod asks for is the broken one: it has to be repaired.
        ({"nvidia.com/use-gpuuuid": "GPU-n1-1"}, "CardNotHealth"),
    ],
)
def test_the_obstacle_is_the_one_whose_end_would_help(annotations: dict[str, str], code: str) -> None:
    pod, node = a_waiting_pod(annotations), a_node_with_a_broken_device()
    facts = CaseFacts(collect_objects([pod, node], ()), datetime(2026, 11, 25, 12, tzinfo=UTC))
    obstacle = diagnose(facts.build("ml", "p"), judged=facts.judge("ml", "p")).obstacle
    assert obstacle is not None
    assert obstacle.code == code
    assert simulate(pod, node)["diagnosis"]["obstacle"]["code"] == code


def test_words_about_another_vendors_devices_decide_nothing() -> None:
    pod = a_waiting_pod({"hygon.com/use-gpuuuid": "DCU-0", "hygon.com/use-gputype": "K100"})
    node = a_node_with_a_broken_device()
    devices = orjson.loads(node["metadata"]["annotations"][REGISTER])
    node["metadata"]["annotations"][REGISTER] = orjson.dumps(devices[1:]).decode()
    facts = CaseFacts(collect_objects([pod, node], ()), datetime(2026, 11, 25, 12, tzinfo=UTC))
    obstacle = diagnose(facts.build("ml", "p"), judged=facts.judge("ml", "p")).obstacle
    assert obstacle is not None
    assert obstacle.code == "CardNotHealth"
