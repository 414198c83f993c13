"""Rows without nesting, of what a list of pending pods answers. Pure."""

from typing import Any

from schemas.answers.waiting import (
    MainObstacle,
    NearestNode,
    ObstacleWaiting,
    PendingRow,
    PodWaiting,
    WorkloadWaiting,
)


def row_of(item: PodWaiting | WorkloadWaiting | ObstacleWaiting) -> PendingRow:
    """An item of a page as a row; of a group, what its pods do not share is empty."""
    match item:
        case PodWaiting():
            return _of_pod(item)
        case WorkloadWaiting():
            return _of_workload(item)
        case ObstacleWaiting():
            return _of_obstacle(item)


def _of_pod(pod: PodWaiting) -> PendingRow:
    return PendingRow(
        pods=1,
        namespace=pod.namespace,
        name=pod.name,
        workload=pod.workload,
        queue=pod.queue,
        priority_class=pod.priority_class,
        scheduler=pod.scheduler,
        status=pod.status,
        first_judged_at=pod.first_judged_at,
        last_judged_at=pod.last_judged_at,
        waited_seconds=pod.waited_seconds,
        attempts=pod.attempts,
        devices=pod.devices,
        gpu_hours=pod.gpu_hours,
        reasons=" ".join(pod.reasons),
        schedulerlog=pod.schedulerlog,
        **_obstacle(pod.obstacle),
        **_nearest(pod.nearest),
    )


def _of_workload(group: WorkloadWaiting) -> PendingRow:
    longest = group.examples[0]
    # Of a workload of one pod, everything is known.
    if group.pods == 1:
        return _of_pod(longest).model_copy(update={"workload": group.workload})
    return _of_group(group, longest).model_copy(
        update={
            "namespace": group.namespace,
            "workload": group.workload,
            "queue": group.queue,
            "reasons": " ".join(group.reasons),
        }
    )


def _of_obstacle(group: ObstacleWaiting) -> PendingRow:
    shared = {**_obstacle(group.obstacle), **_nearest(group.nearest)}
    return _of_group(group, group.examples[0]).model_copy(update=shared)


def _of_group(group: WorkloadWaiting | ObstacleWaiting, longest: PodWaiting) -> PendingRow:
    return PendingRow(
        pods=group.pods,
        namespace="",
        name="",
        workload="",
        queue="",
        priority_class="",
        scheduler="",
        status="",
        first_judged_at=group.first_judged_at,
        last_judged_at=group.last_judged_at,
        waited_seconds=longest.waited_seconds,
        attempts=None,
        devices=group.devices,
        gpu_hours=group.gpu_hours,
        reasons="",
        schedulerlog="",
        **_obstacle(None),
        **_nearest(None),
    )


def _obstacle(obstacle: MainObstacle | None) -> dict[str, str]:
    if obstacle is None:
        return {"obstacle": "", "sentence": "", "sentence_zh": ""}
    return {"obstacle": obstacle.code, "sentence": obstacle.sentence.en, "sentence_zh": obstacle.sentence.zh}


def _nearest(nearest: NearestNode | None) -> dict[str, Any]:
    return {
        "nearest_node": nearest.node if nearest else "",
        "missing_devices": nearest.missing_devices if nearest else None,
        "missing_memory_mib": nearest.missing_memory_mib if nearest else None,
        "missing_cores_percent": nearest.missing_cores_percent if nearest else None,
    }
