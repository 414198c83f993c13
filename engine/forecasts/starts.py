"""The pods whose end lets a waiting pod start, and the forecast of that. Pure.

A pod of a list is enough if, by the recorded amounts, its end alone frees as many devices as the nearest nodes lack.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from engine.diagnosis.waiting import MAX_NEAREST
from engine.forecasts.first_end import MIN_HOLDS, find_first_end, list_remaining
from engine.summaries.overcommit import calculate_peak
from engine.summaries.pod_facts import ENDS
from schemas.events import AttemptRepeated, PodWait
from schemas.forecasts import StartForecast
from schemas.placements import PodPlacement

MAX_ENDS: Final = 64
TRIED_WITHIN: Final = timedelta(minutes=1)
"""Time within which a scheduler has tried the pod again and bound it after an end."""


def begin_forecast(attempt: AttemptRepeated, wait: PodWait, now: datetime) -> StartForecast:
    """Begin the forecast of a pod that an attempt has placed nowhere; without an interval because of the order."""
    return StartForecast(
        cluster=attempt.cluster, pod=attempt.pod, given_at=now, obstacle=wait.code, missing="order", after=[]
    )


def find_single_ends(wait: PodWait, holders: Sequence[PodPlacement]) -> list[PodPlacement]:
    """Find the pods whose end alone is enough. holders: all pods with devices of the nearest nodes."""
    return [
        holder
        for holder in holders
        if wait.missing_devices and _count_freed(wait, holder, holders) >= wait.missing_devices
    ]


def _count_freed(wait: PodWait, holder: PodPlacement, holders: Sequence[PodPlacement]) -> int:
    """Count the devices of a holder that suit the request after its end, whatever else is on them."""
    uuids = {allocation.uuid for allocation in holder.allocations}
    shared = {
        allocation.uuid
        for other in holders
        if other.id != holder.id and other.node == holder.node
        for allocation in other.allocations
    }
    return sum(uuid not in shared or _is_as_large(wait, holder, uuid) for uuid in uuids)


def _is_as_large(wait: PodWait, holder: PodPlacement, uuid: str) -> bool:
    """Tell whether the holder has as much of a shared device as is requested of one; false where that is not known."""
    if wait.asked is None or wait.asked.memory_mib is None:
        return False
    held = calculate_peak(holder.allocations, uuid)
    return held.memory_mib >= wait.asked.memory_mib and held.cores_percent >= wait.asked.cores_percent


def derive_forecast(
    forecast: StartForecast,
    wait: PodWait,
    holders: Sequence[PodPlacement],
    ended: Mapping[str, Sequence[PodPlacement]],
) -> StartForecast:
    """Derive the forecast of the first pod in the order. ended: namespace to placements that have ended."""
    if len(wait.nearest_nodes) >= MAX_NEAREST:
        return forecast.model_copy(update={"missing": "nodes"})
    ends = find_single_ends(wait, holders)
    if not 0 < len(ends) <= MAX_ENDS:
        return forecast.model_copy(update={"missing": "ends"})
    samples: list[list[float]] = []
    by_workload = True
    for holder in ends:
        running_for = (forecast.given_at - holder.started_at).total_seconds()
        earlier = ended.get(holder.pod.namespace, ())
        sample = list_remaining(_list_lengths_of_workload(holder, earlier), running_for)
        if len(sample) < MIN_HOLDS:
            by_workload = False
            sample = list_remaining(_list_lengths_of_shape(holder, earlier), running_for)
        if len(sample) < MIN_HOLDS:
            return forecast.model_copy(update={"missing": "holds", "after": [str(holder.pod)]})
        samples.append(sample)
    remaining = find_first_end(samples)
    return forecast.model_copy(
        update={
            "missing": "",
            "basis": "workload" if by_workload else "shape",
            "after": sorted(str(holder.pod) for holder in ends),
            "earliest": forecast.given_at + timedelta(seconds=remaining.earliest),
            "latest": forecast.given_at + timedelta(seconds=remaining.latest) + TRIED_WITHIN,
        }
    )


def _list_lengths_of_workload(holder: PodPlacement, ended: Sequence[PodPlacement]) -> list[float]:
    workload = holder.description.workload if holder.description else ""
    return [
        length
        for placement in ended
        if workload and placement.description and placement.description.workload == workload
        for length in _list_length(placement)
    ]


def _list_lengths_of_shape(holder: PodPlacement, ended: Sequence[PodPlacement]) -> list[float]:
    shape = _describe_shape(holder)
    return [length for placement in ended if _describe_shape(placement) == shape for length in _list_length(placement)]


def _describe_shape(placement: PodPlacement) -> tuple[int, list[str]]:
    devices = {allocation.uuid: allocation.model for allocation in placement.allocations}
    return len(devices), sorted(set(devices.values()))


def _list_length(placement: PodPlacement) -> list[float]:
    """Return the seconds of a hold; nothing where it ended otherwise than by itself, at a time that is not certain."""
    if placement.ended_at is None or placement.ended_by not in ENDS:
        return []
    return [(placement.ended_at - placement.started_at).total_seconds()]
