"""Reading of objects: whatever they say, it ends in an answer and never in a crash."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.judge.decide import decide
from engine.fit.judge.decision import Decision, SchedulingPolicy
from engine.fit.judge.reservation import reserve
from engine.hami.annotations import (
    ASSIGNED_NODE,
    CORDONED_DEVICES,
    DEVICE_POLICY,
    DEVICES_ALLOCATED,
    HANDSHAKE,
    MIG_ALLOCATIONS,
    PAIR_SCORES,
    REGISTER,
    SCORING_WEIGHTS,
)
from engine.hami.quantities import parse_whole
from engine.hami.vendors import NVIDIA
from tests.support.builders.nodes_to_judge import a_device, a_mig_device, a_node, a_pod, a_quota, a_running_pod, ask_for
from tests.support.stress import count_examples

HUGE = [2**31, 2**63, -(2**63) - 1, 10**40, -1, 1.5, float("1e308")]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
NUMBERS = st.one_of(st.integers(), st.sampled_from(HUGE), VALUES)
FIELDS = [*a_mig_device(), "index", "numa", "extra"]
ONE_DEVICE = st.dictionaries(st.sampled_from(FIELDS), NUMBERS, max_size=3).map(
    lambda content: {**a_mig_device(), **content}
)
QUANTITIES = st.one_of(
    NUMBERS,
    st.from_regex(r"[+-]?[0-9]{0,30}(\.[0-9]{0,5})?([eE][+-]?[0-9]{1,9}|[numkMGTPE]i?)?", fullmatch=True),
)
DEVICES = st.lists(st.sampled_from(["GPU-0", "NVIDIA", "100", ",", ":", ";", "-5", str(10**30)]), max_size=14).map(
    "".join
)
KEYS = st.sampled_from(
    [
        *(REGISTER, PAIR_SCORES, CORDONED_DEVICES, HANDSHAKE),
        *(ASSIGNED_NODE, DEVICES_ALLOCATED, MIG_ALLOCATIONS),
        *(NVIDIA.pod.use_type, NVIDIA.pod.use_uuid, NVIDIA.pod.numa_bind, NVIDIA.pod.mode),
        *(DEVICE_POLICY, SCORING_WEIGHTS),
    ]
)


def apply_and_decide(node: Any, running: Any, quota: Any, pod: Any) -> None:
    columns = ClusterColumns()
    for applied in (node, a_node("node-b", [a_device("GPU-9")])):
        columns.apply_node(applied)
    columns.apply_pod(running)
    columns.apply_quota(quota)
    answer = decide(columns, pod, ["node-a", "node-b"], SchedulingPolicy())
    if isinstance(answer, Decision):
        assert set(answer.list_failed_nodes()) | {name for name, _ in answer.list_fitting()} == {"node-a", "node-b"}
        reserve(columns, answer, pod)


@given(st.lists(st.one_of(ONE_DEVICE, VALUES), max_size=3))
@settings(max_examples=count_examples(25))
def test_any_registration(gpus: list[Any]) -> None:
    apply_and_decide(
        a_node(devices=json.dumps(gpus)), a_running_pod("GPU-0,NVIDIA,1,1:;"), a_quota(gpumem=100), a_pod()
    )


@given(st.text(max_size=40))
@settings(max_examples=count_examples(25))
def test_any_registration_text(text: str) -> None:
    apply_and_decide(a_node(devices=text), a_running_pod(text), a_quota(gpumem=text), a_pod())


@given(DEVICES, VALUES)
@settings(max_examples=count_examples(25))
def test_any_pod_annotation(devices: str, mig: Any) -> None:
    running = a_running_pod(devices, annotations={MIG_ALLOCATIONS: json.dumps(mig)})
    apply_and_decide(a_node(devices=[a_mig_device()]), running, a_quota(), a_pod())


@given(st.dictionaries(st.sampled_from(["gpu", "gpumem", "gpucores", "gpumem-percentage"]), QUANTITIES), QUANTITIES)
@settings(max_examples=count_examples(30))
def test_any_quantity(amounts: dict[str, Any], hard: Any) -> None:
    container = {"name": "main", "resources": {"limits": {f"nvidia.com/{key}": v for key, v in amounts.items()}}}
    apply_and_decide(
        a_node(devices=[a_mig_device()]), a_running_pod(""), a_quota(gpumem=hard, gpucores=hard), a_pod(container)
    )


@given(QUANTITIES)
@settings(max_examples=count_examples(50))
def test_a_quantity_is_a_whole_number_of_64_bits_or_none(value: Any) -> None:
    number = parse_whole(value)
    assert number is None or -(2**63) <= number < 2**63


@given(st.dictionaries(KEYS, st.text(max_size=20) | VALUES, max_size=5))
@settings(max_examples=count_examples(30))
def test_any_annotations(annotations: dict[str, Any]) -> None:
    node, pod, running = a_node(), a_pod(ask_for(2)), a_running_pod("GPU-0,NVIDIA,1,1:;")
    for item in (node, pod, running):
        item["metadata"]["annotations"] |= annotations
    apply_and_decide(node, running, a_quota(), pod)


@given(VALUES, VALUES)
@settings(max_examples=count_examples(25))
def test_any_object(first: Any, second: Any) -> None:
    shapes = ({"metadata": first}, {"metadata": {"uid": "u", "name": "n"}, "spec": first, "status": second})
    for shape in shapes:
        apply_and_decide(shape, shape, shape, {**shape, "spec": {"containers": [first, second, ask_for()]}})
