"""Pods that a workload has not made yet, built from its template: the layers can be asked what holds them back."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from engine.cases.workload_words import HOLDERS, KUEUE_WORKLOAD, VOLCANO_JOB
from engine.cases.workloads import CaseWorkload, is_suspended
from engine.diagnosis.layers.volcano_queues import QUEUE_ANNOTATION
from engine.snapshot.case_objects import CaseObjects
from engine.snapshot.pod_defaults import write_defaults
from runtime.kubernetes.object_fields import Fields, get_object, get_text

_VOLCANO_GROUP: Final = "scheduling.k8s.io/group-name"
_WORKLOAD: Final = "kueue.x-k8s.io/workload"
_GATE: Final = "kueue.x-k8s.io/admission"
_MAX_DEPTH: Final = 8


def build_unmade_pod(objects: CaseObjects, key: CaseWorkload, family: Iterable[CaseWorkload]) -> Fields | None:
    """Build the pod that the workload would make from its template; None without a template.

    It has the marks that its controllers would add: the gate of Kueue while the workload waits there, and the name of
    its PodGroup.
    """
    owners = [other for other in family if other.kind not in HOLDERS]
    maker = next((other for other in (*owners, key) if find_template(_get_spec(objects, other))), None)
    template = find_template(_get_spec(objects, maker)) if maker else None
    if maker is None and key.kind == KUEUE_WORKLOAD:
        # A description without its spec: what Kueue says of the workload stands in its conditions.
        maker, template = key, {}
    if maker is None or template is None:
        return None
    version, kind = _split_kind(maker)
    metadata = get_object(template, "metadata")
    group = next((other.name for other in family if other.kind == "PodGroup.scheduling.volcano.sh"), "")
    queue = get_text(_get_spec(objects, maker), "queue") or "default" if maker.kind == VOLCANO_JOB else ""
    marks = {name: value for name, value in ((_VOLCANO_GROUP, group), (QUEUE_ANNOTATION, queue)) if value}
    annotations = {**get_object(metadata, "annotations"), **marks}
    # The owner of a Workload that was read alone is suspended until Kueue admits it.
    is_alone = maker.kind == KUEUE_WORKLOAD
    if is_alone:
        annotations[_WORKLOAD] = maker.name
    is_held = is_alone or (any(other.kind == KUEUE_WORKLOAD for other in family) and is_suspended(objects, family))
    gates = {"schedulingGates": [{"name": _GATE}]} if is_held else {}
    # The API server writes the defaults into pods, and not into templates of pods.
    return write_defaults(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": key.name,
                "namespace": key.namespace,
                "labels": dict(get_object(metadata, "labels")),
                "annotations": annotations,
                "ownerReferences": [{"apiVersion": version, "kind": kind, "name": maker.name, "controller": True}],
            },
            "spec": {"schedulerName": _get_scheduler(objects, maker), **get_object(template, "spec"), **gates},
            "status": {"phase": "Pending"},
        }
    )


def _get_scheduler(objects: CaseObjects, maker: CaseWorkload) -> str:
    """Get the scheduler of a template that names none: Volcano's Job names it for all of its tasks."""
    named = get_text(_get_spec(objects, maker), "schedulerName")
    return named or ("volcano" if maker.kind == VOLCANO_JOB else "default-scheduler")


def _split_kind(key: CaseWorkload) -> tuple[str, str]:
    kind, _, group = key.kind.partition(".")
    return f"{group}/v1" if group else "v1", kind


def _get_spec(objects: CaseObjects, key: CaseWorkload) -> Fields:
    return get_object(objects.find(key.kind, key.name, key.namespace), "spec")


def find_template(fields: Any, depth: int = 0) -> Fields | None:
    """Find the first template of pods at any depth: each kind of Job has its own place for it."""
    if depth > _MAX_DEPTH:
        return None
    children = list(fields.values()) if isinstance(fields, Mapping) else fields if isinstance(fields, list) else []
    template = get_object(fields, "template") if isinstance(fields, Mapping) else {}
    if get_object(template, "spec").get("containers"):
        return template
    return next((deeper for child in children if (deeper := find_template(child, depth + 1))), None)
