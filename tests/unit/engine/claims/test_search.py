"""The search for devices: order, alternatives, modes, constraints, access next to others, bounds.

Expected values: the rules of kube-scheduler as recorded in tests/conformance, restated one by one; for constraints an
exhaustive search of its own.
"""

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.claims.gates import Gates
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

FOUR = [a_device(f"gpu-{index}", "40Gi", {"index": index, "numa": index % 2}) for index in range(4)]
BIG = "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('80Gi')) >= 0"


def judge(
    *claims: Object, devices: list[Object] | None = None, others: tuple[Object, ...] = (), **more: Any
) -> JudgedClaims:
    names = [claim["metadata"]["name"] for claim in claims]
    offered = a_slice(*(FOUR if devices is None else devices))
    return judge_claims(a_node(), a_class(), offered, *claims, *others, pod=a_pod_with(*names), **more)


def test_the_first_devices_that_fit_are_taken() -> None:
    judged = judge(a_claim(a_request("device.attributes['gpu.nvidia.com'].index > 0", count=2)))
    assert judged.get_reasons() == ()
    assert judged.list_devices() == ["gpu-1", "gpu-2"]


def test_devices_of_other_claims_are_passed_over() -> None:
    held = a_claim(name="held", status=an_allocation("gpu-0", "gpu-2", pods=["other"]))
    assert judge(a_claim(a_request(count=2)), others=(held,)).list_devices() == ["gpu-1", "gpu-3"]
    assert judge(a_claim(a_request(count=3)), others=(held,)).get_reasons() == NOTHING_FITS


def test_two_claims_of_a_pod_get_devices_of_their_own() -> None:
    judged = judge(a_claim(a_request(count=3)), a_claim(name="c1"))
    assert judged.list_devices() == ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]


def test_a_search_goes_back_for_what_a_later_request_needs() -> None:
    first = a_request(name="r0")
    second = a_request("device.attributes['gpu.nvidia.com'].index == 0", name="r1")
    assert judge(a_claim(first, second)).list_devices() == ["gpu-1", "gpu-0"]


def test_of_alternatives_the_first_that_fits_is_taken() -> None:
    request = {"name": "r0", "firstAvailable": [an_alternative("big", BIG), an_alternative("two", count=2)]}
    judged = judge(a_claim(request))
    assert judged.list_devices() == ["gpu-0", "gpu-1"]
    node = judged.snapshot.nodes["n1"].node
    assert {device.request for device in judged.judge.allocate(node)[0].devices} == {"r0/two"}


def an_alternative(name: str, *expressions: str, **fields: Any) -> Object:
    return {"name": name, **a_request(*expressions, **fields)["exactly"]}


def test_a_later_claim_makes_an_earlier_one_take_another_alternative() -> None:
    request = {"name": "r0", "firstAvailable": [an_alternative("four", count=4), an_alternative("one")]}
    assert judge(a_claim(request), a_claim(name="c1")).list_devices() == ["gpu-0", "gpu-1"]


def test_every_device_means_those_in_use_as_well() -> None:
    everything = a_claim(a_request(allocationMode="All", count=None))
    assert judge(everything).list_devices() == ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]
    held = a_claim(name="held", status=an_allocation("gpu-3"))
    assert judge(everything, others=(held,)).get_reasons() == NOTHING_FITS


def test_every_device_of_none_is_none() -> None:
    assert judge(a_claim(a_request(BIG, allocationMode="All"))).get_reasons() == NOTHING_FITS


def test_every_device_of_a_pool_that_is_being_updated_is_an_error() -> None:
    updated = a_slice(a_device("x"), name="updated", pool="updated")
    updated["spec"]["pool"]["resourceSliceCount"] = 2
    judged = judge(a_claim(a_request(allocationMode="All")), others=(updated,))
    cause = "asks for all devices, but resource pool gpu.nvidia.com/updated is currently being updated"
    assert judged.get_reasons() == (f"claim default/c0, request r0: {cause}",)


def test_a_claim_may_have_32_devices() -> None:
    devices = [a_device(f"gpu-{index:02}") for index in range(33)]
    judged = judge(a_claim(a_request(count=20), a_request(name="r1", count=12)), devices=devices)
    assert judged.list_devices() == [device["name"] for device in devices[:32]]


def test_more_devices_than_a_claim_may_have_are_an_error() -> None:
    judged = judge(a_claim(a_request(count=20), a_request(name="r1", count=13)))
    cause = "claim default/c0: number of requested devices 33 exceeds the claim limit of 32"
    assert judged.get_reasons() == (cause,)


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"allocationMode": "Some"}, "claim default/c0, request r0: unsupported count mode Some"),
        (
            {"selectors": [{}]},
            "claim default/c0, request r0, selector #0: CEL expression empty (unsupported selector type?)",
        ),
        (
            {"selectors": [{"cel": {"expression": "device.attributes['gpu.nvidia.com'].rack == 'r1'"}}]},
            "claim default/c0: selector #0: CEL runtime error: no such key: rack",
        ),
    ],
)
def test_an_error_ends_the_attempt_with_kube_schedulers_text(change: Object, cause: str) -> None:
    assert judge(a_claim(a_request(**change))).get_reasons() == (cause,)


def test_an_unknown_constraint_is_an_error() -> None:
    judged = judge(a_claim(a_request(), constraints=[{"requests": ["r0"]}]))
    cause = "claim default/c0, constraint #0: empty constraint (unsupported constraint type?)"
    assert judged.get_reasons() == (cause,)


