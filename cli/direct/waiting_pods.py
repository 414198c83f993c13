"""Pods and workloads without pods that wait on a live cluster, each with its main obstacle and layer: ``/pending``."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from cli.client.problems import NotAllowed, Problem
from cli.direct.pod_case import LiveCase
from engine.cases.unmade_answers import explain_unmade
from engine.cases.unmade_causes import list_unmade
from engine.cases.workloads import CaseWorkload, is_refused
from engine.diagnosis.layer_waits import find_layer_of_code
from engine.diagnosis.wording import count_devices
from engine.fit.events.event_builder import to_request
from engine.fit.judge.request.pod_request import list_requests
from engine.hami.vendor_catalog import list_vendors
from engine.snapshot import kinds
from engine.snapshot.case_objects import CaseObjects
from ingest.cases.answers import PodAnswer, diagnose_pods
from runtime.kubernetes.object_fields import Fields, get_text, iterate_objects, parse_moment
from schemas.answers.waiting import MainObstacle, PodsWaiting, PodWaiting
from schemas.codec.records import format_rfc3339
from schemas.documents.pod_states import name_workload

MAX_PODS: Final = 200
"""Pods that one answer explains: those that wait longest."""
_NEVER: Final = datetime.max.replace(tzinfo=UTC)


def list_waiting(live: LiveCase, limit: int = MAX_PODS) -> PodsWaiting | Problem:
    """List what waits, the longest waiting first: pods without a node, refused pods, and workloads without pods."""
    if not live.case.objects.has_read(kinds.POD) and kinds.POD in live.problems:
        return NotAllowed("the pods can't be read", "`kubectl auth can-i list pods`; -n names a namespace.")
    now = live.case.read_at or datetime.now(UTC)
    pods = sorted(_list_pods(live.case.objects), key=_find_creation)
    explained = pods[: min(limit, MAX_PODS)]
    answers = diagnose_pods(live.case, [_name_pod(pod) for pod in explained])
    items = [_to_item(pod, answer, now) for pod, answer in zip(explained, answers, strict=True)]
    unmade = list_unmade(live.case.objects, with_purpose=False)
    items += [_to_unmade_item(live, key, now) for key in unmade[: max(limit - len(items), 0)]]
    items.sort(key=lambda item: item.first_judged_at)
    return PodsWaiting(total=len(pods) + len(unmade), items=items)


def _list_pods(objects: CaseObjects) -> list[Fields]:
    """List the pods without a node, and those that their node refused until their owner has made others."""
    pods = objects.select(kinds.POD)
    youngest: dict[tuple[str, str], str] = {}
    for pod in pods:
        owner = _name_owner(pod)
        youngest[owner] = max(youngest.get(owner, ""), get_text(pod, "metadata", "creationTimestamp"))
    return [pod for pod in pods if _waits(pod) or (is_refused(pod) and not _is_replaced(pod, youngest))]


def _name_owner(pod: Fields) -> tuple[str, str]:
    owner = next(iterate_objects(pod, "metadata", "ownerReferences"), {})
    return get_text(pod, "metadata", "namespace"), get_text(owner, "uid") or get_text(pod, "metadata", "uid")


def _is_replaced(pod: Fields, youngest: Mapping[tuple[str, str], str]) -> bool:
    """Tell whether the owner has made a pod after this one was refused, which is when its status got its start."""
    youngest_at = youngest[_name_owner(pod)]
    created, refused = get_text(pod, "metadata", "creationTimestamp"), get_text(pod, "status", "startTime")
    return youngest_at > created and youngest_at >= refused


def _waits(pod: Fields) -> bool:
    is_deleted = get_text(pod, "metadata", "deletionTimestamp")
    return not get_text(pod, "spec", "nodeName") and get_text(pod, "status", "phase") == "Pending" and not is_deleted


def _to_unmade_item(live: LiveCase, key: CaseWorkload, now: datetime) -> PodWaiting:
    """Build the item of a workload without pods: it is named as ``why`` takes it, such as ``job/train``."""
    unmade = explain_unmade(live.case.objects, now, key)
    obstacle, created = unmade.obstacle, format_rfc3339(unmade.created_at or now)
    waited = max(int((now - (unmade.created_at or now)).total_seconds()), 0)
    return PodWaiting(
        namespace=key.namespace,
        name=name_workload(key.kind.partition(".")[0], key.name),
        pod_uid="",
        scheduler="",
        status="pending",
        reasons=[obstacle.code] if obstacle else [],
        workload=str(key),
        pod_group="",
        queue=unmade.queue,
        priority_class="",
        created_at=created,
        first_judged_at=created,
        last_judged_at=created,
        attempts=None,
        attempt="",
        schedulerlog="",
        waited_seconds=waited,
        devices=unmade.devices,
        gpu_hours=round(unmade.devices * waited / 3600, 3),
        obstacle=MainObstacle(code=obstacle.code, sentence=obstacle.sentence) if obstacle else None,
        layer=find_layer_of_code(obstacle.code) if obstacle else None,
    )


def _find_creation(pod: Fields) -> datetime:
    return parse_moment(get_text(pod, "metadata", "creationTimestamp")) or _NEVER


def _name_pod(pod: Fields) -> str:
    return f"{get_text(pod, 'metadata', 'namespace') or 'default'}/{get_text(pod, 'metadata', 'name')}"


def _to_item(pod: Fields, answer: PodAnswer, now: datetime) -> PodWaiting:
    created = parse_moment(get_text(pod, "metadata", "creationTimestamp")) or now
    waited = max(int((now - created).total_seconds()), 0)
    devices = count_devices([to_request(request) for request in list_requests(pod, list_vendors(()))])
    obstacle = answer.diagnosis.obstacle
    owner = next(
        (entry for entry in iterate_objects(pod, "metadata", "ownerReferences") if entry.get("controller")), {}
    )
    return PodWaiting(
        namespace=answer.diagnosis.namespace,
        name=answer.diagnosis.name,
        pod_uid=get_text(pod, "metadata", "uid"),
        scheduler=get_text(pod, "spec", "schedulerName"),
        status="failed" if answer.diagnosis.state == "refused" else "pending",
        reasons=[obstacle.code] if obstacle else [],
        workload=f"{get_text(owner, 'kind')}/{get_text(owner, 'name')}" if owner else "",
        pod_group="",
        queue="",
        priority_class=get_text(pod, "spec", "priorityClassName"),
        created_at=format_rfc3339(created),
        first_judged_at=format_rfc3339(created),
        last_judged_at=format_rfc3339(answer.started_at or created),
        attempts=answer.attempts or None,
        attempt="",
        schedulerlog="",
        waited_seconds=waited,
        devices=devices,
        gpu_hours=round(devices * waited / 3600, 3),
        obstacle=MainObstacle(code=obstacle.code, sentence=obstacle.sentence) if obstacle else None,
        layer=answer.diagnosis.layer,
    )
