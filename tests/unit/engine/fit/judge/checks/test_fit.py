"""One container against the devices of small nodes; verdicts by HAMi's order of checks (its `Fit` in `device.go`)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from engine.fit.devices.device_matrix import DeviceMatrix, Ints
from engine.fit.judge.checks.fit import (
    Codes,
    FirstRefusals,
    Fit,
    check_devices,
    check_gate,
    list_early_checks,
    list_gate_checks,
    list_late_checks,
    restore_order,
    take_all,
    take_in_order,
)
from engine.fit.judge.checks.verdict_codes import VERDICTS
from engine.fit.judge.request.device_request import DeviceRequest
from engine.hami.vendors import Family

DEVICE: dict[str, Any] = {
    "valid": True, "is_healthy": True, "is_cordoned": False, "is_mig": False, "kind": 0, "numa": 0, "index": 0,
    "unsound": 0, "total_slots": 2, "total_cores": 100, "total_memory": 40_000, "used_slots": 0, "used_cores": 0,
    "used_memory": 0,
}  # fmt: skip
"""An unused device of 40,000 MiB that two containers may share."""
PADDING = {"valid": False}


def build_matrix(*nodes: Sequence[dict[str, Any]]) -> DeviceMatrix:
    """Build the matrix of nodes, each with what differs from ``DEVICE``; all have as many slots."""
    columns = {name: np.array([[(DEVICE | device)[name] for device in node] for node in nodes]).T for name in DEVICE}
    sizes = np.array([len(node) for node in nodes])
    rows = np.arange(sizes.sum()).reshape(len(nodes), -1).T
    return DeviceMatrix(np.arange(len(nodes)), np.arange(len(nodes)), sizes, sizes, rows, **columns)


def a_request(count: int = 1, memory_mib: int = 10_000, cores: int = 30, **fields: Any) -> DeviceRequest:
    plain = {"memory_percentage": 101, "is_mutex": False, "numa_bind": False, "collects_all": False}
    return DeviceRequest(count, memory_mib, cores=cores, **(plain | fields))


def list_words(codes: Codes) -> list[list[str]]:
    """List the verdicts by node; code 0 is one that no check refuses."""
    return [[VERDICTS[code] if code else "" for code in node] for node in codes.T.tolist()]


def refuse(matrix: DeviceMatrix, request: DeviceRequest, accepts_uuid: Any = None) -> FirstRefusals:
    gate = check_gate(matrix, np.array([True, False]), Family.NVIDIA)
    return check_devices(matrix, request, gate, accepts_uuid)


@pytest.mark.parametrize(
    ("device", "verdict"),
    [
        ({}, ""),
        ({"is_healthy": False, "is_cordoned": True, "kind": 1}, "CardNotHealth"),
        # What the device has left is not known: HAMi gives it to nobody.
        ({"unsound": 1}, "CardNotHealth"),
        ({"is_cordoned": True, "kind": 1}, "CardCordoned"),
        ({"kind": 1}, "CardTypeMismatch"),
    ],
)
def test_health_comes_before_cordon_and_type(device: dict[str, Any], verdict: str) -> None:
    codes = check_gate(build_matrix([device, {}]), np.array([True, False]), Family.NVIDIA)
    assert list_words(codes) == [[verdict, ""]]


@pytest.mark.parametrize(
    ("family", "verdict"),
    [(Family.NVIDIA, "CardCordoned"), (Family.CUSTOM, "CardCordoned"), (Family.ASCEND, "CardTypeMismatch")],
)
def test_only_devices_of_some_vendors_can_be_cordoned(family: Family, verdict: str) -> None:
    matrix = build_matrix([{"is_cordoned": True, "kind": 1}])
    assert list_words(check_gate(matrix, np.array([True, False]), family)) == [[verdict]]


@pytest.mark.parametrize(
    ("device", "fields", "accepts_uuid", "verdict"),
    [
        ({}, {}, True, ""),
        ({"used_slots": 2}, {}, False, "CardUuidMismatch"),
        ({"used_slots": 2}, {"is_mutex": True}, True, "CardTimeSlicingExhausted"),
        ({"used_slots": 3}, {}, None, "CardTimeSlicingExhausted"),
        ({"total_slots": 0}, {}, None, "CardTimeSlicingExhausted"),
        ({"used_slots": 1}, {}, None, ""),
        ({"used_slots": 1}, {"is_mutex": True}, None, "ExclusiveDeviceAllocateConflict"),
        ({}, {"is_mutex": True}, None, ""),
        ({"is_cordoned": True, "used_slots": 2}, {}, False, "CardCordoned"),
    ],
)
def test_the_gate_comes_before_uuid_slots_and_mutex(
    device: dict[str, Any], fields: dict[str, Any], accepts_uuid: bool | None, verdict: str
) -> None:
    accepts = None if accepts_uuid is None else np.array([[accepts_uuid], [True]])
    refusals = refuse(build_matrix([device, {}]), a_request(**fields), accepts)
    assert list_words(refusals.early) == [[verdict, ""]]


@pytest.mark.parametrize(
    ("device", "fields", "verdict"),
    [
        ({"used_memory": 30_000, "used_cores": 70}, {}, ""),
        ({"used_memory": 30_001, "used_cores": 100}, {}, "CardInsufficientMemory"),
        ({"used_memory": 30_000}, {"memory_mib": 0, "memory_percentage": 25}, ""),
        ({"used_memory": 30_000}, {"memory_mib": 0, "memory_percentage": 26}, "CardInsufficientMemory"),
        ({"used_cores": 71}, {}, "CardInsufficientCore"),
        ({"used_slots": 1}, {"cores": 100}, "ExclusiveDeviceAllocateConflict"),
        ({"used_slots": 1, "used_cores": 1}, {"cores": 100}, "CardInsufficientCore"),
        ({}, {"cores": 100}, ""),
        ({"used_slots": 1, "total_cores": 200}, {"cores": 100}, ""),
        ({"used_slots": 1}, {"cores": 99}, ""),
        ({"used_cores": 100}, {"cores": 0}, "CardComputeUnitsExhausted"),
        ({"used_cores": 99}, {"cores": 0}, ""),
        ({"total_cores": 0}, {"cores": 0}, ""),
    ],
)
def test_memory_comes_before_cores(device: dict[str, Any], fields: dict[str, Any], verdict: str) -> None:
    refusals = refuse(build_matrix([{}, device]), a_request(**fields))
    assert list_words(refusals.late) == [["", verdict]]
    assert list_words(refusals.early) == [["", ""]]


def test_the_requested_memory_is_of_each_device() -> None:
    matrix = build_matrix([{"total_memory": 1000}, {}])
    assert refuse(matrix, a_request(memory_mib=0, memory_percentage=50)).memory.tolist() == [[500], [20_000]]
    assert refuse(matrix, a_request()).memory.tolist() == [[10_000], [10_000]]


def test_keys_of_checks_differ_where_they_refuse_other_devices() -> None:
    matrix, kinds = build_matrix([{}]), [np.array([first]) for first in (True, False)]
    uuids = [np.array([[first]]) for first in (True, False)]
    requests = [a_request(memory_mib=amount) for amount in (1, 2)]
    requests += [a_request(cores=1), a_request(memory_mib=0, memory_percentage=50)]
    gates = [[check.key for check in list_gate_checks(matrix, kind, Family.NVIDIA)] for kind in kinds]
    assert gates[0][:2] == gates[1][:2]
    assert gates[0][2] != gates[1][2]
    early = [[check.key for check in list_early_checks(matrix, a_request(is_mutex=True), uuid)] for uuid in uuids]
    assert early[0][0] != early[1][0]
    assert early[0][1:] == early[1][1:]
    late = [
        tuple(check.key for check in list_late_checks(matrix, request, lambda: matrix.used_memory))
        for request in requests
    ]
    assert len(set(late)) == len(requests)
    everything = [*gates[0], *early[0], *late[0]]
    assert len(set(everything)) == len(everything)


def test_nodes_are_selected_with_their_refusals() -> None:
    refusals = refuse(
        build_matrix([{"is_healthy": False}], [{"used_memory": 40_000}], [{"used_slots": 2}]), a_request()
    )
    selected = refusals.select(np.array([2, 1]))
    assert list_words(selected.gate) == [[""], [""]]
    assert list_words(selected.early) == [["CardTimeSlicingExhausted"], [""]]
    assert list_words(selected.late) == [[""], ["CardInsufficientMemory"]]
    assert selected.memory.shape == (1, 2)


IN_VAIN = "AllocatedCardsInsufficientRequest"


def show(fit: Fit) -> list[list[str]]:
    """List the verdicts by node; picked devices have the word of the code 0."""
    return [[VERDICTS[code] for code in node] for node in fit.verdict.T.tolist()]


def test_all_devices_that_fit_are_taken_where_they_are_enough() -> None:
    matrix = build_matrix([{}, {}, {"used_memory": 40_000}], [{}, {"used_slots": 2}, PADDING])
    result = take_all(matrix, a_request(2), refuse(matrix, a_request(2)))
    assert result.passed.tolist() == [True, False]
    assert result.picked.T.tolist() == [[True, True, False], [False, False, False]]
    assert show(result)[1][:2] == [IN_VAIN, "CardTimeSlicingExhausted"]
    assert show(result)[0][2] == "CardInsufficientMemory"


def test_an_early_refusal_hides_a_late_one() -> None:
    matrix = build_matrix([{"used_slots": 2, "used_memory": 40_000}])
    assert show(take_all(matrix, a_request(), refuse(matrix, a_request()))) == [["CardTimeSlicingExhausted"]]


def test_devices_are_taken_in_the_order_of_trying_until_there_are_enough() -> None:
    matrix = build_matrix(
        [{}, {"used_memory": 40_000}, {}, {}],
        [{}, {"used_memory": 40_000}, {"used_slots": 2}, PADDING],
        [{}, {}, {"used_memory": 40_000}, {}],
    )
    nodes: list[list[int]] = []

    def get_order(where: Ints) -> Ints:
        nodes.append(where.tolist())
        return np.array([[3, 1, 0, 2], [2, 1, 0, 3]]).T

    result = take_in_order(matrix, a_request(2), refuse(matrix, a_request(2)), get_order)
    # Node 1 has too few devices: no order changes anything.
    assert nodes == [[0, 2]]
    assert result.passed.tolist() == [True, False, True]
    assert show(result)[0] == ["picked", "CardInsufficientMemory", "not reached", "picked"]
    assert show(result)[1][:3] == [IN_VAIN, "CardInsufficientMemory", "CardTimeSlicingExhausted"]
    assert show(result)[2] == ["picked", "picked", "CardInsufficientMemory", "not reached"]
    assert result.picked.T.tolist() == [
        [True, False, False, True],
        [False, False, False, False],
        [True, True, False, False],
    ]


@pytest.mark.parametrize(
    ("order", "verdicts"), [([0, 1], ["picked", "not reached"]), ([1, 0], ["picked", "CardInsufficientMemory"])]
)
def test_a_refused_device_after_the_last_one_that_was_taken_is_not_reached(
    order: list[int], verdicts: list[str]
) -> None:
    matrix = build_matrix([{}, {"used_memory": 40_000}])
    result = take_in_order(matrix, a_request(), refuse(matrix, a_request()), lambda _: np.array([order]).T)
    assert show(result) == [verdicts]


def test_no_order_is_asked_for_where_no_node_has_enough() -> None:
    def refuse_order(_: Ints) -> Ints:
        raise AssertionError

    matrix = build_matrix([{}])
    assert show(take_in_order(matrix, a_request(2), refuse(matrix, a_request(2)), refuse_order)) == [[IN_VAIN]]


def test_rows_go_back_to_the_order_of_slots() -> None:
    turns = np.array([[2, 0], [0, 1], [1, 2]])
    assert restore_order(np.array([["c", "a"], ["a", "b"], ["b", "c"]]), turns).tolist() == [
        ["a", "a"],
        ["b", "b"],
        ["c", "c"],
    ]
