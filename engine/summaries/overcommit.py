"""Devices that are allocated beyond their capacity, counted over all pods: pure.

A scheduler counts by its own cache; two schedulers, or one that lost track, allocate one device twice and neither
notices. This module compares the placements of all pods, whichever scheduler made them, with the node's registrations.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from engine.summaries.attempt_audit import OVERCOMMITTED
from schemas.codec.records import format_rfc3339
from schemas.events import DeviceAllocation, FindingReported, NodeRegistered
from schemas.placements import PodPlacement

MIN_OVERLAP: Final = timedelta(seconds=5)
"""Shortest overlap that is a finding: the end of one pod and the start of the next come from two clocks."""


class Holding(NamedTuple):
    """A placement, and the start of the attempt that made it."""

    placement: PodPlacement
    started_at: datetime


class DeviceAmounts(NamedTuple):
    memory_mib: int = 0
    cores_percent: int = 0
    slots: int = 0

    def add(self, other: "DeviceAmounts") -> "DeviceAmounts":
        return DeviceAmounts(
            self.memory_mib + other.memory_mib, self.cores_percent + other.cores_percent, self.slots + other.slots
        )

    def take_larger(self, other: "DeviceAmounts") -> "DeviceAmounts":
        return DeviceAmounts(*map(max, self, other))


class Total(NamedTuple):
    """Capacity of a device from ``since`` on; 0 is an amount that its node does not report."""

    since: datetime
    amounts: DeviceAmounts


_NAMES: Final = (("memory_{}_mib", "MiB"), ("cores_{}_percent", "% of its cores"), ("slots_{}", "slots"))


def list_totals(registrations: Iterable[NodeRegistered], uuid: str) -> list[Total]:
    """List each total with its beginning, by time. A registration without the device changes nothing, because pods that
    hold it still do."""
    totals: list[Total] = []
    for event in sorted(registrations, key=lambda event: event.observed_at):
        if uuid not in event.uuid:
            continue
        row = event.uuid.index(uuid)
        amounts = DeviceAmounts(
            # A negative number is one that the registration does not report (``NOT_REPORTED``).
            *(int(max(column[row], 0)) for column in (event.memory_mib, event.cores_percent, event.slots))
        )
        if not totals or totals[-1].amounts != amounts:
            totals.append(Total(event.observed_at, amounts))
    return totals


def calculate_peak(held: Iterable[DeviceAllocation], uuid: str) -> DeviceAmounts:
    """Calculate what one pod holds of one device at its peak: init containers run before the others, one after the
    other."""
    first, then = DeviceAmounts(), DeviceAmounts()
    for allocation in held:
        if allocation.uuid == uuid:
            amounts = DeviceAmounts(allocation.memory_mib or 0, allocation.cores_percent or 0, allocation.slots)
            # Kubernetes runs init containers one after the other before all others: the peak is the larger of the two
            # phases, which is also how HAMi counts usage.
            first, then = (first.take_larger(amounts), then) if allocation.init else (first, then.add(amounts))
    return first.take_larger(then)


def find_overcommitments(
    uuid: str, holdings: Sequence[Holding], totals: Sequence[Total], until: datetime
) -> Iterator[FindingReported]:
    """Find each start of a placement, and each change of the device, that overcommits the device.

    All events before ``until`` have been read. The result is the same whenever it is computed again.
    """
    # Usage only grows when a placement begins, and capacity only changes when the node registers: other times need no
    # check.
    beginnings = {holding.placement.started_at for holding in holdings} | {change.since for change in totals[1:]}
    for moment in sorted(beginnings):
        # Too early to judge: an end that is read later may still lie within the overlap.
        if not totals or moment + MIN_OVERLAP > until:
            continue
        overlapping = [
            holding
            for holding in holdings
            if holding.placement.is_on(moment) and holding.placement.is_on(moment + MIN_OVERLAP)
        ]
        total = next((change for change in reversed(totals) if change.since <= moment), totals[0]).amounts
        held = DeviceAmounts()
        for holding in overlapping:
            held = held.add(calculate_peak(holding.placement.allocations, uuid))
        # A finding is about an attempt, and pods from before the installation of this project have none.
        is_ours = any(holding.placement.attempt_id for holding in overlapping)
        if is_ours and (numbers := _list_exceeded(total, held)):
            yield _build_finding(uuid, moment, overlapping, numbers)


def _list_exceeded(total: DeviceAmounts, held: DeviceAmounts) -> dict[str, int]:
    return {
        name.format(word): number
        for (name, _), capacity, held_amount in zip(_NAMES, total, held, strict=True)
        if held_amount > capacity > 0
        for word, number in (("total", capacity), ("held", held_amount))
    }


def _build_finding(
    uuid: str, moment: datetime, overlapping: Sequence[Holding], numbers: dict[str, int]
) -> FindingReported:
    """Build the finding about the latest of the placements whose attempt is reported."""
    by_time = sorted(overlapping, key=lambda holding: (holding.placement.started_at, holding.placement.id))
    placement, started_at = next(holding for holding in reversed(by_time) if holding.placement.attempt_id)
    return FindingReported.model_construct(
        cluster=placement.cluster,
        attempt_id=placement.attempt_id,
        pod=placement.pod,
        scheduler=placement.scheduler,
        started_at=started_at,
        finding=OVERCOMMITTED,
        found_at=moment,
        node=placement.node,
        device=uuid,
        numbers=numbers | {"pods": len(overlapping)},
        evidence=[_write_line(holding.placement, uuid) for holding in by_time],
        evidence_pods=[str(holding.placement.pod) for holding in by_time],
    )


def _write_line(placement: PodPlacement, uuid: str) -> str:
    parts = zip(calculate_peak(placement.allocations, uuid), _NAMES, strict=True)
    amounts = ", ".join(f"{number:,} {unit}" for number, (_, unit) in parts)
    since = f"since {format_rfc3339(placement.started_at)}"
    origin = f"{placement.scheduler}, attempt {placement.attempt_id}" if placement.attempt_id else "no bind is known"
    return f"{placement.pod} holds {amounts} {since}: {origin}"