def test_access_for_monitoring_takes_devices_that_others_use_and_leaves_them_free() -> None:
    held = a_claim(name="held", status=an_allocation("gpu-0", "gpu-1"))
    watching = a_claim(a_request(adminAccess=True, count=4))
    assert judge(watching, others=(held,)).list_devices() == ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]
    watched = a_claim(name="held", status=an_allocation("gpu-0", adminAccess=True))
    assert judge(a_claim(a_request(count=4)), others=(watched,)).get_reasons() == ()


def test_access_for_monitoring_does_not_take_one_device_twice_for_one_claim() -> None:
    both = a_claim(a_request(adminAccess=True, count=3), a_request(name="r1", adminAccess=True, count=2))
    assert judge(both).get_reasons() == NOTHING_FITS
    two = judge(a_claim(a_request(adminAccess=True, count=3)), a_claim(a_request(adminAccess=True, count=2), name="c1"))
    assert two.list_devices() == ["gpu-0", "gpu-1", "gpu-2", "gpu-0", "gpu-1"]


def test_devices_of_one_claim_match_in_an_attribute() -> None:
    claim = a_claim(a_request(count=2), constraints=[{"matchAttribute": "gpu.nvidia.com/numa"}])
    assert judge(claim).list_devices() == ["gpu-0", "gpu-2"]
    three = a_claim(a_request(count=3), constraints=[{"matchAttribute": "gpu.nvidia.com/numa"}])
    assert judge(three).get_reasons() == NOTHING_FITS


def test_a_device_without_the_attribute_meets_no_constraint() -> None:
    claim = a_claim(a_request(), constraints=[{"matchAttribute": "gpu.nvidia.com/rack"}])
    assert judge(claim).get_reasons() == NOTHING_FITS


def test_every_device_with_a_constraint_that_one_breaks_is_an_error() -> None:
    claim = a_claim(a_request(allocationMode="All"), constraints=[{"matchAttribute": "gpu.nvidia.com/numa"}])
    cause = "cannot add device gpu.nvidia.com/n1/gpu-1 because a claim constraint would not be satisfied"
    assert judge(claim).get_reasons() == (f"claim default/c0, request r0: {cause}",)


def test_values_of_different_types_do_not_match() -> None:
    devices = [a_device("a", attributes={"numa": 1}), a_device("b", attributes={"numa": "1"}),
               a_device("c", attributes={"numa": True})]  # fmt: skip
    claim = a_claim(a_request(count=2), constraints=[{"matchAttribute": "gpu.nvidia.com/numa"}])
    assert judge(claim, devices=devices).get_reasons() == NOTHING_FITS


def test_requests_differ_in_an_attribute() -> None:
    constraint = [{"distinctAttribute": "gpu.nvidia.com/numa"}]
    two = a_claim(a_request(), a_request(name="r1"), constraints=constraint)
    assert judge(two).list_devices() == ["gpu-0", "gpu-1"]
    three = a_claim(a_request(), a_request(name="r1"), a_request(name="r2"), constraints=constraint)
    assert judge(three).get_reasons() == NOTHING_FITS


def test_a_constraint_is_about_the_requests_that_it_names() -> None:
    constraint = [{"distinctAttribute": "gpu.nvidia.com/numa", "requests": ["r0", "r2"]}]
    claim = a_claim(a_request(), a_request(name="r1"), a_request(name="r2"), constraints=constraint)
    assert judge(claim).list_devices() == ["gpu-0", "gpu-1", "gpu-3"]


@settings(max_examples=60)
@given(st.lists(st.integers(0, 2), min_size=1, max_size=6), st.integers(1, 4), st.sets(st.integers(0, 5)))
def test_a_matching_set_is_found_where_there_is_one(numas: list[int], count: int, used: set[int]) -> None:
    devices = [a_device(f"gpu-{index}", attributes={"numa": numa}) for index, numa in enumerate(numas)]
    held = a_claim(name="held", status=an_allocation(*(f"gpu-{index}" for index in used)))
    claim = a_claim(a_request(count=count), constraints=[{"matchAttribute": "gpu.nvidia.com/numa"}])
    judged = judge(claim, devices=devices, others=(held,))
    free = [index for index in range(len(numas)) if index not in used]
    matching = [chosen for chosen in combinations(free, count) if len({numas[index] for index in chosen}) == 1]
    assert (judged.get_reasons() == ()) == bool(matching)
    if matching:
        assert judged.list_devices() == [f"gpu-{index}" for index in matching[0]]


def test_a_search_beyond_its_bounds_is_left_open_with_a_sentence() -> None:
    devices = [a_device(f"gpu-{index:02}", attributes={"numa": index}) for index in range(40)]
    requests = [a_request(name=f"r{number}", count=4) for number in range(4)]
    constraints = [{"matchAttribute": "gpu.nvidia.com/numa", "requests": ["r3"]}]
    judged = judge(a_claim(*requests, constraints=constraints), devices=devices)
    assert "given up" in judged.get_cause()


def test_a_gate_that_is_off_refuses_what_needs_it() -> None:
    judged = judge(a_claim(a_request(adminAccess=True)), gates=Gates(admin_access=False))
    cause = "claim default/c0, request r0: admin access is requested, but the feature is disabled"
    assert judged.get_reasons() == (cause,)
    capacity = {"requests": {"memory": "1Gi"}}
    judged = judge(a_claim(a_request(capacity=capacity)), gates=Gates(consumable_capacity=False))
    assert "DRAConsumableCapacity feature is disabled" in judged.get_reasons()[0]
