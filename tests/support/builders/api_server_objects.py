"""Builders of what an API server says, and what the reader makes of it."""

from collections.abc import Sequence
from typing import Any

from engine.summaries.fold import AttemptFold
from ingest.readers.kube import KubeEvents
from schemas.events import AttemptEvent, AttemptSummarized, Event
from schemas.json_types import Json


def a_pod(name: str = "gpu8", *, version: int = 1001, **more: Any) -> Json:
    """``more``: ``condition`` (the message of PodScheduled=False), ``nominated``, ``node``, ``phase``."""
    pod: Json = {
        "metadata": {
            "namespace": "ml", "name": name, "uid": f"uid-{name}", "resourceVersion": str(version),
            "creationTimestamp": "2026-11-21T03:13:00Z",
        },
        "spec": {
            "schedulerName": "default-scheduler",
            "containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "8"}}}],
        },
        "status": {"phase": more.get("phase", "Pending")},
    }  # fmt: skip
    if message := more.get("condition"):
        pod["status"]["conditions"] = [
            {
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message,
                "lastTransitionTime": "2026-11-21T03:13:32Z",
            }
        ]  # fmt: skip
    if nominated := more.get("nominated"):
        pod["status"]["nominatedNodeName"] = nominated
    if node := more.get("node"):
        pod["spec"]["nodeName"] = node
    return pod


def an_event(
    reason: str, note: str, *, pod: str = "gpu8", time: str = "2026-11-21T03:13:32.250001Z", **more: Any
) -> Json:
    """An event of events.k8s.io/v1; ``more``: ``scheduler``, ``kind``, ``last`` (the series' last time)."""
    event: Json = {
        "metadata": {"namespace": "ml", "name": f"{pod}.1"},
        "regarding": {"kind": more.get("kind", "Pod"), "namespace": "ml", "name": pod, "uid": f"uid-{pod}"},
        "reason": reason, "note": note, "type": "Warning", "eventTime": time,
        "reportingController": more.get("scheduler", "default-scheduler"),
    }  # fmt: skip
    if last := more.get("last"):
        event["series"] = {"count": 208, "lastObservedTime": last}
    return event


def an_old_event(reason: str, message: str, *, pod: str = "deepseek", time: str = "2026-11-21T03:13:32Z") -> Json:
    """An event as HAMi's recorder writes it: whole seconds, and no uid of the reporter's own."""
    return {
        "regarding": {"kind": "Pod", "namespace": "ml", "name": pod, "uid": f"uid-{pod}"},
        "reason": reason, "note": message, "deprecatedSource": {"component": "hami-scheduler"}, "eventTime": None,
        "deprecatedFirstTimestamp": time, "deprecatedLastTimestamp": time,
    }  # fmt: skip


def a_pod_group(why: str, *, pod: str = "ml/gpu8", time: str = "2026-11-21T03:13:32Z", status: str = "True") -> Json:
    """A pod group as KAI v0.13 writes it when one pod of the group fits nowhere."""
    text = f"Resources were not found for pod {pod} due to: {why}"
    condition = {
        "type": "UnschedulableOnNodePool", "nodePool": "a100", "reason": "Unschedulable",
        "message": f"PodSchedulingErrors: {text}.", "transitionID": "1", "lastTransitionTime": time, "status": status,
        "reasons": [{"reason": "PodSchedulingErrors", "message": text}],
    }  # fmt: skip
    return {"metadata": {"namespace": "ml", "name": "pg-gpu8"}, "status": {"schedulingConditions": [condition]}}


def read(*objects: tuple[Any, Json], reader: KubeEvents | None = None) -> list[Event]:
    reader = reader or KubeEvents()
    events = [event for kind, item in objects for event in reader.read_object(kind, item, 0.0)]
    return events + reader.settle(60.0)


def list_attempts(events: Sequence[Event]) -> list[AttemptSummarized]:
    folds: dict[str, AttemptFold] = {}
    for event in events:
        if isinstance(event, AttemptEvent):
            folds.setdefault(event.attempt_id, AttemptFold()).add(event)
    return [fold.summarize() for fold in folds.values()]
