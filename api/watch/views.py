"""The objects of a watch: a pod's schedulerlog, or an item as the list without watch has it; and their lines. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal, Protocol

import orjson

from api.http.aggregated.discovery import GROUP, VERSION
from api.http.aggregated.translation import to_status
from api.http.cluster import Cluster
from api.http.errors import ApiError, describe_problem
from api.index.attempts.attempt_queries import to_search_item
from api.index.waiting.waiting_pods import to_waiting_pod
from api.memory.latest_attempts import CachedAttempt
from api.memory.wait_log import ObservedState, State
from engine.summaries.answer import encode_schedulerlog
from engine.summaries.named_pods import hide_other_pods, hide_pods_in_attempt
from schemas.answers.attempts import AttemptFound, SchedulerLog
from schemas.answers.base import WatchMetadata
from schemas.answers.waiting import PodWaiting
from schemas.codec.records import encode_value, format_rfc3339
from schemas.documents.attempts import list_reasons
from schemas.documents.pod_states import derive_state_after_attempt
from schemas.events import AttemptRepeated, AttemptSummarized
from schemas.json_types import Json

EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]
API_VERSION: Final = f"{GROUP}/{VERSION}"
INITIAL_EVENTS_END: Final = {"k8s.io/initial-events-end": "true"}
"""Annotation of the bookmark after the last initial event, as in Kubernetes."""


def encode_event(kind: EventType, body: bytes, version: str, *, is_sse: bool) -> bytes:
    """Encode one event; ``body`` is the JSON of its object, ``version`` its resourceVersion."""
    line = b'{"type":"' + kind.encode() + b'","object":' + body + b"}\n"
    if not is_sse:
        return line
    # Errors have no version: a client can't resume from them.
    identifier = b"id: " + version.encode() + b"\n" if version else b""
    return identifier + b"data: " + line + b"\n"


def encode_bookmark(kind: str, version: str, *, is_sse: bool, ends_initial: bool = False) -> bytes:
    """Encode an event that only has the watch's position."""
    metadata = {"resourceVersion": version, **({"annotations": INITIAL_EVENTS_END} if ends_initial else {})}
    body = orjson.dumps({"kind": kind, "apiVersion": API_VERSION, "metadata": metadata})
    return encode_event("BOOKMARK", body, version, is_sse=is_sse)


def encode_error(error: ApiError, *, is_sse: bool) -> bytes:
    """Encode the last event of a watch that can't continue."""
    body = describe_problem(error.status, error.error, error.next_step, error.code).model_dump_json().encode()
    return encode_event("ERROR", to_status(error.status, body), "", is_sse=is_sse)


ViewName = Literal["pod", "attempts", "pending"]
KINDS: Final[Mapping[ViewName, str]] = {
    "pod": SchedulerLog.__name__,
    "attempts": AttemptFound.__name__,
    "pending": PodWaiting.__name__,
}


@dataclass(frozen=True)
class Decoded:
    """Attempt whose records are decoded at most once.

    is_for_all: its texts may name pods of other namespaces, because the caller may list all pods.
    """

    attempt: CachedAttempt
    is_for_all: bool

    @cached_property
    def summary(self) -> AttemptSummarized:
        """Summary of the attempt; not for one that repeats an attempt which memory lacks."""
        summary = self.attempt.read_summary()
        return summary if self.is_for_all else hide_pods_in_attempt(summary)

    @property
    def event(self) -> AttemptSummarized | AttemptRepeated:
        """Summary, or for a retry whose original memory lacks, only the record of the retry."""
        if self.attempt.retry and not self.attempt.values:
            retry = self.attempt.retry
            text = retry.text if self.is_for_all else hide_other_pods(retry.text, retry.pod.namespace)
            return retry.model_copy(update={"text": text})
        return self.summary

    @cached_property
    def fields(self) -> dict[str, Any]:
        """Parameters that can narrow a watch, to the attempt's values."""
        event, description = self.event, self.event.description
        return {
            "pod": event.pod.name,
            "status": event.status,
            "scheduler": event.scheduler,
            "workload": description.workload if description else "",
            "queue": description.queue if description else "",
            "obstacle": event.wait.code if event.wait else "",
            "reason": event.reasons if isinstance(event, AttemptRepeated) else list_reasons(event),
        }


@dataclass(frozen=True)
class DecodedState:
    """Observed state of a pod that waits without an attempt, decoded at most once."""

    state: ObservedState

    @cached_property
    def source(self) -> Json:
        """Fields of its document."""
        return self.state.read_fields()

    @cached_property
    def fields(self) -> dict[str, Any]:
        """Parameters that can narrow a watch, to the pod's values."""
        names = ("workload", "queue", "obstacle")
        return {name: self.source.get(name) or "" for name in names} | {"reason": self.source.get("reasons") or []}


def decode_state(state: State, *, is_for_all: bool) -> Decoded | DecodedState:
    """Prepare the object of an event. ``is_for_all``: see ``Decoded``."""
    return DecodedState(state) if isinstance(state, ObservedState) else Decoded(state, is_for_all)


