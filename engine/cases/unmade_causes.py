"""Causes of pods that a workload does not make by itself: its schedule, order or selector, or its end."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Final

from engine.cases.workload_words import CRON_JOB, JOB, KUEUE_WORKLOAD
from engine.cases.workloads import CaseWorkload, list_holders, list_without_pods
from engine.diagnosis.facts import Evidence
from engine.diagnosis.layers.kueue_workloads import LOCAL_QUEUE, QUEUE_LABEL
from engine.diagnosis.outcome import FoundObstacle, Word
from engine.diagnosis.wording import quote, shorten_list
from engine.snapshot import kinds
from engine.snapshot.case_objects import CaseObjects
from runtime.kubernetes.object_fields import Fields, get_object, get_text, iterate_objects, list_conditions

_STATEFUL_SET: Final = "StatefulSet.apps"
_DAEMON_SET: Final = "DaemonSet.apps"
_NEAR: Final = 0.85
"""Likeness of a key that is meant to be another."""
_NEVER: Final = datetime.min.replace(tzinfo=UTC)
_ON_PURPOSE: Final = ("CronJobSuspended", "CronJobStillRuns", "JobFailed")
"""Obstacles of workloads that wait for nothing: they are not listed among those that do."""
_CRON_EVENTS: Final[Mapping[str, str]] = {
    "UnknownTimeZone": "CronTimeZoneUnknown",
    "UnparseableSchedule": "CronScheduleUnreadable",
    "InvalidSchedule": "CronScheduleUnreadable",
    "JobAlreadyActive": "CronJobStillRuns",
    "MissSchedule": "CronJobMissed",
    "TooManyMissedTimes": "CronJobMissed",
    "FailedNeedsStart": "CronJobMissed",
}
"""Obstacle of a CronJob by the reason of its latest event."""


def find_cause(
    objects: CaseObjects, family: Sequence[CaseWorkload], pods: Iterable[Fields], now: datetime
) -> FoundObstacle | None:
    """Find why the workload makes no pods, or no more of them; None if its objects do not say."""
    for key in family:
        entry = objects.find(key.kind, key.name, key.namespace)
        obstacle = _explain(objects, key, entry, list(pods)) if entry else None
        if obstacle:
            words: dict[str, Word] = {"workload": str(key), "namespace": key.namespace, **obstacle.words}
            evidence = [Evidence("owner", f"{key.namespace}/{key}", now)]
            return obstacle._replace(words=words, evidence=evidence)
    return None


def _explain(objects: CaseObjects, key: CaseWorkload, entry: Fields, pods: Sequence[Fields]) -> FoundObstacle | None:
    if key.kind == CRON_JOB:
        return explain_cron_job(objects, key, entry)
    if key.kind == _STATEFUL_SET:
        return _explain_order(entry, pods)
    if key.kind == _DAEMON_SET:
        return _explain_daemons(objects, entry)
    return _explain_end(entry) if key.kind == JOB else None


def explain_cron_job(objects: CaseObjects, key: CaseWorkload, entry: Fields) -> FoundObstacle | None:
    """Explain a CronJob that starts no Job: it is suspended, or its controller has written why not."""
    spec = get_object(entry, "spec")
    if spec.get("suspend") is True:
        return FoundObstacle("CronJobSuspended", {})
    for event in objects.select_events("CronJob", key.name, key.namespace):
        if code := _CRON_EVENTS.get(event.reason):
            words: dict[str, Word] = {
                "words": quote(event.note), "zone": get_text(spec, "timeZone"), "schedule": get_text(spec, "schedule"),
            }  # fmt: skip
            return FoundObstacle(code, words)
    return None


def _explain_order(entry: Fields, pods: Sequence[Fields]) -> FoundObstacle | None:
    """Explain a StatefulSet that makes its pods one after the other: the first that is not ready stops it."""
    if get_text(entry, "spec", "podManagementPolicy") not in ("", "OrderedReady"):
        return None
    unready = [pod for pod in pods if not _is_ready(pod)]
    first = min(unready, key=_find_ordinal, default=None)
    if first is None:
        return None
    words: dict[str, Word] = {"first": get_text(first, "metadata", "name"), "why": _describe_container(first)}
    return FoundObstacle("StatefulSetOrder", words, clauses=["why"] if words["why"] else [])


def _describe_container(pod: Fields) -> str:
    """Describe the first container that does not run: the kubelet's reason, and how often it was started again."""
    for status in iterate_objects(pod, "status", "containerStatuses"):
        if reason := get_text(status, "state", "waiting", "reason"):
            return f"{get_text(status, 'name')}: {reason}, {status.get('restartCount', 0)} restarts"
    return ""


