"""The fields that several kinds of documents share: which attempt it is about, and where its pod comes from."""

from typing import Any

from ..codec.records import format_rfc3339
from ..events import AttemptEvent, PodDescription


def build_attempt_fields(event: AttemptEvent) -> dict[str, Any]:
    """Build the fields of an attempt. ``@timestamp`` is the start of the attempt."""
    return {
        "@timestamp": format_rfc3339(event.started_at),
        "cluster": event.cluster,
        "attempt_id": event.attempt_id,
        "namespace": event.pod.namespace,
        "pod": event.pod.name,
        "pod_uid": event.pod.uid,
        "scheduler": event.scheduler,
    }


def build_description_fields(description: PodDescription | None) -> dict[str, Any]:
    """Build the fields of the pod's origin, for search and groups."""
    if description is None:
        return {}
    return {
        "workload": description.workload or None,
        "pod_group": description.pod_group or None,
        "queue": description.queue or None,
        "priority_class": description.priority_class or None,
        "service_account": description.service_account or None,
        "labels": [f"{name}={value}" for name, value in sorted(description.labels.items())],
    }