def matches(fields: Mapping[str, Any], filters: Mapping[str, str]) -> bool:
    """Tell whether an attempt with these fields passes all filters."""
    return all(
        value in fields[name] if isinstance(fields[name], list) else value == fields[name]
        for name, value in filters.items()
    )


def encode_object(view: ViewName, cluster: Cluster, decoded: Decoded | DecodedState, version: str) -> bytes:
    """Encode the object of an event as JSON."""
    if isinstance(decoded, DecodedState):
        source = decoded.source
        names = source["namespace"], source["pod"], source.get("pod_uid") or ""
        body = _answer_observed(cluster, decoded)
    else:
        pod = decoded.event.pod
        names = pod.namespace, pod.name, pod.uid
        body = _answer(view, cluster, decoded)
    namespace, name, uid = names
    metadata = WatchMetadata(namespace=namespace, name=name, uid=uid, resourceVersion=version)
    head = {"kind": KINDS[view], "apiVersion": API_VERSION, "metadata": metadata}
    return encode_value(head)[:-1] + b"," + body[1:]


def _answer_observed(cluster: Cluster, decoded: DecodedState) -> bytes:
    if decoded.state.waits:
        return to_waiting_pod(cluster, {"_source": decoded.source}).model_dump_json().encode()
    return encode_value(_name_pod(cluster, decoded.source["namespace"], decoded.source["pod"], ""))


def _answer(view: ViewName, cluster: Cluster, decoded: Decoded) -> bytes:
    if view == "pod":
        return encode_schedulerlog(decoded.summary)
    event = decoded.event
    if view == "pending" and event.status == "succeeded":
        # It waits no longer: the fields of waiting pods do not apply to it.
        return encode_value(_name_pod(cluster, event.pod.namespace, event.pod.name, event.attempt_id))
    if view == "pending":
        state = derive_state_after_attempt(event)
        return to_waiting_pod(cluster, {"_source": state.fields}).model_dump_json().encode()
    item = to_search_item(cluster, event) if isinstance(event, AttemptSummarized) else _to_item_of_retry(cluster, event)
    return item.model_dump_json().encode()


def _name_pod(cluster: Cluster, namespace: str, name: str, attempt_id: str) -> dict[str, str]:
    paths = {
        "attempt": cluster.link_attempt(attempt_id) if attempt_id else "",
        # A workload without pods has no schedulerlog.
        "schedulerlog": "" if "/" in name else cluster.link_schedulerlog(namespace, name),
    }
    return {"namespace": namespace, "name": name, **paths}


def _to_item_of_retry(cluster: Cluster, retry: AttemptRepeated) -> AttemptFound:
    """Build the item of a search for a retry whose original, with the nodes, memory lacks."""
    return AttemptFound(
        attempt_id=retry.attempt_id,
        namespace=retry.pod.namespace,
        name=retry.pod.name,
        scheduler=retry.scheduler,
        started_at=format_rfc3339(retry.started_at),
        ended_at=format_rfc3339(retry.ended_at) if retry.ended_at else None,
        status=retry.status,
        complete=True,
        chosen=None,
        offered_nodes=retry.offered_nodes,
        fit_nodes=retry.fit_nodes,
        obstacle=retry.wait.code if retry.wait else "",
        reasons=retry.reasons,
        summary=retry.text,
        workload=retry.description.workload if retry.description else "",
        attempt=cluster.link_attempt(retry.attempt_id),
        schedulerlog=cluster.link_schedulerlog(retry.pod.namespace, retry.pod.name),
    )


class ChangeOfAttempt(Protocol):
    """Parts of a change of an attempt that decide the type of its event."""

    @property
    def attempt(self) -> CachedAttempt: ...
    @property
    def is_latest(self) -> bool: ...
    @property
    def before_id(self) -> str: ...


class ChangeOfWait(Protocol):
    """Parts of a change of a waiting pod that decide the type of its event."""

    @property
    def state(self) -> State: ...
    @property
    def did_wait(self) -> bool | None: ...


def choose_event_type(view: ViewName, change: ChangeOfAttempt, *, is_wanted: bool) -> EventType | None:
    """Choose the type of the event for a change; None if the watch has no event for it.

    ``is_wanted``: the attempt passes the filters of the watch.
    """
    if view == "pod":
        return "MODIFIED" if change.before_id else "ADDED"
    is_known = change.before_id == change.attempt.attempt_id or not change.is_latest
    if is_wanted:
        return "MODIFIED" if is_known else "ADDED"
    return "DELETED" if is_known else None


def choose_pending_type(change: ChangeOfWait, *, is_wanted: bool) -> EventType | None:
    """Choose the type of the event of a watch of pending pods; None if the watch has no event for the change.

    A pod of which memory has no earlier state may have been sent before, so the watch deletes it.
    """
    if is_wanted and change.state.waits:
        return "MODIFIED" if change.did_wait else "ADDED"
    return None if change.did_wait is False else "DELETED"
