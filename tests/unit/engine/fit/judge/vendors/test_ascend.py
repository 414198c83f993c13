"""Ascend by the steps of HAMi's ``ascend/device.go``: shares in software, networks of the 910 line, pairs of 910C."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from engine.fit.judge.checks.reference_fit import DeviceState
from engine.fit.judge.vendors.ascend import fit_ascend
from engine.hami.vendor_catalog import build_ascend
from tests.support.builders.vendor_devices import a_device, a_node_request, list_picks, list_verdicts

CONNECTED, PAIRED, OTHER = build_ascend("Ascend910B3"), build_ascend("Ascend910C"), build_ascend("Ascend310P")
SHORT = "AllocatedCardsInsufficientRequest"
SOFT = {"huawei.com/vnpu-mode": "hami-core"}


def list_connected(*networks: Any) -> list[DeviceState]:
    """List devices with these networks; None for a device without one."""
    return [
        a_device(position, extra={} if network is None else {"NetworkID": network})
        for position, network in enumerate(networks)
    ]


@pytest.mark.parametrize(
    ("networks", "count", "picks"),
    [
        # The largest group first, then the next one.
        ((1, 2, 2), 2, [1, 2]),
        ((1, 2, 2, 1, 1), 4, [0, 3, 4, 1]),
        ((1, 1, 2, 2, 2), 3, [2, 3, 4]),
        # One device has no neighbours, and as many as there are are taken as they are.
        ((1, 2, 2), 1, [0]),
        ((1, 2, 2), 3, [0, 1, 2]),
        ((1, 2, 2), 4, []),
        # A device without a network on the node, and none has one.
        ((1, 2, 2, None), 2, [0, 1]),
    ],
)
def test_devices_of_the_910_line_are_taken_of_one_network(
    networks: Sequence[Any], count: int, picks: list[int]
) -> None:
    fit = fit_ascend(list_connected(*networks), a_node_request(CONNECTED, count))
    assert (list_picks(fit), fit.passed) == (picks, bool(picks))
    # Chips of other lines have no networks.
    expected = list(range(count)) if count <= len(networks) else []
    assert list_picks(fit_ascend(list_connected(*networks), a_node_request(OTHER, count))) == expected


def test_devices_of_other_networks_fit_and_are_not_taken() -> None:
    fit = fit_ascend(list_connected(1, 2, 2), a_node_request(CONNECTED, 2))
    assert list_verdicts(fit) == {0: "fits", 1: "picked", 2: "picked"}


@pytest.mark.parametrize(
    ("free", "count", "picks", "out_of"),
    [
        # Two devices are a module: 0 and 1, 2 and 3.
        ({0, 1, 2, 3}, 2, [0, 1], None),
        ({1, 2, 3}, 2, [2, 3], None),
        ({0, 1, 2, 3}, 4, [0, 1, 2, 3], None),
        ({0, 2, 3, 4, 5}, 4, [2, 3, 4, 5], None),
        ({1, 2}, 2, [], 2),
        ({0, 1, 2}, 3, [], 3),
        ({0, 1, 2, 3}, 3, [], 3),
        # One device needs no whole module.
        ({1, 2}, 1, [1], None),
    ],
)
def test_a_910c_gives_both_devices_of_a_module(
    free: set[int], count: int, picks: list[int], out_of: int | None
) -> None:
    devices = [a_device(position, accepts_uuid=position in free) for position in range(6)]
    fit = fit_ascend(devices, a_node_request(PAIRED, count))
    assert (list_picks(fit), fit.passed, fit.out_of) == (picks, bool(picks), out_of)
    refused = {code for position, code in list_verdicts(fit).items() if position not in free}
    assert refused <= {"CardUuidMismatch", "not reached"}


@pytest.mark.parametrize(
    ("chip_is_soft", "mark", "passes"),
    [
        (True, None, True),
        (False, None, False),
        (False, "true", True),
        (True, "false", False),
        (True, "True", False),
    ],
)
def test_a_share_in_software_needs_a_node_that_allows_it(chip_is_soft: bool, mark: str | None, passes: bool) -> None:
    vendor = replace(OTHER, chip=replace(OTHER.chip, soft_split=chip_is_soft))
    marks = {} if mark is None else {"hami-vnpu-core": mark}
    fit = fit_ascend([a_device(0), a_device(1)], a_node_request(vendor, 1, texts=SOFT, marks=marks))
    assert fit.passed is passes
    if not passes:
        assert list_verdicts(fit) == {0: "ModeNotFit", 1: "not reached"}
    # A template needs nothing.
    assert fit_ascend([a_device(0)], a_node_request(vendor, 1, marks=marks)).passed


def test_in_software_a_device_has_a_hundred_percent() -> None:
    vendor = replace(OTHER, chip=replace(OTHER.chip, soft_split=True))
    for texts, verdict in ((SOFT, "picked"), ({}, "CardInsufficientCore")):
        fit = fit_ascend([a_device(0, total_cores=8)], a_node_request(vendor, 1, cores=50, texts=texts))
        assert list_verdicts(fit) == {0: verdict}


def test_too_few_devices_are_given_back() -> None:
    fit = fit_ascend([a_device(0), a_device(1, accepts_uuid=False)], a_node_request(OTHER, 2))
    assert list_verdicts(fit) == {0: SHORT, 1: "CardUuidMismatch"}
