"""Devices that several claims share: capacity, counters; and devices that only some may use: taints, binding."""

from datetime import UTC, datetime
from typing import Any

import pytest

from engine.claims.capacity import CapacityUnjudgedError, take_amount
from engine.claims.device_details import Capacity, RequestPolicy
from engine.claims.gates import Gates
from engine.claims.quantity import parse_quantity
from tests.support.builders.claims import (
    NOTHING_FITS,
    JudgedClaims,
    a_claim,
    a_class,
    a_device,
    a_pod_with,
    a_request,
    a_slice,
    an_allocation,
    judge_claims,
)
from tests.support.builders.cluster import Object, a_node

ALLOCATED_AT = datetime(2026, 11, 25, 11, tzinfo=UTC)


def judge(device: Object | list[Object], *claims: Object, others: tuple[Object, ...] = (), **more: Any) -> JudgedClaims:
    names = [claim["metadata"]["name"] for claim in claims]
    devices = device if isinstance(device, list) else [device]
    return judge_claims(a_node(), a_class(), a_slice(*devices), *claims, *others, pod=a_pod_with(*names), **more)


def a_shared_device(memory: str, policy: Object | None = None) -> Object:
    capacity = {"memory": {"value": memory} | ({"requestPolicy": policy} if policy else {})}
    return a_device("gpu-0", allowMultipleAllocations=True) | {"capacity": capacity}


def build_claim(memory: str, name: str = "c0") -> Object:
    return a_claim(a_request(capacity={"requests": {"memory": memory}}), name=name)


def build_held_claim(memory: str) -> Object:
    return a_claim(name="held", status=an_allocation("gpu-0", shareID="1", consumedCapacity={"memory": memory}))


def test_claims_share_a_device_up_to_its_capacity() -> None:
    judged = judge(a_shared_device("40Gi"), build_claim("10Gi"), build_claim("30Gi", "c1"))
    assert judged.list_devices() == ["gpu-0", "gpu-0"]
    assert judged.list_consumed() == [{"memory": "10Gi"}, {"memory": "30Gi"}]
    assert judge(a_shared_device("40Gi"), build_claim("10Gi"), build_claim("31Gi", "c1")).get_reasons() == NOTHING_FITS


def test_what_other_claims_take_is_not_left() -> None:
    device, held = a_shared_device("40Gi"), build_held_claim("30Gi")
    assert judge(device, build_claim("10Gi"), others=(held,)).get_reasons() == ()
    assert judge(device, build_claim("11Gi"), others=(held,)).get_reasons() == NOTHING_FITS


def test_a_claim_that_asks_for_no_amount_takes_all() -> None:
    assert judge(a_shared_device("40Gi"), a_claim()).list_consumed() == [{"memory": "40Gi"}]
    assert judge(a_shared_device("40Gi"), a_claim(), others=(build_held_claim("1Gi"),)).get_reasons() == NOTHING_FITS


def test_a_capacity_that_the_device_lacks_refuses() -> None:
    claim = a_claim(a_request(capacity={"requests": {"cores": "1"}}))
    assert judge(a_shared_device("40Gi"), claim).get_reasons() == NOTHING_FITS


RANGE = {"default": "1Gi", "validRange": {"min": "2Gi", "max": "8Gi", "step": "2Gi"}}
VALUES = {"default": "1Gi", "validValues": ["1Gi", "4Gi", "8Gi"]}


@pytest.mark.parametrize(
    ("policy", "amount", "taken"),
    [
        (RANGE, "1Gi", "2Gi"),
        (RANGE, "2Gi", "2Gi"),
        (RANGE, "5Gi", "6Gi"),
        (RANGE, "8Gi", "8Gi"),
        (RANGE, "9Gi", None),
        (VALUES, "2Gi", "4Gi"),
        (VALUES, "8Gi", "8Gi"),
        (VALUES, "9Gi", None),
    ],
)
def test_an_amount_is_rounded_up_to_what_the_device_hands_out(policy: Object, amount: str, taken: str | None) -> None:
    judged = judge(a_shared_device("40Gi", policy), build_claim(amount))
    if taken is None:
        assert judged.get_reasons() == NOTHING_FITS
    else:
        assert judged.list_consumed() == [{"memory": taken}]


def test_without_an_amount_the_default_is_taken() -> None:
    assert judge(a_shared_device("40Gi", RANGE), a_claim()).list_consumed() == [{"memory": "1Gi"}]


def test_an_amount_beyond_64_bits_is_left_open_with_a_sentence() -> None:
    judged = judge(a_shared_device("90E", {"validRange": {"min": "1", "step": "1"}}), build_claim("80E"))
    assert "beyond 64 bits" in judged.get_cause()
    capacity = Capacity(
        parse_quantity("8"), RequestPolicy(None, parse_quantity("1"), None, parse_quantity("0"), True, ())
    )
    with pytest.raises(CapacityUnjudgedError, match="a step of 0"):
        take_amount(parse_quantity("2"), capacity)


def a_partition(name: str, memory: str) -> Object:
    return a_device(name, consumesCounters=[{"counterSet": "gpu", "counters": {"memory": {"value": memory}}}])


