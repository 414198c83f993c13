"""AWS Neuron by the steps of HAMi 2.10's ``awsneuron/device.go``: a device has two cores, and cores are a mask of bits.

Several devices are neighbours: anywhere on an Inferentia node, on others from a multiple of 4, 8 or 16.
"""

from typing import Any

import pytest

from engine.fit.judge.checks.reference_fit import DeviceState
from engine.fit.judge.vendors.neuron import fit_neuron
from engine.hami.vendor_catalog import NEURON
from tests.support.builders.vendor_devices import a_device, a_node_request, list_picks, list_verdicts

TRAINIUM, INFERENTIA = "trn1.32xlarge", "inf2.24xlarge"


def a_neuron(position: int, kind: str = TRAINIUM, **fields: Any) -> DeviceState:
    plain: dict[str, Any] = {"total_slots": 2, "total_cores": 0b11, "total_memory": 0, "extra": {"AWSNodeType": kind}}
    return a_device(position, **plain | fields)


def list_devices(count: int, kind: str, used: set[int], **fields: Any) -> list[DeviceState]:
    """List devices in the order of trying: HAMi's list is the reverse of it."""
    used_fields = {"used_slots": 1, **fields}
    return [a_neuron(position, kind, **used_fields if position in used else {}) for position in reversed(range(count))]


@pytest.mark.parametrize(
    ("kind", "devices", "used", "count", "picks"),
    [
        (TRAINIUM, 16, set(), 4, [0, 1, 2, 3]),
        (TRAINIUM, 16, {1}, 4, [4, 5, 6, 7]),
        (TRAINIUM, 16, {1, 6, 8}, 4, [12, 13, 14, 15]),
        (TRAINIUM, 16, {1, 6, 8, 15}, 4, []),
        (TRAINIUM, 16, {1}, 8, [8, 9, 10, 11, 12, 13, 14, 15]),
        (TRAINIUM, 16, {15}, 16, []),
        (TRAINIUM, 16, set(), 16, list(range(16))),
        # Other numbers are no group of neighbours.
        (TRAINIUM, 16, set(), 2, []),
        (TRAINIUM, 16, set(), 5, []),
        # The last group is not whole.
        (TRAINIUM, 6, {0}, 4, []),
        # On the ring of an Inferentia node neighbours begin anywhere.
        (INFERENTIA, 6, {0}, 4, [1, 2, 3, 4]),
        (INFERENTIA, 6, {0, 1}, 4, [2, 3, 4, 5]),
        (INFERENTIA, 6, {0, 1, 2}, 4, []),
        (INFERENTIA, 6, {1}, 2, [2, 3]),
        (INFERENTIA, 6, {1}, 5, []),
        ("Inf1.6xlarge", 6, {1}, 2, [2, 3]),
        ("", 6, set(), 2, []),
        ("", 6, set(), 4, [0, 1, 2, 3]),
        (TRAINIUM, 0, set(), 4, []),
    ],
)
def test_several_devices_are_neighbours(kind: str, devices: int, used: set[int], count: int, picks: list[int]) -> None:
    fit = fit_neuron(list_devices(devices, kind, used), a_node_request(NEURON, count, cores=2))
    assert (list_picks(fit), fit.passed) == (picks, bool(picks))
    assert all(pick.cores == 0b11 for pick in fit.picks)
    if not picks and devices:
        # HAMi counts the refusal of the node once.
        assert sorted(list_verdicts(fit).values()) == ["NumaNotFit", *["not reached"] * (devices - 1)]


def test_a_device_that_is_not_healthy_breaks_a_run() -> None:
    devices = list_devices(8, TRAINIUM, {2}, used_slots=0, gate=3)
    assert list_picks(fit_neuron(devices, a_node_request(NEURON, 4, cores=2))) == [4, 5, 6, 7]


@pytest.mark.parametrize(
    ("used_cores", "cores", "verdict", "mask"),
    [
        (0b00, 1, "picked", 0b01),
        (0b00, 2, "picked", 0b11),
        (0b01, 1, "picked", 0b10),
        (0b10, 1, "picked", 0b01),
        (0b01, 2, "CardInsufficientCore", None),
        (0b11, 1, "CardInsufficientCore", None),
    ],
)
def test_one_device_gives_the_cores_that_are_free(used_cores: int, cores: int, verdict: str, mask: int | None) -> None:
    device = a_neuron(0, used_cores=used_cores, used_slots=int(used_cores > 0))
    fit = fit_neuron([device], a_node_request(NEURON, 1, cores=cores))
    assert list_verdicts(fit) == {0: verdict}
    assert [pick.cores for pick in fit.picks] == ([] if mask is None else [mask])


def test_of_several_devices_the_first_that_suits_is_taken() -> None:
    devices = [a_neuron(3, used_cores=0b11), a_neuron(2, accepts_uuid=False), a_neuron(1), a_neuron(0)]
    fit = fit_neuron(devices, a_node_request(NEURON, 1, cores=1))
    assert list_verdicts(fit) == {
        3: "CardInsufficientCore", 2: "CardUuidMismatch", 1: "picked", 0: "not reached",
    }  # fmt: skip
    refused = fit_neuron(devices[:2], a_node_request(NEURON, 1, cores=1))
    assert (refused.passed, list_picks(refused)) == (False, [])
