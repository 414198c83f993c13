"""Device requests of a pod: which annotations constrain them, and amounts that are capped."""

from typing import Any

import pytest

from engine.fit.judge.request.pod_request import VendorRequest
from engine.hami.vendor_catalog import CAMBRICON
from engine.hami.vendors import NVIDIA
from engine.suggestions.ask import Amount, Ask, Constraint, names_amount
from tests.support.builders.nodes_to_judge import a_pod, ask_for

VENDORS = (NVIDIA, CAMBRICON)


def build(*containers: dict[str, Any], **annotations: str) -> Ask:
    named = {
        "use_type": "nvidia.com/use-gputype",
        "no_use_type": "nvidia.com/nouse-gputype",
        "policy": "hami.io/gpu-scheduler-policy",
        "uuid": "nvidia.com/use-gpuuuid",
        "numa": "nvidia.com/numa-bind",
    }
    pod = a_pod(*containers, annotations={named[key]: value for key, value in annotations.items()})
    return Ask.from_pod(pod, VENDORS)


@pytest.mark.parametrize(
    ("annotations", "constraint", "keys"),
    [
        ({"use_type": "A30", "no_use_type": "T4"}, "type", ["nvidia.com/use-gputype", "nvidia.com/nouse-gputype"]),
        ({"use_type": ""}, "type", []),
        ({"uuid": "GPU-1"}, "uuid", ["nvidia.com/use-gpuuuid"]),
        ({"uuid": "GPU-1"}, "type", []),
        ({"numa": "true"}, "numa", ["nvidia.com/numa-bind"]),
        ({"policy": "mutex"}, "policy", ["hami.io/gpu-scheduler-policy"]),
        ({"policy": "binpack, topology-aware"}, "policy", ["hami.io/gpu-scheduler-policy"]),
        # Spread and binpack order devices, and exclude none.
        ({"policy": "spread"}, "policy", []),
        ({"use_type": "A30"}, "memory", []),
    ],
)
def test_annotations_that_exclude_devices_state_a_constraint(
    annotations: dict[str, str], constraint: Constraint, keys: list[str]
) -> None:
    ask = build(ask_for(1), **annotations)
    assert ask.list_annotation_keys(constraint) == keys
    assert set(ask.without([constraint]).annotations) == set(ask.annotations) - set(keys)


def test_of_a_pod_without_devices_no_annotation_matters() -> None:
    assert build({}, use_type="A30").list_annotation_keys("type") == []
    assert build({}).list_vendors() == []


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"memory_mib": 100}, ["memory_mib"]),
        ({"memory_percentage": 50}, ["memory_percentage"]),
        ({"memory_percentage": 100}, ["memory_percentage"]),
        # HAMi's mark of a container that names no percentage.
        ({"memory_percentage": 101}, []),
        ({"memory_mib": 100, "memory_percentage": 50}, ["memory_mib"]),
        ({"cores": 30}, ["cores"]),
    ],
)
def test_an_amount_is_named_where_the_container_asks_for_devices(fields: dict[str, int], named: list[str]) -> None:
    plain: Any = {"memory_percentage": 101, **fields}
    request = VendorRequest("c", vendor="NVIDIA", count=2, **plain)
    amounts: tuple[Amount, ...] = ("memory_mib", "memory_percentage", "cores")
    assert [name for name in amounts if names_amount(request, name)] == named
    assert names_amount(request, "count")
    assert not any(names_amount(VendorRequest("c", vendor="NVIDIA", count=0, **plain), name) for name in amounts)


def test_amounts_above_the_limit_are_capped_and_others_remain() -> None:
    ask = build(ask_for(1, gpumem=1000), ask_for(2, gpumem=3000), ask_for(1))
    assert ask.find_positions("memory_mib") == [0, 1]
    assert [request.memory_mib for request in ask.cap("memory_mib", 2000).requests] == [1000, 2000, 0]
    assert [request.memory_mib for request in ask.cap("memory_mib", 500, [1]).requests] == [1000, 500, 0]
    assert [request.count for request in ask.cap("count", 1).requests] == [1, 1, 1]
    assert ask.cap("memory_mib", 3000) == ask


def test_memory_is_capped_at_a_multiple_of_the_unit() -> None:
    # A unit of Cambricon is 256 MiB, and one unit is the least that can be requested.
    request = VendorRequest("c", vendor="MLU", count=1, memory_mib=5120, memory_percentage=0)
    ask = Ask((request,), {}, VENDORS)
    assert [entry.memory_mib for entry in ask.cap("memory_mib", 1000).requests] == [768]
    assert [entry.memory_mib for entry in ask.cap("memory_mib", 1).requests] == [256]
