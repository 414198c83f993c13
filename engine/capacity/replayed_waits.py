"""Waits of a recorded range of time beside those of its replays: as it was, and under a change.

recording ──▶ replay as it was ──▶ like the record? ──▶ replay under the change ──▶ who waits less, who longer
"""

import math
from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from engine.capacity.replay import NO_CHANGE, PodTimes, ReplayChange, is_decided, read_times, replay_range
from engine.diagnosis.texts import write_phrase
from engine.diagnosis.wording import count_devices
from engine.hami.vendors import Vendors
from schemas.answers.diagnosis import InBothLanguages
from schemas.answers.replays import DifferingPod, RangeReplay, RecordedPod, Recording, ReplayedWaits, ReplayedWorkload

_AGREEING_SHARE: Final = 0.8
"""Least share of pods whose replay is like their record, for a difference to be given."""
_AGREEING_SECONDS: Final = 60.0
_AGREEING_PART: Final = 0.1
"""Difference of a start from the record: seconds, or a part of the wait."""
_HOURS_PART: Final = 0.2
_LEAST_HOURS: Final = 1.0
"""Difference of all GPU-hours from the record: a part of them, or hours."""
_HOUR: Final = 3600.0


def compare_ranges(recording: Recording, change: ReplayChange, vendors: Vendors) -> RangeReplay:
    """Replay a recording as it was and under the change. Raises `AdditionError` for a node that was not recorded."""
    pods = {pod.uid: pod for pod in recording.pods if is_decided(pod, recording)}
    before = replay_range(recording, NO_CHANGE, vendors)
    recorded = {uid: read_times(pod, recording) for uid, pod in pods.items()}
    differing = _list_differing(pods, recorded, before.pods)
    agreeing = len(pods) - len(differing)
    waits = [_sum_waits(pods, times) for times in (recorded, before.pods)]
    is_reproduced = bool(pods) and agreeing >= _AGREEING_SHARE * len(pods) and _is_near(waits[0], waits[1])
    after = replay_range(recording, change, vendors) if is_reproduced else None
    workloads = _list_workloads(pods, before.pods, after.pods) if after else []
    shorter = [row for row in workloads if row.after_gpu_hours < row.before_gpu_hours]
    longer = [row for row in workloads if row.after_gpu_hours > row.before_gpu_hours]
    changed = _sum_waits(pods, after.pods) if after else None
    described = change.describe()
    return RangeReplay(
        cluster=recording.cluster,
        since=recording.since,
        until=recording.until,
        change=described,
        pods=len(pods),
        decisions=before.decisions + (after.decisions if after else 0),
        recorded=waits[0],
        unchanged=waits[1],
        changed=changed,
        agreeing=agreeing,
        is_reproduced=is_reproduced,
        differing=differing,
        sentence=_write_sentence(described, len(pods), agreeing, waits[1], changed, len(shorter), len(longer)),
        shorter=shorter,
        longer=longer,
        notes=_list_notes(recording),
    )


def _list_differing(
    pods: Mapping[str, RecordedPod], recorded: Mapping[str, PodTimes], replayed: Mapping[str, PodTimes]
) -> list[DifferingPod]:
    """List the pods whose replay is not like their record: those that were placed only once, then the longest
    differences."""
    rows = [
        (recorded[uid].start, replayed[uid].start, pod)
        for uid, pod in pods.items()
        if not _is_agreeing(recorded[uid], replayed[uid])
    ]
    rows.sort(key=lambda row: -abs(row[0] - row[1]) if row[0] is not None and row[1] is not None else -math.inf)
    return [
        DifferingPod(
            namespace=pod.namespace,
            name=pod.name,
            recorded_start=_to_moment(first),
            replayed_start=_to_moment(second),
        )
        for first, second, pod in rows
    ]


def _to_moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def _is_agreeing(recorded: PodTimes, replayed: PodTimes) -> bool:
    if recorded.start is None or replayed.start is None:
        return recorded.start == replayed.start
    limit = max(_AGREEING_SECONDS, _AGREEING_PART * recorded.waited)
    return abs(replayed.start - recorded.start) <= limit


def _is_near(recorded: ReplayedWaits, replayed: ReplayedWaits) -> bool:
    difference = abs(replayed.gpu_hours - recorded.gpu_hours)
    return difference <= max(_HOURS_PART * recorded.gpu_hours, _LEAST_HOURS)


def _count_hours(pod: RecordedPod, times: PodTimes) -> float:
    return count_devices(pod.requests) * times.waited / _HOUR


def _sum_waits(pods: Mapping[str, RecordedPod], times: Mapping[str, PodTimes]) -> ReplayedWaits:
    started = sum(times[uid].start is not None for uid in pods)
    hours = sum(_count_hours(pod, times[uid]) for uid, pod in pods.items())
    return ReplayedWaits(started=started, waiting=len(pods) - started, gpu_hours=round(hours, 3))


def _list_workloads(
    pods: Mapping[str, RecordedPod], before: Mapping[str, PodTimes], after: Mapping[str, PodTimes]
) -> list[ReplayedWorkload]:
    """List the workloads whose waits differ, the greatest difference first."""
    groups: dict[tuple[str, str], list[RecordedPod]] = defaultdict(list)
    for pod in pods.values():
        groups[pod.namespace, pod.workload or f"Pod/{pod.name}"].append(pod)
    rows = []
    for (namespace, workload), members in groups.items():
        ours = {pod.uid: pod for pod in members}
        then, now = _sum_waits(ours, before), _sum_waits(ours, after)
        if then != now:
            rows.append(
                ReplayedWorkload(
                    namespace=namespace,
                    workload=workload,
                    pods=len(members),
                    started_before=then.started,
                    started_after=now.started,
                    before_gpu_hours=then.gpu_hours,
                    after_gpu_hours=now.gpu_hours,
                )
            )
    return sorted(rows, key=lambda row: (-abs(row.after_gpu_hours - row.before_gpu_hours), row.namespace, row.workload))


def _write_sentence(
    change: InBothLanguages,
    pods: int,
    agreeing: int,
    before: ReplayedWaits,
    after: ReplayedWaits | None,
    shorter: int,
    longer: int,
) -> InBothLanguages:
    if not pods:
        return write_phrase("replay_no_pods")
    if after is None:
        return write_phrase("replay_differs", pods=pods, agreeing=agreeing)
    hours = {"before": f"{before.gpu_hours:,.1f}", "after": f"{after.gpu_hours:,.1f}"}
    return write_phrase("replay_waits", change=change, shorter=shorter, longer=longer, **hours)


def _list_notes(recording: Recording) -> list[InBothLanguages]:
    """List what the replay leaves out of this recording."""
    decided = [pod for pod in recording.pods if is_decided(pod, recording)]
    undecided = len(recording.pods) - len(decided)
    lasting = sum(pod.left_at is None or pod.bound_at is None for pod in decided)
    notes = [write_phrase("replay_note_nodes")]
    if undecided:
        notes.append(write_phrase("replay_note_undecided", pods=undecided))
    if lasting:
        notes.append(write_phrase("replay_note_lasting", pods=lasting))
    return notes
