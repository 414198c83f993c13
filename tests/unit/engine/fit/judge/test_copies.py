"""Copies counted at once are as many as `decide` places one after the other, each on what the ones before it left."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.judge.copies import CopyCounter
from engine.fit.judge.decide import decide
from engine.fit.judge.decision import Decision, SchedulingPolicy
from tests.support.builders.nodes_to_judge import (
    SIDECAR,
    a_cluster,
    a_device,
    a_mig_device,
    a_node,
    a_pod,
    a_quota,
    a_running_pod,
    ask_for,
)
from tests.support.builders.vendor_examples import VENDORS, read_node, read_pod
from tests.support.stress import count_examples

POLICY = SchedulingPolicy()
MANY = 1000
MEMORY = 24576


def count(columns: ClusterColumns, pod: dict[str, Any], limit: int = MANY) -> list[int] | None:
    counts = CopyCounter(columns, POLICY).count_copies(pod, columns.node_names, limit)
    return None if counts is None else counts.tolist()


def count_placed(columns: ClusterColumns, pod: dict[str, Any], node: str, limit: int) -> int:
    """Place copies on one node until it refuses one; the cluster keeps them."""
    for copies in range(limit):
        decision = decide(columns, pod, [node], POLICY)
        if not isinstance(decision, Decision) or decision.chosen is None:
            return copies
        metadata = {**pod["metadata"], "uid": f"{node}-{copies}", "annotations": decision.annotations}
        columns.apply_pod({**pod, "metadata": metadata, "status": {"phase": "Running"}})
        # The first copy leaves what the pod itself held; those after it hold nothing yet.
        columns.delete_pod(pod["metadata"]["uid"])
    return limit


@pytest.mark.parametrize(
    ("devices", "ask", "copies"),
    [
        # Memory decides: eight parts of 3,000 MiB in 24,576.
        ([a_device()], ask_for(gpumem=3000), 8),
        ([a_device(), a_device("GPU-1")], ask_for(gpumem=3000), 16),
        # Slots decide: ten of each device.
        ([a_device()], ask_for(gpumem=1), 10),
        # Cores decide: three parts of 30 % in 100 %.
        ([a_device()], ask_for(gpumem=1, gpucores=30), 3),
        ([a_device()], ask_for(gpumem=MEMORY, gpucores=100), 1),
        ([a_device()], ask_for(gpumem=MEMORY + 1), 0),
        # A copy on two devices takes a part of each.
        ([a_device()], ask_for(2, gpumem=3000), 0),
        ([a_device(), a_device("GPU-1")], ask_for(2, gpumem=3000), 8),
        # Eight parts on each of three devices are 24: twelve copies of two.
        ([a_device(), a_device("GPU-1"), a_device("GPU-2")], ask_for(2, gpumem=3000), 12),
        # The small device ends first, and two devices of a copy are never the same.
        ([a_device(), a_device("GPU-1", devmem=6000)], ask_for(2, gpumem=3000), 2),
        ([a_device(), a_device("GPU-1", health=False)], ask_for(gpumem=3000), 8),
    ],
)
def test_a_node_takes_copies_until_a_device_lacks_slots_memory_or_cores(
    devices: list[dict[str, Any]], ask: dict[str, Any], copies: int
) -> None:
    assert count(a_cluster(a_node(devices=devices)), a_pod(ask)) == [copies]


def test_each_node_has_its_count_up_to_the_limit() -> None:
    columns = a_cluster(
        a_node("a", [a_device("GPU-a")]),
        a_node("b", [a_device("GPU-b", devmem=6000)]),
        a_node("c", [a_device("GPU-c", type="AMD")]),
        pods=[a_running_pod("GPU-a,NVIDIA,9000,0:;", "a")],
    )
    assert count(columns, a_pod(ask_for(gpumem=3000))) == [5, 2, 0]
    assert count(columns, a_pod(ask_for(gpumem=3000)), limit=4) == [4, 2, 0]


@pytest.mark.parametrize(
    ("policy", "copies"),
    [
        # Three shares on each of three devices, two for a copy. The fullest devices first: 1-2, 1-2, 1-2, and the third
        # device is left without a second. The emptiest first: 1-2, 3-1, 2-3, 1-2.
        ("binpack", 3),
        ("spread", 4),
    ],
)
def test_the_order_in_which_devices_are_tried_decides_where_it_matters(policy: str, copies: int) -> None:
    names = ("a", "b", "c")
    columns = a_cluster(
        a_node("a", [a_device(f"GPU-a{number}", count=3) for number in range(3)]),
        a_node("b", [a_device(f"GPU-b{number}", count=3) for number in range(2)]),
        a_node("c", [a_device("GPU-c")]),
    )
    pod = a_pod(ask_for(2, gpumem=1000), annotations={"hami.io/gpu-scheduler-policy": policy})
    assert dict(zip(names, count(columns, pod) or (), strict=True)) == {"a": copies, "b": 3, "c": 0}


@pytest.mark.parametrize(
    ("annotations", "copies"),
    [
        ({}, [4, 4]),
        ({"nvidia.com/nouse-gpuuuid": "GPU-a0"}, [2, 4]),
        ({"nvidia.com/use-gpuuuid": "GPU-b0"}, [0, 2]),
    ],
)
@pytest.mark.parametrize("numa", ["true", "false"])
def test_nodes_with_equal_devices_differ_by_the_uuids_that_a_pod_names(
    annotations: dict[str, str], copies: list[int], numa: str
) -> None:
    columns = a_cluster(*(a_node(name, [a_device(f"GPU-{name}{n}", count=2) for n in range(2)]) for name in "ab"))
    pod = a_pod(ask_for(gpumem=1000), annotations={**annotations, "nvidia.com/numa-bind": numa})
    assert count(columns, pod) == copies


def test_two_devices_of_a_copy_are_on_one_numa_node_where_the_pod_asks_for_that() -> None:
    devices = [a_device(f"GPU-{number}", count=2, numa=number % 2) for number in range(3)]
    for numa, copies in (("true", 2), ("false", 3)):
        pod = a_pod(ask_for(2, gpumem=1000), annotations={"nvidia.com/numa-bind": numa})
        assert count(a_cluster(a_node(devices=devices)), pod) == [copies], numa


@pytest.mark.parametrize(("uid", "copies"), [("uid-holder", 2), ("uid-other", 0)])
def test_devices_that_the_pod_itself_holds_are_free_for_its_copies(uid: str, copies: int) -> None:
    holder = a_running_pod("GPU-0,NVIDIA,20000,0:;", uid="uid-holder")
    assert count(a_cluster(pods=[holder]), a_pod(ask_for(gpumem=12000), uid=uid)) == [copies]


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        (a_pod(ask_for(), ask_for()), "two containers ask"),
        (a_pod(SIDECAR, init=[ask_for()]), "an init container asks"),
        (a_pod(SIDECAR), "no container asks"),
        (a_pod(ask_for(), annotations={"hami.io/device-scoring-weights": "slot=1"}), "the weights are unreadable"),
        (a_pod(ask_for(), namespace="limited"), "a quota limits all nodes together"),
    ],
)
def test_copies_that_decide_about_each_other_are_not_counted(pod: dict[str, Any], reason: str) -> None:
    columns = a_cluster()
    columns.apply_quota(a_quota(namespace="limited", gpumem=100_000))
    assert count(columns, pod) is None, reason
    assert count(columns, a_pod(SIDECAR, ask_for(gpumem=12000))) == [2]


def test_a_vendor_with_rules_of_its_own_is_not_counted() -> None:
    columns = ClusterColumns(VENDORS)
    columns.apply_node(read_node("ascend"))
    assert count(columns, read_pod("ascend")) is None


@st.composite
def clusters(draw: st.DrawFn) -> ClusterColumns:
    """Two nodes with up to four devices, some of MIG, some sick, some in use."""
    nodes, pods = [], []
    for name in ("a", "b"):
        devices = []
        for number in range(draw(st.integers(1, 4))):
            uuid = f"GPU-{name}{number}"
            numa = draw(st.integers(0, 1))
            if draw(st.integers(0, 7)) == 0:
                devices.append(a_mig_device(uuid, numa=numa))
                continue
            fields = {"count": draw(st.integers(1, 6)), "devmem": draw(st.sampled_from([8000, 16000, MEMORY]))}
            devices.append(a_device(uuid, numa=numa, health=draw(st.integers(0, 5)) > 0, **fields))
            if draw(st.booleans()):
                held = f"{uuid},NVIDIA,{draw(st.sampled_from([1000, 5000]))},{draw(st.sampled_from([0, 20]))}:;"
                pods.append(a_running_pod(held, name, f"uid-{uuid}"))
        nodes.append(a_node(name, devices))
    return a_cluster(*nodes, pods=pods)


@st.composite
def pods(draw: st.DrawFn) -> dict[str, Any]:
    amount = draw(st.sampled_from([{"gpumem": 1500}, {"gpumem": 5000}, {"gpumem-percentage": 30}, {}]))
    cores = draw(st.sampled_from([{}, {"gpucores": 25}, {"gpucores": 40}]))
    annotations = draw(
        st.dictionaries(
            st.just("hami.io/gpu-scheduler-policy"), st.sampled_from(["binpack", "spread", "topology-aware"])
        )
    )
    if draw(st.integers(0, 3)) == 0:
        annotations["nvidia.com/numa-bind"] = "true"
    if draw(st.integers(0, 3)) == 0:
        annotations["nvidia.com/nouse-gpuuuid"] = "GPU-a0"
    uid = draw(st.sampled_from(["uid-pod", "uid-GPU-a0"]))
    return a_pod(ask_for(draw(st.integers(1, 3)), **amount, **cores), annotations=annotations, uid=uid)


@given(clusters(), pods(), st.sampled_from([2, 30]))
@settings(max_examples=count_examples(60))
def test_the_count_is_that_of_copies_placed_one_after_the_other(
    columns: ClusterColumns, pod: dict[str, Any], limit: int
) -> None:
    counts = count(columns, pod, limit)
    assert counts == [count_placed(columns, pod, node, limit) for node in columns.node_names]
