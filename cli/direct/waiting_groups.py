"""Waiting pods grouped by their workload or by what keeps them: the answers of ``/pending`` with ``group_by``. Pure."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence

from schemas.answers.waiting import (
    LayerListed,
    ObstacleWaiting,
    Pending,
    PendingLayers,
    PendingObstacles,
    PodsWaiting,
    PodWaiting,
    WorkloadWaiting,
)

_EXAMPLES = 3


def group_waiting(waiting: PodsWaiting, grouping: str) -> PodsWaiting | Pending | PendingObstacles | PendingLayers:
    """Group the pods by ``workload``, ``obstacle`` or ``layer``; another grouping leaves them as they are."""
    match grouping:
        case "workload":
            return group_by_workload(waiting)
        case "obstacle":
            return group_by_obstacle(waiting)
        case "layer":
            return group_by_layer(waiting)
    return waiting


def group_by_workload(waiting: PodsWaiting) -> Pending:
    """Group the pods by their workloads, those with the most pods first."""
    groups = _group(waiting.items, lambda pod: (pod.namespace, _name_workload(pod)))
    return Pending(
        pods=waiting.total,
        obstacles=_count_obstacles(waiting.items),
        reasons=_count_reasons(waiting.items),
        total=len(groups),
        items=[_to_workload(pods) for pods in groups],
        blocked=[],
    )


def group_by_obstacle(waiting: PodsWaiting) -> PendingObstacles:
    """Group the pods by obstacle and request, those with the most pods first."""
    groups = _group(waiting.items, lambda pod: (pod.obstacle.code if pod.obstacle else "", pod.devices))
    return PendingObstacles(pods=waiting.total, total=len(groups), items=[_to_obstacle(pods) for pods in groups])


def group_by_layer(waiting: PodsWaiting) -> PendingLayers:
    """Group the pods by the layer that holds them, those with the most pods first."""
    groups = _group(waiting.items, lambda pod: pod.layer)
    return PendingLayers(pods=waiting.total, total=len(groups), items=[_to_layer(pods) for pods in groups])


def _group(pods: Iterable[PodWaiting], key: Callable[[PodWaiting], Hashable]) -> list[list[PodWaiting]]:
    groups: dict[Hashable, list[PodWaiting]] = {}
    for pod in pods:
        groups.setdefault(key(pod), []).append(pod)
    return sorted(groups.values(), key=len, reverse=True)


def _name_workload(pod: PodWaiting) -> str:
    return pod.workload or f"Pod/{pod.name}"


def _count_reasons(pods: Iterable[PodWaiting]) -> dict[str, int]:
    return dict(Counter(reason for pod in pods for reason in pod.reasons).most_common())


def _count_obstacles(pods: Iterable[PodWaiting]) -> dict[str, int]:
    return dict(Counter(pod.obstacle.code for pod in pods if pod.obstacle).most_common())


def _to_workload(pods: Sequence[PodWaiting]) -> WorkloadWaiting:
    return WorkloadWaiting(
        namespace=pods[0].namespace,
        workload=_name_workload(pods[0]),
        queue=pods[0].queue,
        pods=len(pods),
        obstacles=_count_obstacles(pods),
        reasons=_count_reasons(pods),
        first_judged_at=min(pod.first_judged_at for pod in pods),
        last_judged_at=max(pod.last_judged_at for pod in pods),
        examples=list(pods[:_EXAMPLES]),
        devices=sum(pod.devices or 0 for pod in pods),
        gpu_hours=round(sum(pod.gpu_hours or 0 for pod in pods), 3),
    )


def _to_obstacle(pods: Sequence[PodWaiting]) -> ObstacleWaiting:
    return ObstacleWaiting(
        obstacle=pods[0].obstacle,
        asked="",
        pods=len(pods),
        workloads=len({(pod.namespace, _name_workload(pod)) for pod in pods}),
        namespaces=len({pod.namespace for pod in pods}),
        devices=sum(pod.devices or 0 for pod in pods),
        gpu_hours=round(sum(pod.gpu_hours or 0 for pod in pods), 3),
        first_judged_at=min(pod.first_judged_at for pod in pods),
        last_judged_at=max(pod.last_judged_at for pod in pods),
        nearest=None,
        examples=list(pods[:_EXAMPLES]),
    )


def _to_layer(pods: Sequence[PodWaiting]) -> LayerListed:
    return LayerListed(
        layer=pods[0].layer,
        pods=len(pods),
        waited_seconds=sum(pod.waited_seconds for pod in pods),
        workloads=len({(pod.namespace, _name_workload(pod)) for pod in pods}),
        namespaces=len({pod.namespace for pod in pods}),
        obstacles=_count_obstacles(pods),
        devices=sum(pod.devices or 0 for pod in pods),
        gpu_hours=round(sum(pod.gpu_hours or 0 for pod in pods), 3),
        first_judged_at=min(pod.first_judged_at for pod in pods),
        last_judged_at=max(pod.last_judged_at for pod in pods),
        examples=list(pods[:_EXAMPLES]),
    )
