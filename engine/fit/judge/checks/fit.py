"""One container against the devices of all nodes at once.

Codes are 0 where a check is passed. The checks follow HAMi's order (`Fit` in device.go): health, cordon, type, NUMA,
UUID, slots, mutex, quota, memory, cores. The first refusal is the verdict.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from engine.fit.devices.device_matrix import Bools, DeviceMatrix, Ints
from engine.fit.judge.checks import verdict_codes
from engine.fit.judge.request.device_request import DeviceRequest
from engine.hami.vendors import CORDONS, Family

Codes = NDArray[np.uint8]
T = TypeVar("T", bound=np.generic)


@dataclass(slots=True)
class FirstRefusals:
    """First refusal of each device by the checks that do not depend on other devices; matrices (slots, n).

    gate: by health, cordon, type. early: by those, UUID, slots, mutex. late: by memory and cores. memory: MiB requested
    of each device. NUMA and quota come between; `sequential_fit` adds them.
    """

    gate: Codes
    early: Codes
    late: Codes
    memory: Ints

    def select(self, where: Ints) -> "FirstRefusals":
        """Select the nodes at the indices `where`."""
        return FirstRefusals(self.gate[:, where], self.early[:, where], self.late[:, where], self.memory[:, where])


@dataclass(slots=True)
class Fit:
    """Verdicts on the devices of n nodes.

    verdict: (slots, n). passed: (n,), enough devices fit. picked: (slots, n), the device was taken.
    """

    verdict: Codes
    passed: Bools
    picked: Bools


class DeviceCheck(NamedTuple):
    """Check that reads one device alone. code: of its refusal; refuses: which devices, shape (slots, n).

    key: equal for checks that refuse the same devices, as long as the columns are the same.
    """

    code: int
    key: tuple[object, ...]
    refuses: Callable[[], Bools]


def list_gate_checks(matrix: DeviceMatrix, accepts_kind: Bools, family: Family) -> list[DeviceCheck]:
    """List the checks of health, cordon and type, in HAMi's order. Arguments as of `check_gate`."""
    cordon = DeviceCheck(verdict_codes.CORDONED, ("cordon",), lambda: matrix.is_cordoned)
    return [
        DeviceCheck(verdict_codes.NOT_HEALTHY, ("health",), lambda: ~matrix.is_healthy | (matrix.unsound > 0)),
        *([cordon] if family in CORDONS else []),
        DeviceCheck(
            verdict_codes.TYPE_MISMATCH, ("kind", accepts_kind.tobytes()), lambda: ~np.take(accepts_kind, matrix.kind)
        ),
    ]


def list_early_checks(matrix: DeviceMatrix, request: DeviceRequest, accepts_uuid: Bools | None) -> list[DeviceCheck]:
    """List the checks of UUID, slots and mutex, in HAMi's order.

    accepts_uuid: (slots, n), None where the pod has no UUID list.
    """
    checks = []
    if accepts_uuid is not None:
        checks.append(DeviceCheck(verdict_codes.UUID_MISMATCH, ("uuid", accepts_uuid.tobytes()), lambda: ~accepts_uuid))
    checks.append(
        DeviceCheck(verdict_codes.TIME_SLICING_EXHAUSTED, ("slots",), lambda: matrix.total_slots <= matrix.used_slots)
    )
    if request.is_mutex:
        conflict = verdict_codes.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT
        checks.append(DeviceCheck(conflict, ("mutex",), lambda: matrix.used_slots > 0))
    return checks


def list_late_checks(matrix: DeviceMatrix, request: DeviceRequest, memory: Callable[[], Ints]) -> list[DeviceCheck]:
    """List the checks of memory and cores, in HAMi's order. memory: MiB requested of each device, shape (slots, n)."""
    amounts = request.memory_mib, request.memory_percentage
    checks = [
        DeviceCheck(
            verdict_codes.INSUFFICIENT_MEMORY,
            ("memory", *amounts),
            lambda: matrix.total_memory - matrix.used_memory < memory(),
        ),
        DeviceCheck(
            verdict_codes.INSUFFICIENT_CORE,
            ("cores", request.cores),
            lambda: matrix.total_cores - matrix.used_cores < request.cores,
        ),
    ]
    if request.wants_whole_device:
        conflict = verdict_codes.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT
        checks.append(DeviceCheck(conflict, ("shared",), lambda: (matrix.total_cores == 100) & (matrix.used_slots > 0)))
    if request.cores == 0:
        # HAMi gives no device whose cores are all taken, not even to a container that requests none.
        checks.append(
            DeviceCheck(
                verdict_codes.COMPUTE_UNITS_EXHAUSTED,
                ("exhausted",),
                lambda: (matrix.total_cores != 0) & (matrix.used_cores == matrix.total_cores),
            )
        )
    return checks


