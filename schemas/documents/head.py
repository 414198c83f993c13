"""The fields that identify an attempt in every document about one."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol

from schemas.codec.records import rfc3339
from schemas.events import AttemptEvent, PodRef, Request, Words


class JudgedDevices(Protocol):
    """A record of devices judged, as it came or counted."""

    @property
    def attempt_id(self) -> str: ...
    @property
    def pod(self) -> PodRef: ...
    @property
    def scheduler(self) -> str: ...
    @property
    def started_at(self) -> datetime: ...
    @property
    def request(self) -> Request: ...
    @property
    def nodes(self) -> Words: ...
    @property
    def verdicts(self) -> Sequence[str]: ...


def attempt_fields(event: AttemptEvent | JudgedDevices) -> dict[str, Any]:
    """``@timestamp`` is when the attempt started."""
    return {
        "@timestamp": rfc3339(event.started_at),
        "attempt_id": event.attempt_id,
        "namespace": event.pod.namespace,
        "pod": event.pod.name,
        "pod_uid": event.pod.uid,
        "scheduler": event.scheduler,
    }