def _is_ready(pod: Fields) -> bool:
    return any(entry.type == "Ready" and entry.status == "True" for entry in list_conditions(pod))


def _find_ordinal(pod: Fields) -> int:
    ordinal = get_text(pod, "metadata", "name").rpartition("-")[2]
    return int(ordinal) if ordinal.isdecimal() else 0


def _explain_daemons(objects: CaseObjects, entry: Fields) -> FoundObstacle | None:
    """Explain a DaemonSet for which its controller finds no node: it does not ask a scheduler for them."""
    if get_object(entry, "status").get("desiredNumberScheduled") != 0:
        return None
    selector = get_object(entry, "spec", "template", "spec", "nodeSelector")
    nodes = [get_object(node, "metadata", "labels") for node in objects.select(kinds.NODE)]
    matching = sum(selector.items() <= node.items() for node in nodes)
    words: dict[str, Word] = {
        "selector": shorten_list([f"{name}={value}" for name, value in selector.items()]),
        "matching": matching,
        "total": len(nodes),
    }
    clauses = [*(["selector"] if selector else []), *(["matching"] if nodes and selector else [])]
    return FoundObstacle("DaemonSetWithoutNode", words, clauses=clauses)


def _explain_end(entry: Fields) -> FoundObstacle | None:
    """Explain a Job that has failed for good."""
    failed = next((item for item in list_conditions(entry) if item.type == "Failed" and item.status == "True"), None)
    return FoundObstacle("JobFailed", {"words": quote(f"{failed.reason}: {failed.message}")}) if failed else None


def explain_without_workload(
    objects: CaseObjects, family: Iterable[CaseWorkload], now: datetime
) -> FoundObstacle | None:
    """Explain a suspended workload that names a queue of Kueue, and for which Kueue has made no Workload."""
    family = list(family)
    if any(key.kind == KUEUE_WORKLOAD for key in family):
        return None
    for key in family:
        entry = objects.find(key.kind, key.name, key.namespace)
        queue = str(get_object(entry, "metadata", "labels").get(QUEUE_LABEL, ""))
        if queue:
            is_missing = objects.has_read(LOCAL_QUEUE) and objects.find(LOCAL_QUEUE, queue, key.namespace) is None
            words: dict[str, Word] = {"workload": str(key), "queue": queue, "namespace": key.namespace}
            evidence = [Evidence("owner", f"{key.namespace}/{key}", now)]
            clauses = ["missing"] if is_missing else []
            return FoundObstacle("KueueNotSeen", words, evidence=evidence, clauses=clauses)
    return None


def find_misplaced_queue(objects: CaseObjects, family: Iterable[CaseWorkload]) -> dict[str, Word]:
    """Find a queue of Kueue that a suspended workload names by an annotation, or by a misspelled label."""
    for key in family:
        metadata = get_object(objects.find(key.kind, key.name, key.namespace), "metadata")
        for field in ("annotations", "labels"):
            for name, queue in get_object(metadata, field).items():
                is_near = get_close_matches(name, [QUEUE_LABEL], cutoff=_NEAR)
                if is_near and (field, name) != ("labels", QUEUE_LABEL):
                    return {"queue": str(queue), "key": name, "field": field[:-1], "label": QUEUE_LABEL}
    return {}


def list_unmade(objects: CaseObjects, *, with_purpose: bool = True) -> list[CaseWorkload]:
    """List the workloads that want pods and have none, and the CronJobs that can't start Jobs for a mistake.

    ``with_purpose``: where there are none of them, list those that somebody has suspended or that have failed.
    """
    causes = {
        key: obstacle.code
        for kind in (CRON_JOB, JOB)
        for (namespace, name) in objects.tables.get(kind, {})
        if (obstacle := find_cause(objects, [key := CaseWorkload(kind, namespace, name)], (), _NEVER))
    }
    mistakes = [key for key, code in causes.items() if code not in _ON_PURPOSE]
    unmade = [*list_without_pods(objects), *mistakes]
    # A cluster's Workloads and groups have pods or makers, which a file with one of them alone does not have.
    return unmade or ((list_holders(objects) or list(causes)) if with_purpose else [])
