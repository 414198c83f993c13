"""Devices that are allocated beyond their capacity, counted over all pods: pure.

A scheduler counts by its own cache; two schedulers, or one that lost track, allocate one device twice and neither
notices. Here the placements of all pods, whichever scheduler made them, are compared with what the node registered.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from engine.summaries.attempt_audit import OVERCOMMITTED
from schemas.codec.records import rfc3339
from schemas.events import DeviceAllocation, FindingReported, NodeRegistered
from schemas.placements import PodPlacement

LASTS: Final = timedelta(seconds=5)
"""A shorter overlap is not a finding: the end of one pod and the start of the next come from two clocks."""


class Holding(NamedTuple):
    """A placement, and when the attempt began that made it."""

    placement: PodPlacement
    started_at: datetime


class DeviceAmounts(NamedTuple):
    memory_mib: int = 0
    cores_percent: int = 0
    slots: int = 0

    def plus(self, other: "DeviceAmounts") -> "DeviceAmounts":
        return DeviceAmounts(*map(sum, zip(self, other, strict=True)))

    def max(self, other: "DeviceAmounts") -> "DeviceAmounts":
        return DeviceAmounts(*map(max, zip(self, other, strict=True)))


class Total(NamedTuple):
    """The capacity of a device from ``since`` on; 0 is an amount that its node does not report."""

    since: datetime
    amounts: DeviceAmounts


_NAMES: Final = (("memory_{}_mib", "MiB"), ("cores_{}_percent", "% of its cores"), ("slots_{}", "slots"))


def totals_of(registrations: Iterable[NodeRegistered], uuid: str) -> list[Total]:
    """Each total with its beginning, by time. A registration without the device changes nothing: pods that hold it
    still do."""
    found: list[Total] = []
    for event in sorted(registrations, key=lambda event: event.observed_at):
        if uuid not in event.uuid:
            continue
        row = event.uuid.index(uuid)
        amounts = DeviceAmounts(
            # A negative number is one that the registration does not report (``NOT_REPORTED``).
            *(int(max(column[row], 0)) for column in (event.memory_mib, event.cores_percent, event.slots))
        )
        if not found or found[-1].amounts != amounts:
            found.append(Total(event.observed_at, amounts))
    return found


def taken(held: Iterable[DeviceAllocation], uuid: str) -> DeviceAmounts:
    """What one pod holds of one device at its peak: init containers run before the others, one after the other."""
    first, then = DeviceAmounts(), DeviceAmounts()
    for allocation in held:
        if allocation.uuid == uuid:
            amounts = DeviceAmounts(allocation.memory_mib or 0, allocation.cores_percent or 0, allocation.slots)
            # Kubernetes runs init containers one after the other before all others: the peak is the larger of the two
            # phases, which is also how HAMi counts usage.
            first, then = (first.max(amounts), then) if allocation.init else (first, then.plus(amounts))
    return first.max(then)


def overcommitted(
    uuid: str, holdings: Sequence[Holding], totals: Sequence[Total], until: datetime
) -> Iterator[FindingReported]:
    """One finding for each start of a placement, or change of the device, that overcommits the device.

    Everything before ``until`` is known. The result is the same whenever it is computed again.
    """
    # Usage only grows when a placement begins, and capacity only when the node registers: no other time has to be
    # looked at.
    beginnings = {holding.placement.started_at for holding in holdings} | {change.since for change in totals[1:]}
    for at in sorted(beginnings):
        # Too early to judge: an end that is read later may still lie within the overlap.
        if not totals or at + LASTS > until:
            continue
        there = [holding for holding in holdings if holding.placement.is_on(at) and holding.placement.is_on(at + LASTS)]
        total = next((change for change in reversed(totals) if change.since <= at), totals[0]).amounts
        held = DeviceAmounts()
        for holding in there:
            held = held.plus(taken(holding.placement.allocations, uuid))
        # A finding is about an attempt: nothing of this project placed pods that were there before it.
        is_ours = any(holding.placement.attempt_id for holding in there)
        if is_ours and (numbers := _beyond(total, held)):
            yield _finding(uuid, at, there, numbers)


def _beyond(total: DeviceAmounts, held: DeviceAmounts) -> dict[str, int]:
    return {
        name.format(word): number
        for (name, _), capacity, held_of_it in zip(_NAMES, total, held, strict=True)
        if held_of_it > capacity > 0
        for word, number in (("total", capacity), ("held", held_of_it))
    }


def _finding(uuid: str, at: datetime, there: Sequence[Holding], numbers: dict[str, int]) -> FindingReported:
    """About the placement that came last of those whose attempt is known."""
    by_time = sorted(there, key=lambda holding: (holding.placement.started_at, holding.placement.id))
    placement, started_at = next(holding for holding in reversed(by_time) if holding.placement.attempt_id)
    return FindingReported.model_construct(
        cluster=placement.cluster,
        attempt_id=placement.attempt_id,
        pod=placement.pod,
        scheduler=placement.scheduler,
        started_at=started_at,
        finding=OVERCOMMITTED,
        found_at=at,
        node=placement.node,
        device=uuid,
        numbers=numbers | {"pods": len(there)},
        evidence=[_line(holding.placement, uuid) for holding in by_time],
        evidence_pods=[str(holding.placement.pod) for holding in by_time],
    )


def _line(placement: PodPlacement, uuid: str) -> str:
    parts = zip(taken(placement.allocations, uuid), _NAMES, strict=True)
    amounts = ", ".join(f"{number:,} {unit}" for number, (_, unit) in parts)
    since = f"since {rfc3339(placement.started_at)}"
    by = f"{placement.scheduler}, attempt {placement.attempt_id}" if placement.attempt_id else "no bind is known"
    return f"{placement.pod} holds {amounts} {since}: {by}"