def check_gate(matrix: DeviceMatrix, accepts_kind: Bools, family: Family) -> Codes:
    """Check health, cordon and type; return the refusals, shape (slots, n).

    accepts_kind: shape (kinds,), whether the pod's annotations allow the kind's model and mode. family: the vendor's;
    only the devices of some families can be cordoned.
    """
    return _find_first_refusals(matrix, list_gate_checks(matrix, accepts_kind, family))


def _find_first_refusals(matrix: DeviceMatrix, checks: Sequence[DeviceCheck]) -> Codes:
    code = np.zeros(matrix.rows.shape, np.uint8)
    # From the last check to the first, so that the first refusal of a device overwrites the later ones.
    for device_check in reversed(checks):
        where = device_check.refuses()
        # Arithmetic, because a branch for each device takes twelve times as long where every second one is refused.
        code *= ~where
        code += where * np.uint8(device_check.code)
    return code


def check_devices(
    matrix: DeviceMatrix, request: DeviceRequest, gated: Codes, accepts_uuid: Bools | None
) -> FirstRefusals:
    """Check devices by every check that reads one device alone; `gated` holds the refusals of `check_gate`.

    accepts_uuid: (slots, n), None where the pod has no UUID list.
    """
    memory = request.resolve_memory(matrix.total_memory)
    late = _find_first_refusals(matrix, list_late_checks(matrix, request, lambda: memory))
    early = _find_first_refusals(matrix, list_early_checks(matrix, request, accepts_uuid))
    early *= gated == 0
    early += gated
    return FirstRefusals(gated, early, late, memory)


def take_in_order(
    matrix: DeviceMatrix, request: DeviceRequest, refusals: FirstRefusals, order_of: Callable[[Ints], Ints]
) -> Fit:
    """Take devices in the order of trying until there are enough; no verdict depends on the devices taken before.

    order_of: returns the order of trying, shape (slots, k), on the k nodes at the given indices. It is called only for
    nodes with enough devices; on the others every device is tried, so the order changes nothing.
    """
    result = take_all(matrix, request, refusals)
    enough = np.flatnonzero(result.passed)
    if enough.size:
        turns = order_of(enough)
        would_do = result.picked[:, enough]
        first = np.where(would_do, np.uint8(0), result.verdict[:, enough])
        result.picked[:, enough], result.verdict[:, enough] = _take(would_do, first, turns, request.count)
    return result


def take_all(matrix: DeviceMatrix, request: DeviceRequest, refusals: FirstRefusals) -> Fit:
    """Take all devices that fit, on the nodes where they are enough."""
    first = refusals.early + refusals.late * (refusals.early == 0)
    would_do = (first == 0) & matrix.valid
    passed = would_do.sum(axis=0) >= request.count
    verdict = first + would_do * np.uint8(verdict_codes.ALLOCATED_INSUFFICIENT)  # 0 where the device would do
    return Fit(verdict, passed, would_do & passed)


def _take(would_do: Bools, first: Codes, turns: Ints, count: int) -> tuple[Bools, Codes]:
    by_turn = np.take_along_axis(would_do, turns, axis=0)
    # Shape (slots, k): how many of the devices up to this turn would do, so rank 1 to `count` are taken.
    rank = np.cumsum(by_turn, axis=0)
    taken = by_turn & (rank <= count)
    verdict = np.take_along_axis(first, turns, axis=0)
    verdict[taken] = verdict_codes.PICKED
    verdict[(rank >= count) & ~taken] = verdict_codes.NOT_REACHED
    return restore_order(taken, turns), restore_order(verdict, turns)


def restore_order(by_turn: NDArray[T], turns: Ints) -> NDArray[T]:
    """Put the rows of `by_turn`, which are in the order of trying, back into the order of slots."""
    by_slot = np.empty_like(by_turn)
    np.put_along_axis(by_slot, turns, by_turn, axis=0)
    return by_slot
