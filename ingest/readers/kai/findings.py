"""Findings: contradictions in the numbers of the log.

=========================  ==========================================================================
``ReleasingMemoryCounted`` a placement that counts on memory which others still hold
``MemoryChanged``          a device that changed during an attempt
``OutsidePool``            a placement on a node that is not in the pool that the scheduler serves
``MemoryReturned``         memory that a session gave to a pod, and that a later one counts as free
=========================  ==========================================================================
"""

from collections.abc import Iterator
from typing import Any, Final

from ingest.readers.kai.attempt import DeviceChange, KaiAttempt
from schemas.events import FindingReported

RELEASING_MEMORY_COUNTED: Final = "ReleasingMemoryCounted"
MEMORY_CHANGED: Final = "MemoryChanged"
MEMORY_RETURNED: Final = "MemoryReturned"
OUTSIDE_POOL: Final = "OutsidePool"


def find_contradictions(head: dict[str, Any], attempt: KaiAttempt) -> Iterator[FindingReported]:
    """Find the contradictions. ``head``: the fields that all events of the attempt share."""
    if attempt.is_placed:
        for group in attempt.groups:
            yield from _find_releasing_counted(head, attempt, group)
    if attempt.outside_pool:
        yield FindingReported(
            **head, finding=OUTSIDE_POOL, found_at=attempt.last_line_at, node=attempt.chosen,
            evidence=[line for line in (attempt.taking_line, attempt.outside_pool) if line],
        )  # fmt: skip
    for change in attempt.changes:
        yield FindingReported(
            **head, finding=MEMORY_CHANGED, found_at=change.time, node=change.node, device=change.group,
            numbers=_change_numbers(change), evidence=change.lines,
        )  # fmt: skip
    for returned in attempt.returned:
        yield FindingReported(
            **head, finding=MEMORY_RETURNED, found_at=attempt.started_at, node=returned.node, device=returned.group,
            numbers=_drop_missing({
                "memory_allocated_expected_mib": returned.expected_mib,
                "memory_allocated_after_mib": returned.allocated_mib,
                "memory_total_mib": returned.total_mib,
            }), evidence=returned.lines,
        )  # fmt: skip


def _find_releasing_counted(head: dict[str, Any], attempt: KaiAttempt, group: str) -> Iterator[FindingReported]:
    judged = attempt.select_nodes().get(attempt.chosen)
    device = attempt.taken.get(group) or (judged.devices.get(group) if judged else None)
    if device is None or not device.releasing_mib:
        return
    free, requested = device.free_mib, attempt.memory_mib
    # It fits without the memory that is being released: nothing was counted in advance.
    if free is not None and requested is not None and requested <= free:
        return
    if not attempt.is_pipelined and (free is None or requested is None):
        return  # the log does not show whether the pod needed the memory that is being released
    numbers = {
        "memory_total_mib": device.total_mib, "memory_allocated_mib": device.allocated_mib,
        "memory_releasing_mib": device.releasing_mib, "memory_requested_mib": requested,
        "memory_available_mib": free, "is_waiting": int(attempt.is_pipelined),
        # What KAI calls available: total - allocated + releasing.
        "memory_available_with_releasing_mib": None if free is None else free + device.releasing_mib,
    }  # fmt: skip
    yield FindingReported(
        **head, finding=RELEASING_MEMORY_COUNTED, found_at=attempt.last_line_at, node=attempt.chosen, device=group,
        numbers=_drop_missing(numbers), evidence=[line for line in (device.line, attempt.taking_line) if line],
    )  # fmt: skip


def _change_numbers(change: DeviceChange) -> dict[str, int]:
    numbers = {
        "memory_allocated_before_mib": change.before.allocated_mib,
        "memory_allocated_after_mib": change.after.allocated_mib,
        "memory_releasing_before_mib": change.before.releasing_mib,
        "memory_releasing_after_mib": change.after.releasing_mib,
    }
    return _drop_missing(numbers)


def _drop_missing(numbers: dict[str, int | None]) -> dict[str, int]:
    return {name: number for name, number in numbers.items() if number is not None}
