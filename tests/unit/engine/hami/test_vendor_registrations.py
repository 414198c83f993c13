"""Devices of vendors without HAMi's list in an annotation: amounts worked out by hand from the node's capacity.

Units are those of HAMi's documents: a Cambricon memory unit is 256 MiB and a Moore Threads one 512; a Moore Threads
device has 16 cores; AWS Neuron's cores are a mask with a bit for each core.
"""

import json
from typing import Any

import pytest

from engine.hami.registration import Device, Malformed, Registration
from engine.hami.vendor_catalog import CAMBRICON, GCU, KUNLUN, METAX_GPU, MTHREADS, NEURON
from engine.hami.vendor_registrations import decode_drs, derive_devices, parse_profile_size
from engine.hami.vendors import Vendor


def a_node(capacity: dict[str, str], **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": "n1", "labels": labels}, "status": {"capacity": capacity}}


def list_amounts(vendor: Vendor, **amounts: int) -> list[tuple[int, int, int]] | None:
    """List slots, memory and cores of the devices of a node with these amounts: ``count``, ``cores``, ``memory``."""
    capacity = {getattr(vendor.resources, name): str(amount) for name, amount in amounts.items()}
    devices = derive_devices(a_node(capacity), vendor)
    return None if devices is None else [(device.slots, device.memory_mib, device.cores) for device in devices]


@pytest.mark.parametrize(
    ("vendor", "amounts", "expected"),
    [
        # 200 units of 256 MiB on two devices of 100 cores.
        (CAMBRICON, {"cores": 200, "memory": 200}, [(100, 25_600, 100)] * 2),
        # The last device is begun.
        (CAMBRICON, {"cores": 250, "memory": 250}, [(100, 25_600, 100)] * 3),
        (CAMBRICON, {"cores": 100}, [(100, 0, 100)]),
        (CAMBRICON, {"cores": 100, "memory": -1}, [(100, 0, 100)]),
        # More than 32 bits hold.
        (CAMBRICON, {"cores": 100, "memory": 2**31}, [(100, 2**31 - 1, 100)]),
        (CAMBRICON, {"cores": 0, "memory": 200}, None),
        (CAMBRICON, {"memory": 200}, None),
        # 192 units of 512 MiB on two devices of 16 cores.
        (MTHREADS, {"cores": 32, "memory": 192}, [(100, 49_152, 16)] * 2),
        (METAX_GPU, {"count": 2}, [(1, 65_536, 100)] * 2),
        (METAX_GPU, {"count": 0}, None),
        (GCU, {"count": 3}, [(1, 100, 100)] * 3),
        (KUNLUN, {"count": 2}, [(100, 98_304, 100)] * 2),
        # Two devices of eight cores each.
        (NEURON, {"count": 2, "cores": 16}, [(8, 0, 0b1111_1111)] * 2),
        (NEURON, {"count": 1, "cores": 40}, [(40, 0, 2**31 - 1)]),
        (NEURON, {"count": 2}, [(0, 0, 0)] * 2),
        (NEURON, {"count": 2, "cores": -4}, [(0, 0, 0)] * 2),
        (NEURON, {"count": -2, "cores": 4}, []),
        # No node has so many: the capacity is a mistake, and costs no more than this.
        (GCU, {"count": 5_000}, [(1, 100, 100)] * 1024),
    ],
)
def test_devices_are_derived_from_the_capacity(
    vendor: Vendor, amounts: dict[str, int], expected: list[tuple[int, int, int]] | None
) -> None:
    assert list_amounts(vendor, **amounts) == expected


def test_devices_are_named_by_node_and_number() -> None:
    kunlun = derive_devices(a_node({KUNLUN.resources.count: "4"}), KUNLUN) or ()
    assert [(device.uuid, device.index, device.is_healthy) for device in kunlun] == [
        (f"n1-{KUNLUN.node.register}-{index}", index, True) for index in range(4)
    ]
    assert {device.model for device in kunlun} == {KUNLUN.word}
    # The second half is at the second NUMA node.
    assert [device.numa for device in kunlun] == [0, 0, 1, 1]
    assert {device.extra for device in kunlun} == {()}


def test_neurons_devices_carry_the_type_of_their_instance() -> None:
    node = a_node({NEURON.resources.count: "1"}, **{"node.kubernetes.io/instance-type": "trn1.2xlarge"})
    (device,) = derive_devices(node, NEURON) or ()
    assert device.extra == (("AWSNodeType", "trn1.2xlarge"),)
    (device,) = derive_devices(a_node({NEURON.resources.count: "1"}), NEURON) or ()
    assert device.extra == (("AWSNodeType", ""),)


@pytest.mark.parametrize("node", [{}, {"status": None}, {"status": {"capacity": []}}, a_node({"cpu": "8"})])
def test_a_node_without_the_capacity_has_no_devices(node: dict[str, Any]) -> None:
    assert derive_devices(node, KUNLUN) is None


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("2g.24gb", (2, 24)),
        (" 1G.12GB ", (1, 12)),
        ("3g . 24gb", (3, 24)),
        ("4.48", (4, 48)),
        ("1g.12gb.more", (1, 12)),
        ("1g.much", (1, 0)),
        ("-1g.12gb", (-1, 12)),
        ("xg.24gb", (0, 0)),
        ("2g", (0, 0)),
        ("", (0, 0)),
    ],
)
def test_a_profile_names_its_slices_and_memory(name: str, size: tuple[int, int]) -> None:
    assert parse_profile_size(name) == size


