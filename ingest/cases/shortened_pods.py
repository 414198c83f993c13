"""Pods that people wrote or shortened by hand, completed with what the API server and the scheduler always write."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from engine.snapshot import kinds
from engine.snapshot.case_objects import CaseObjects
from engine.snapshot.pod_defaults import write_defaults
from ingest.cases.descriptions import choose_reporter
from runtime.kubernetes.object_fields import get_object, get_text, iterate_objects

_REFUSED: Final = ("Unschedulable", "SchedulerError")


def complete_pods(objects: CaseObjects, undated: datetime) -> CaseObjects:
    """Complete the pods of a case; ``undated``: the time of what has none, where no other object has one either."""
    table = objects.tables.get(kinds.POD)
    if not table:
        return objects
    now = objects.latest_time or undated
    completed = {key: write_defaults(_complete_refusal(pod, now)) for key, pod in table.items()}
    return replace(objects, tables={**objects.tables, kinds.POD: completed})


def _complete_refusal(pod: Mapping[str, Any], now: datetime) -> Mapping[str, Any]:
    """Return the pod with the time and the scheduler of its refusal, where they were not copied with its condition."""
    conditions = list(iterate_objects(pod, "status", "conditions"))
    refusal = next(filter(_is_refusal, conditions), None)
    if refusal is None or (get_text(refusal, "lastTransitionTime") and get_text(pod, "spec", "schedulerName")):
        return pod
    stamp = f"{now:%Y-%m-%dT%H:%M:%SZ}"
    dated = [{"lastTransitionTime": stamp, **entry} if entry is refusal else entry for entry in conditions]
    scheduler = choose_reporter("FailedScheduling", get_text(refusal, "message"))
    spec = {"schedulerName": scheduler, **get_object(pod, "spec")}
    return {**pod, "spec": spec, "status": {**get_object(pod, "status"), "conditions": dated}}


def _is_refusal(condition: Mapping[str, Any]) -> bool:
    return get_text(condition, "type") == "PodScheduled" and get_text(condition, "reason") in _REFUSED
