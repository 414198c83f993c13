"""Suggestions about what the filters look at: each is proved by judging again, and none is larger than another."""

from typing import Any

import pytest

from tests.support.builders.cluster import a_node, a_pod, a_taint
from tests.support.builders.simulations import a_gpu_node, a_gpu_pod, simulate


def list_sentences(answer: Any) -> list[str]:
    return [item["sentence"]["en"] for item in answer["suggestions"]["items"]]


def with_cordon(node: dict[str, Any]) -> dict[str, Any]:
    node["spec"]["unschedulable"] = True
    return node


def test_the_smallest_change_comes_first() -> None:
    pod = a_gpu_pod(gpu=1, gpumem=100)
    pod["spec"]["nodeSelector"] = {"card": "a10"}
    nodes = [
        with_cordon(a_gpu_node("n0", labels={"card": "a10"})),
        a_gpu_node("n1", labels={"card": "a10"}, taints=[a_taint("pool", "infer")]),
        a_gpu_node("n2"),
    ]
    assert list_sentences(simulate(pod, *nodes)) == [
        "Drop card=a10 from the pod's node selector or affinity: then it fits on n2.",
        "Tolerate the taint pool=infer:NoSchedule: then it fits on n1.",
        "Uncordon the node n0 (`kubectl uncordon n0`): then it fits on n0.",
    ]


def test_a_request_is_lowered_to_what_is_free() -> None:
    answer = simulate(a_pod(cpu="16", memory="4Gi"), a_node("n1"), a_pod("h", node="n1", cpu="2"))
    assert list_sentences(answer) == ["Lower cpu of main from 16 to 6: then it fits on n1."]
    assert answer["suggestions"]["items"][0]["who_acts"] == "you"


def test_several_changes_that_one_node_needs_are_one_suggestion() -> None:
    answer = simulate(a_pod(cpu="16"), a_node("n1", taints=[a_taint("a"), a_taint("b")]))
    [sentence] = list_sentences(answer)
    assert sentence.count(", and ") == 2


def test_a_change_after_which_devices_still_refuse_is_not_suggested() -> None:
    pod = a_gpu_pod(gpu=1, gpumem=90000)
    assert list_sentences(simulate(pod, a_gpu_node(taints=[a_taint("pool")]))) == []


@pytest.mark.parametrize(
    "key",
    ["node.kubernetes.io/not-ready", "node.kubernetes.io/disk-pressure", "node.cloudprovider.kubernetes.io/shutdown"],
)
def test_taints_of_sick_nodes_are_not_to_be_tolerated(key: str) -> None:
    sick = a_gpu_node(taints=[a_taint(key, "", "NoExecute")])
    assert list_sentences(simulate(a_gpu_pod(), sick)) == []


def test_pods_of_the_file_may_end() -> None:
    holder = a_gpu_pod("h", gpu=1, gpumem=20000)
    holder["spec"]["nodeName"] = "n1"
    holder["metadata"]["annotations"] = {
        "hami.io/vgpu-node": "n1",
        "hami.io/vgpu-devices-allocated": "GPU-n1-0,NVIDIA,20000,0:;",
    }
    holder["status"] = {"phase": "Running"}
    sentences = list_sentences(simulate(a_gpu_pod(gpu=1, gpumem=20000), a_gpu_node(), holder))
    assert "Lower nvidia.com/gpumem of c from 20000 to 4576: then it fits on n1." in sentences
    assert any("wait for the end of default/h" in sentence.lower() for sentence in sentences)