def decode(spec: Any) -> Registration | Malformed:
    text = spec if isinstance(spec, str | int) else json.dumps(spec)
    return decode_drs(text, "enflame.com/drs", "n1", "Enflame")


PROFILES = {"1g.12gb": "a", "3g.36gb": "b"}


def a_device(index: int, slots: int, *, memory_mib: int = 36 * 1024, minor: str = "") -> Device:
    names = (("1g.12gb", "a"), ("3g.36gb", "b"))
    extra = (("profiles", names), ("maxSlice", 3), ("index", str(index)), ("minor", minor or str(index)))
    return Device(
        f"n1-enflame-drs-{index}", index, slots, memory_mib, 100, "Enflame", is_healthy=True, extra=extra
    )  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "devices"),
    [
        ([{"index": "4", "minor": "7", "capacity": 6}], (a_device(4, 6, minor="7"),)),
        # Without a readable number a device has that of its place; without a minor that of its index.
        ([{"capacity": 6}, {"index": "x", "minor": " ", "capacity": "6"}], (a_device(0, 6), a_device(1, 6))),
        ([{"capacity": 1}, {"capacity": 2.9}], (a_device(0, 1), a_device(1, 2))),
        ([{"capacity": " 5 "}], (a_device(0, 5),)),
        # HAMi holds the number in 32 bits.
        ([{"capacity": str(2**40)}], (a_device(0, 2**31 - 1),)),
    ],
)
def test_enflames_shares_are_read_from_its_annotation(rows: list[dict[str, Any]], devices: tuple[Device, ...]) -> None:
    assert decode({"devices": rows, "profiles": PROFILES}) == Registration(devices, "json")


def test_a_device_is_as_large_as_its_largest_profile() -> None:
    def read_memory(*names: str) -> int:
        registration = decode({"devices": [{"capacity": 6}], "profiles": dict.fromkeys(names, None)})
        assert isinstance(registration, Registration)
        return registration.devices[0].memory_mib

    assert read_memory("1g.12gb", "6g.42gb", "3g.24gb") == 42 * 1024
    # Profiles that do not say have a GiB for each slice.
    assert read_memory("6g.x") == 6 * 1024


@pytest.mark.parametrize(
    ("spec", "location", "problem"),
    [
        (7, "", "is the number 7, write a string"),
        ("[]", "", "is an array, write a JSON object"),
        ({"devices": [{"capacity": 6}]}, "profiles", "has no profile, write for example 1g.12gb"),
        (
            {"devices": [{"capacity": 6}], "profiles": {"0g.12gb": ""}}, "profiles",
            "has no profile, write for example 1g.12gb",
        ),
        ({"profiles": PROFILES}, "devices", "lists no device"),
        ({"devices": None, "profiles": PROFILES}, "devices", "lists no device"),
        ({"devices": {}, "profiles": PROFILES}, ", field devices", "is an object, write a JSON array"),
        ({"devices": [], "profiles": []}, ", field profiles", "is an array, write a JSON object"),
        ({"devices": [], "profiles": {"1g.12gb": 3}}, ", field profiles", "is the number 3, write a string"),
        (
            {"devices": [{"capacity": 6}, {"index": 4}], "profiles": PROFILES}, ", field devices[1], field index",
            "is the number 4, write a string",
        ),
        *(
            (
                {"devices": [{"capacity": 6}, {"capacity": capacity}], "profiles": PROFILES},
                "device 1, field capacity", f"is {capacity!r}, write a whole number from 1",
            )
            for capacity in (0, -1, 0.5, 2**31, True, "0", "", "six", [6], None)
        ),
    ],
)  # fmt: skip
def test_an_annotation_that_cannot_be_read_is_refused_with_its_place(spec: Any, location: str, problem: str) -> None:
    assert decode(spec) == Malformed("enflame.com/drs", location, problem)
