"""Pods of a live cluster that wait for a node, each with its main obstacle: the answer of the API's ``/pending``."""

from datetime import UTC, datetime
from typing import Final

from cli.client.problems import NotAllowed, Problem
from cli.direct.pod_case import LiveCase
from engine.diagnosis.wording import count_devices
from engine.fit.events.event_builder import to_request
from engine.fit.judge.request.pod_request import list_requests
from engine.hami.vendor_catalog import list_vendors
from engine.snapshot import kinds
from ingest.cases.answers import PodAnswer, diagnose_pods
from runtime.kubernetes.object_fields import Fields, get_text, iterate_objects, parse_moment
from schemas.answers.waiting import MainObstacle, PodsWaiting, PodWaiting
from schemas.codec.records import format_rfc3339

MAX_PODS: Final = 200
"""Pods that one answer explains: those that wait longest."""
_NEVER: Final = datetime.max.replace(tzinfo=UTC)


def list_waiting(live: LiveCase, limit: int = MAX_PODS) -> PodsWaiting | Problem:
    """List the pods without a node, the longest waiting first."""
    if not live.case.objects.has_read(kinds.POD) and kinds.POD in live.problems:
        return NotAllowed("the pods can't be read", "`kubectl auth can-i list pods`; -n names a namespace.")
    now = live.case.read_at or datetime.now(UTC)
    pods = sorted(filter(_waits, live.case.objects.select(kinds.POD)), key=_find_creation)
    explained = pods[: min(limit, MAX_PODS)]
    answers = diagnose_pods(live.case, [_name_pod(pod) for pod in explained])
    items = [_to_item(pod, answer, now) for pod, answer in zip(explained, answers, strict=True)]
    return PodsWaiting(total=len(pods), items=items)


def _waits(pod: Fields) -> bool:
    is_deleted = get_text(pod, "metadata", "deletionTimestamp")
    return not get_text(pod, "spec", "nodeName") and get_text(pod, "status", "phase") == "Pending" and not is_deleted


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
    )
