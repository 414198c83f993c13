"""Attempts of one pod in its scheduler's log, next to the objects of its cluster, and their form in a saved case.

A saved case has the attempts as events and not the log: its lines name pods and nodes that no object names, and whose
names could not be replaced.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Final

import orjson

from engine.diagnosis.logged_facts import UnfinishedAttempt
from engine.snapshot.case_objects import CaseObjects
from ingest.cases.log_pods import LogPods, PodInLog
from runtime.kubernetes.object_fields import get_object, get_text, iterate_objects
from schemas.codec.records import Rejected, decode_value, encode_value, find_event_type, format_rfc3339
from schemas.events import AttemptEvent, Event, NodeStateChanged, Request
from schemas.json_types import Json

SAVED_ATTEMPTS: Final = "SavedAttempts.schedulerlog.io"
"""Kind of the object that has the attempts of a pod from its scheduler's log."""
_SAME_TRY: Final = timedelta(minutes=2)


@dataclass(slots=True)
class LoggedAttempts:
    """Attempts of one pod (``namespace/name``) as a log reports them."""

    pod: str
    events: list[Event] = field(default_factory=list)
    """Events about its attempts, and the node states before them."""
    unfinished: list[UnfinishedAttempt] = field(default_factory=list)

    def take(self, events: Iterable[Event]) -> None:
        """Take the events that are about the pod."""
        for event in events:
            is_state = isinstance(event, NodeStateChanged)
            if is_state or (isinstance(event, AttemptEvent) and str(event.pod) == self.pod):
                self.events.append(event)

    def note(self, attempt: UnfinishedAttempt) -> None:
        """Note an attempt without a verdict."""
        if attempt.pod == self.pod:
            self.unfinished.append(attempt)

    def add_to(self, pods: LogPods) -> datetime | None:
        """Add the attempts to those of events; returns the start of the latest, None without one."""
        logged = self._collect()
        if logged is None:
            return None
        started = logged.find_latest()[0].started_at
        reported = pods.pods.get(self.pod)
        # Events name few nodes of a try; those of a later one are newer than the log.
        if reported is None or reported.find_latest()[0].started_at - started < _SAME_TRY:
            if reported:
                logged.join(reported)
            pods.pods[self.pod] = logged
        return started

    def _collect(self) -> PodInLog | None:
        pods = LogPods()
        pods.add(self.events)
        for attempt in self.unfinished:
            pods.note(attempt)
        return pods.pods.get(self.pod)

    def to_object(self) -> Json:
        """Convert to the object of a saved case."""
        namespace, _, name = self.pod.partition("/")
        kind, _, group = SAVED_ATTEMPTS.partition(".")
        return {
            "apiVersion": f"{group}/v1",
            "kind": kind,
            "metadata": {"namespace": namespace, "name": name},
            "events": [{"event": event.TYPE, "value": orjson.loads(encode_value(event))} for event in self.events],
            "unfinished": [_write_unfinished(attempt) for attempt in self.unfinished],
        }


def _write_unfinished(attempt: UnfinishedAttempt) -> Json:
    requests = [request.model_dump(mode="json") for request in attempt.requests]
    return {**asdict(attempt), "started_at": format_rfc3339(attempt.started_at), "requests": requests}


def read_saved_attempts(objects: CaseObjects) -> list[LoggedAttempts]:
    """Read the attempts of a saved case; events that a later release wrote otherwise are left out."""
    saved = []
    for entry in objects.select(SAVED_ATTEMPTS):
        logged = LoggedAttempts(f"{get_text(entry, 'metadata', 'namespace')}/{get_text(entry, 'metadata', 'name')}")
        for record in iterate_objects(entry, "events"):
            kind = find_event_type([("ce_type", get_text(record, "event").encode())])
            value = orjson.dumps(get_object(record, "value"))
            event = kind if isinstance(kind, Rejected) else decode_value(kind, value)
            if not isinstance(event, Rejected):
                logged.events.append(event)
        for fields in iterate_objects(entry, "unfinished"):
            times = {"started_at": datetime.fromisoformat(get_text(fields, "started_at"))}
            requests = [Request.model_validate(request) for request in iterate_objects(fields, "requests")]
            logged.unfinished.append(UnfinishedAttempt(**{**fields, **times, "requests": requests}))
        saved.append(logged)
    return saved
