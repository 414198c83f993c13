"""Devices, classes and claims read from a snapshot: malformed objects, bounds, and what is not read again."""

from typing import Any

import pytest

from engine.claims import slice_index
from engine.claims.inventory import read_inventory
from engine.snapshot import kinds
from engine.snapshot.reading import change_snapshot, read_snapshot
from tests.support.builders.claims import a_claim, a_class, a_device, a_slice, an_allocation, judge_claims
from tests.support.builders.cluster import Object, a_node


def reject(value: Object) -> str:
    """Return the sentence about the only object, which is malformed."""
    (rejected,) = read_inventory(read_snapshot([value])).rejected
    return rejected.to_sentence()


@pytest.mark.parametrize(
    ("device", "location"),
    [
        ("gpu", "spec.devices[0] is 'gpu', not a mapping"),
        (
            a_device("gpu") | {"attributes": {"model": "A100"}},
            "spec.devices[0].attributes[model] is 'A100', not a mapping",
        ),
        (
            a_device("gpu") | {"attributes": {"index": {"int": "1"}}},
            "attributes[index].int is '1', not a value of type int",
        ),
        (a_device("gpu") | {"attributes": {"index": {"int": 2**63}}}, "not a value of type int"),
        (a_device("gpu", "40 GB"), "spec.devices[0].capacity[memory].value is '40 GB', which is not a quantity"),
        (a_device("gpu") | {"capacity": [1]}, "spec.devices[0].capacity is a list of 1 entries, not a mapping"),
        (a_device("gpu") | {"name": 1}, "spec.devices[0].name is 1, not a string"),
    ],
)
def test_a_malformed_device_rejects_its_slice_with_the_place(device: Any, location: str) -> None:
    sentence = reject(a_slice(device))
    assert sentence.startswith("ResourceSlice.resource.k8s.io n1-slice: spec.devices[0]")
    assert location in sentence


@pytest.mark.parametrize(
    ("change", "location"),
    [
        ({"devices": 3}, "spec.devices is 3, not a list"),
        ({"perDeviceNodeSelection": "yes"}, "spec.perDeviceNodeSelection is 'yes', not true or false"),
        ({"nodeSelector": []}, "spec.nodeSelector is a list of 0 entries, not a mapping"),
    ],
)
def test_a_malformed_slice_is_rejected_with_the_place(change: Object, location: str) -> None:
    assert location in reject(a_slice(**change))


@pytest.mark.parametrize(
    ("status", "location"),
    [
        (an_allocation("a", consumedCapacity={"memory": "much"}), "results[0].consumedCapacity[memory] is 'much'"),
        ({"allocation": {"allocationTimestamp": "today"}}, "status.allocation.allocationTimestamp is 'today'"),
        ({"allocation": {"allocationTimestamp": "2026-11-25T11:00:00"}}, "which has no time zone"),
    ],
)
def test_a_malformed_claim_is_rejected_with_the_place(status: Object, location: str) -> None:
    assert location in reject(a_claim(status=status))


def test_a_malformed_pool_of_a_slice_is_rejected_with_the_place() -> None:
    slice_ = a_slice()
    slice_["spec"]["pool"] = "n1"
    assert "spec.pool is 'n1', not a mapping" in reject(slice_)
    slice_["spec"]["pool"] = {"name": "n1", "generation": 2**70}
    assert "not a whole number of 64 bits" in reject(slice_)


def test_an_invalid_version_fails_every_selector_as_in_kubernetes() -> None:
    device = a_device("a") | {"attributes": {"driverVersion": {"version": "550"}}}
    judged = judge_claims(a_node(), a_class("device.driver == 'gpu.nvidia.com'"), a_slice(device), a_claim())
    (reason,) = judged.get_reasons()
    assert reason.startswith(
        "class gpu: selector #0: CEL runtime error: attribute driverVersion: parse semantic version"
    )


def test_devices_beyond_the_bound_are_left_out_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slice_index, "MAX_DEVICES", 3)
    slices = [a_slice(*(a_device(str(index)) for index in range(2)), node=f"n{node}") for node in range(3)]
    inventory = read_inventory(read_snapshot(slices))
    assert list(inventory.slices.by_name) == ["n0-slice"]
    assert "which are not judged" in inventory.rejected[0].to_sentence()


def test_slices_of_earlier_versions_of_the_api_are_read() -> None:
    basic = {"name": "a", "basic": {"attributes": {"model": {"string": "A100"}}}}
    flat = {"name": "r0", "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    selector = a_class("device.attributes['gpu.nvidia.com'].model == 'A100'")
    assert judge_claims(a_node(), selector, a_slice(basic), a_claim(flat)).list_devices() == ["a"]
    bare = {"name": "a", "capacity": {"memory": "40Gi"}}
    enough = a_class("device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('40Gi')) == 0")
    assert judge_claims(a_node(), enough, a_slice(bare), a_claim()).list_devices() == ["a"]


def test_objects_that_have_not_changed_are_not_read_again() -> None:
    before = read_snapshot([a_node(), a_class(), a_slice(a_device("a")), a_slice(a_device("b"), node="n2"), a_claim()])
    first = read_inventory(before)
    held = change_snapshot(before, [a_claim(name="c1", status=an_allocation("a"))])
    second = read_inventory(held, previous=first)
    assert second.slices is first.slices
    assert second.pools is first.pools
    assert second.claims["default", "c0"] is first.claims["default", "c0"]
    assert second.allocated.find_holder(("gpu.nvidia.com", "n1", "a"))
    third = read_inventory(change_snapshot(held, [a_slice(a_device("c"), node="n2")]), previous=second)
    assert third.slices.by_name["n1-slice"] is first.slices.by_name["n1-slice"]
    assert third.slices.by_name["n2-slice"].devices[0].name == "c"
    assert third.pools == {}


def test_kinds_that_were_not_read_are_known() -> None:
    snapshot = read_snapshot([a_node()], unread=[kinds.RESOURCE_SLICE, kinds.POD])
    assert read_inventory(snapshot).unread == {kinds.RESOURCE_SLICE}