def with_partitions(*devices: Object, memory: str = "80Gi") -> list[Object]:
    counters = a_slice(name="counters", sharedCounters=[{"name": "gpu", "counters": {"memory": {"value": memory}}}])
    slices = [a_slice(*devices), counters]
    for slice_ in slices:
        slice_["spec"]["pool"]["resourceSliceCount"] = 2
    return slices


def judge_partitions(*claims: Object, others: tuple[Object, ...] = ()) -> JudgedClaims:
    slices = with_partitions(a_partition("whole", "80Gi"), a_partition("left", "40Gi"), a_partition("right", "40Gi"))
    pod = a_pod_with(*(claim["metadata"]["name"] for claim in claims))
    return judge_claims(a_node(), a_class(), *slices, *claims, *others, pod=pod)


def test_partitions_share_the_counters_of_their_pool() -> None:
    assert judge_partitions(a_claim()).list_devices() == ["whole"]
    assert judge_partitions(a_claim(a_request(count=2))).list_devices() == ["left", "right"]
    assert judge_partitions(a_claim(a_request(count=3))).get_reasons() == NOTHING_FITS


def test_a_partition_in_use_leaves_less_of_the_counters() -> None:
    held = a_claim(name="held", status=an_allocation("left"))
    assert judge_partitions(a_claim(), others=(held,)).list_devices() == ["right"]
    held_whole = a_claim(name="held", status=an_allocation("whole"))
    assert judge_partitions(a_claim(), others=(held_whole,)).get_reasons() == NOTHING_FITS


def a_tainted_device(effect: str = "NoSchedule") -> Object:
    return a_device("gpu-0", taints=[{"key": "unhealthy", "value": "x", "effect": effect}])


@pytest.mark.parametrize(
    ("toleration", "is_tolerated"),
    [
        ({"key": "unhealthy", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "unhealthy", "value": "x"}, True),
        ({"key": "unhealthy", "operator": "Equal", "value": "y"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"operator": "Exists", "effect": "NoExecute"}, False),
    ],
)
def test_a_tainted_device_needs_a_toleration(toleration: Object, is_tolerated: bool) -> None:
    assert judge(a_tainted_device(), a_claim()).get_reasons() == NOTHING_FITS
    reasons = judge(a_tainted_device(), a_claim(a_request(tolerations=[toleration]))).get_reasons()
    assert (reasons == ()) == is_tolerated


def test_a_taint_that_only_informs_keeps_no_claim_away() -> None:
    assert judge(a_tainted_device("None"), a_claim()).get_reasons() == ()


def test_administrators_taint_devices_with_the_feature_gate_only() -> None:
    rule = {
        "apiVersion": "resource.k8s.io/v1beta2",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "drain"},
        "spec": {
            "deviceSelector": {"driver": "gpu.nvidia.com", "pool": "n1"},
            "taint": {"key": "maintenance", "effect": "NoSchedule"},
        },
    }
    assert judge(a_device("gpu-0"), a_claim(), others=(rule,)).get_reasons() == ()
    judged = judge(a_device("gpu-0"), a_claim(), others=(rule,), gates=Gates(device_taint_rules=True))
    assert judged.get_reasons() == NOTHING_FITS
    assert judged.list_texts("gpu-0") == ["taint maintenance:NoSchedule of DeviceTaintRule drain is not tolerated"]


def a_waiting_claim(**conditions: str) -> Object:
    status = an_allocation("gpu-0", bindingConditions=["ready"], bindingFailureConditions=["broken"], pods=["p1"])
    status["allocation"]["allocationTimestamp"] = "2026-11-25T11:00:00Z"
    listed = [{"type": name, "status": value} for name, value in conditions.items()]
    status["devices"] = [{"driver": "gpu.nvidia.com", "pool": "n1", "device": "gpu-0", "conditions": listed}]
    return a_claim(status=status)


@pytest.mark.parametrize(
    ("conditions", "minutes", "is_available"),
    [
        ({"ready": "True"}, 60, True),
        ({"ready": "False"}, 9, True),
        ({"ready": "False"}, 11, False),
        ({"ready": "True", "broken": "True"}, 1, False),
    ],
)
def test_a_claim_waits_ten_minutes_for_its_device(conditions: dict[str, str], minutes: int, is_available: bool) -> None:
    now = ALLOCATED_AT.replace(hour=11 + minutes // 60, minute=minutes % 60)
    judged = judge_claims(a_node(), a_class(), a_waiting_claim(**conditions), now=now)
    assert judged.get_reasons() == (() if is_available else ("resourceclaim not available on the node",))


def test_an_allocated_claim_is_on_the_nodes_that_its_devices_reach() -> None:
    status = an_allocation("gpu-0")
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}]
    status["allocation"]["nodeSelector"] = {"nodeSelectorTerms": terms}
    judged = judge_claims(a_node(), a_node("n2"), a_class(), a_claim(status=status))
    assert judged.get_reasons("n1") == ("resourceclaim not available on the node",)
    assert judged.get_reasons("n2") == ()
