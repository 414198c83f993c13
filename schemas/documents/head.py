"""The fields that identify an attempt in every document about one."""

from typing import Any

from schemas.codec.records import rfc3339
from schemas.events import AttemptEvent


def attempt_fields(event: AttemptEvent) -> dict[str, Any]:
    """``@timestamp`` is when the attempt started."""
    return {
        "@timestamp": rfc3339(event.started_at),
        "cluster": event.cluster,
        "attempt_id": event.attempt_id,
        "namespace": event.pod.namespace,
        "pod": event.pod.name,
        "pod_uid": event.pod.uid,
        "scheduler": event.scheduler,
    }
