"""Rows of pending pods without nesting. Pure."""

from typing import Any

from schemas.answers.waiting import (
    LayerListed,
    MainObstacle,
    NearestNode,
    ObstacleWaiting,
    PendingRow,
    PodWaiting,
    WorkloadWaiting,
)


def to_row(item: PodWaiting | WorkloadWaiting | ObstacleWaiting | LayerListed) -> PendingRow:
    """Convert an item of a page into a row; fields that the pods of a group do not share are empty."""
    match item:
        case PodWaiting():
            return _to_pod_row(item)
        case WorkloadWaiting():
            return _to_workload_row(item)
        case ObstacleWaiting():
            return _to_obstacle_row(item)
        case LayerListed():
            return _to_group_row(item, item.examples[0]).model_copy(
                update={"waited_seconds": item.waited_seconds, "reasons": " ".join(item.obstacles)}
            )


def _to_pod_row(pod: PodWaiting) -> PendingRow:
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
        layer=pod.layer or "",
        **_list_obstacle_fields(pod.obstacle),
        **_list_nearest_fields(pod.nearest),
    )


def _to_workload_row(group: WorkloadWaiting) -> PendingRow:
    longest = group.examples[0]
    # A workload with one pod has all fields of the pod.
    if group.pods == 1:
        return _to_pod_row(longest).model_copy(update={"workload": group.workload})
    return _to_group_row(group, longest).model_copy(
        update={
            "namespace": group.namespace,
            "workload": group.workload,
            "queue": group.queue,
            "reasons": " ".join(group.reasons),
        }
    )


def _to_obstacle_row(group: ObstacleWaiting) -> PendingRow:
    shared = {**_list_obstacle_fields(group.obstacle), **_list_nearest_fields(group.nearest)}
    return _to_group_row(group, group.examples[0]).model_copy(update=shared)


def _to_group_row(group: WorkloadWaiting | ObstacleWaiting | LayerListed, longest: PodWaiting) -> PendingRow:
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
        layer=group.layer or "",
        **_list_obstacle_fields(None),
        **_list_nearest_fields(None),
    )


def _list_obstacle_fields(obstacle: MainObstacle | None) -> dict[str, str]:
    if obstacle is None:
        return {"obstacle": "", "sentence": "", "sentence_zh": ""}
    return {"obstacle": obstacle.code, "sentence": obstacle.sentence.en, "sentence_zh": obstacle.sentence.zh}


def _list_nearest_fields(nearest: NearestNode | None) -> dict[str, Any]:
    return {
        "nearest_node": nearest.node if nearest else "",
        "missing_devices": nearest.missing_devices if nearest else None,
        "missing_memory_mib": nearest.missing_memory_mib if nearest else None,
        "missing_cores_percent": nearest.missing_cores_percent if nearest else None,
    }
