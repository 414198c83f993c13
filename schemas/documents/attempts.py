"""What OpenSearch holds, made from events and read back into them.

A document has two halves: fields to search by, and the event itself, stored whole and not indexed.
"""

from collections.abc import Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import orjson

from schemas.codec.identity_memo import of_nodes
from schemas.codec.records import Rejected, read, rfc3339
from schemas.events import (
    NOT_REASONS,
    AttemptEvent,
    AttemptRepeated,
    AttemptSummarized,
    DevicesJudged,
    FindingReported,
    NodeChecked,
    NodeEvent,
    NodeObserved,
    NodeRegistered,
    PodObserved,
    PodRef,
    Refusal,
    Request,
    Words,
)
from schemas.placements import PodPlacement


class EpisodeRef(NamedTuple):
    """The attempts in a row that one belongs to."""

    first: str
    """The id of the first of them."""
    started_at: datetime
    changes: Sequence[str] = ()
    """Of the first: what became different from the attempt before it, a line each."""


class MinuteContribution(NamedTuple):
    """Where an attempt was read, and what it adds to the counts of its minute."""

    partition: int
    counts: dict[str, Any]


class Digests(NamedTuple):
    verdicts: str
    """``verdict_digest``."""
    detail: str
    """``repeats.detail_digest``."""


Observed: TypeAlias = PodObserved | NodeObserved | NodeRegistered | NodeChecked

OBSERVATION_KINDS: Final[dict[str, type[Observed]]] = {
    "pod-observed": PodObserved,
    "node-observed": NodeObserved,
    "node-registered": NodeRegistered,
    "node-checked": NodeChecked,
}


class RowsOfDevices(Protocol):
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


def reason_codes(refusals: list[Refusal]) -> list[str]:
    """Every code that some refusal names, sorted."""
    codes = {code for refusal in refusals for code in (*refusal.counts, *refusal.uncounted)}
    return sorted(codes | {refusal.bare for refusal in refusals if refusal.bare})


def verdict_digest(summary: AttemptSummarized) -> str:
    """Equal for two attempts with equal verdicts on every node; scores and times do not count.

    Attempts in a row with one digest are one episode. The order of the tables behind the codes does not matter.
    """
    bind = summary.bind and (summary.bind.node, summary.bind.bound, summary.bind.error)
    said = orjson.dumps([summary.error, bind, summary.refused_nodes], option=orjson.OPT_SORT_KEYS)
    return blake2b(said + _digest_of_nodes(summary), digest_size=16).hexdigest()


@of_nodes
def _digest_of_nodes(summary: AttemptSummarized) -> bytes:
    verdicts, verdict = _in_order(summary.verdicts, summary.verdict)
    refusals, refusal = _in_order([_canonical(each) for each in summary.refusals], summary.refusal)
    said = orjson.dumps([summary.nodes, verdicts, refusals])
    rows = np.concatenate([verdict, refusal, summary.refused_by]).astype("<i8")
    return blake2b(said + rows.tobytes(), digest_size=16).digest()


def _canonical(refusal: Refusal) -> str:
    return orjson.dumps(refusal.__dict__, option=orjson.OPT_SORT_KEYS).decode()


def _in_order(table: list[str], codes: npt.NDArray[np.int64]) -> tuple[list[str], npt.NDArray[np.int64]]:
    """The words that occur, sorted, and the codes that point at them there; -1 stays."""
    found = np.flatnonzero(np.bincount(codes + 1, minlength=1)) - 1
    used = sorted({table[code] for code in found.tolist() if code >= 0})
    places = {word: place for place, word in enumerate(used)}
    moved = np.array([places.get(word, -1) for word in table] + [-1], dtype=np.int64)
    return used, moved[codes]


def _about(event: AttemptEvent | RowsOfDevices) -> dict[str, Any]:
    return {
        "@timestamp": rfc3339(event.started_at),
        "attempt_id": event.attempt_id,
        "namespace": event.pod.namespace,
        "pod": event.pod.name,
        "pod_uid": event.pod.uid,
        "scheduler": event.scheduler,
    }


def attempt_document(
    summary: AttemptSummarized,
    text: str,
    episode: EpisodeRef | None = None,
    digests: Digests | None = None,
    counted: MinuteContribution | None = None,
) -> dict[str, Any]:
    """The document of a whole summary; its id is the attempt's id. ``text`` is what free-text search looks at."""
    return _searched(summary, text, episode, digests, counted) | {
        "picked_devices": summary.picked_devices,
        "nodes": summary.nodes,
        "changes": list(episode.changes) if episode else [],
        "summary": summary,
    }


def repeated_document(
    summary: AttemptSummarized,
    text: str,
    episode: EpisodeRef,
    digests: Digests,
    repeated: AttemptRepeated,
    counted: MinuteContribution | None = None,
) -> dict[str, Any]:
    """The document of an attempt that repeats another: without the nodes, which the other one has."""
    return _searched(summary, text, episode, digests, counted) | {"repeats": repeated.repeats, "repeated": repeated}


def _searched(
    summary: AttemptSummarized,
    text: str,
    episode: EpisodeRef | None,
    digests: Digests | None,
    counted: MinuteContribution | None,
) -> dict[str, Any]:
    return _about(summary) | {
        "status": summary.status,
        "complete": summary.complete,
        "ended_at": rfc3339(summary.ended_at) if summary.ended_at else None,
        "chosen": summary.chosen,
        "offered_nodes": summary.offered_nodes,
        "fit_nodes": summary.fit_nodes,
        "judged_devices": summary.judged_devices,
        "reasons": sorted({*reason_codes(summary.refusals), *summary.refused_nodes}),
        "verdict_digest": digests.verdicts if digests else verdict_digest(summary),
        "detail_digest": digests.detail if digests else None,
        "bound": summary.bind.bound if summary.bind else None,
        "episode": episode.first if episode else summary.attempt_id,
        "episode_started_at": rfc3339(episode.started_at if episode else summary.started_at),
        "partition": counted.partition if counted else None,
        "counts": counted.counts if counted else None,
        "text": text,
    }


def summary_of(document: dict[str, Any]) -> AttemptSummarized | Rejected:
    """The summary that a document of the attempts index holds (its ``_source``), unless it is a repetition."""
    return read(AttemptSummarized, document.get("summary"), "document.summary")


def repeated_of(document: dict[str, Any]) -> AttemptRepeated | Rejected | None:
    """The repetition that a document of the attempts index holds; None for one that holds a whole summary."""
    said = document.get("repeated")
    return None if said is None else read(AttemptRepeated, said, "document.repeated")


def devices_document(event: RowsOfDevices, value: bytes, inventory: str | None = None) -> dict[str, Any]:
    """The document of one record of devices judged; its id is the event's id. ``value`` is the record's own JSON,
    without its inventory where that has a document of its own with the id ``inventory``."""
    return _about(event) | {
        "container": event.request.container,
        "nodes": event.nodes,
        "reasons": sorted(set(event.verdicts) - NOT_REASONS),
        "inventory": inventory,
        "record": orjson.Fragment(value),
    }


def inventory_document(value: bytes) -> dict[str, Any]:
    """The document of the devices of a run of nodes. ``value``: what a record says of them, as JSON."""
    return {"record": orjson.Fragment(value)}


def finding_document(event: FindingReported) -> dict[str, Any]:
    """The document of a finding; its id is the event's id."""
    return _about(event) | {
        "finding": event.finding,
        "found_at": rfc3339(event.found_at),
        "node": event.node,
        "device": event.device,
        "numbers": event.numbers,
        "evidence": event.evidence,
    }


def devices_of(document: dict[str, Any], inventory: dict[str, Any] | None = None) -> DevicesJudged | Rejected:
    """The event that a document of the devices index holds (its ``_source``), with that of the inventory it names."""
    said, devices = document.get("record"), (inventory or {}).get("record")
    return read(DevicesJudged, said | devices if said and devices else said, "document.record")


def placement_document(stay: PodPlacement, known: dict[str, Any]) -> dict[str, Any]:
    """The document of a stay; its id is the stay's id. ``known`` is what it was made from."""
    devices = list(dict.fromkeys(each.uuid for each in stay.allocations))
    words = [str(stay.pod), stay.node, stay.scheduler, stay.phase, stay.ended_by, *devices]
    words += dict.fromkeys(each.model for each in stay.allocations)
    return {
        "@timestamp": rfc3339(stay.started_at),
        "ended_at": rfc3339(stay.ended_at) if stay.ended_at else None,
        "ended_by": stay.ended_by or None,
        "attempt_id": stay.attempt_id or None,
        "namespace": stay.pod.namespace,
        "pod": stay.pod.name,
        "pod_uid": stay.pod.uid,
        "scheduler": stay.scheduler,
        "node": stay.node,
        "phase": stay.phase,
        "devices": devices,
        "allocations": stay.allocations,
        "known": known,
        "text": " ".join(word for word in words if word),
    }


def placement_of(document_id: str, document: dict[str, Any]) -> PodPlacement | Rejected:
    """The stay that a document of the occupancy index says (its ``_id`` and ``_source``)."""
    names = ("ended_at", "ended_by", "scheduler", "attempt_id", "node", "phase", "allocations")
    said = {name: document[name] for name in names if document.get(name) is not None}
    pod = {"namespace": document.get("namespace"), "name": document.get("pod"), "uid": document.get("pod_uid") or ""}
    return read(
        PodPlacement, said | {"id": document_id, "pod": pod, "started_at": document.get("@timestamp")}, "document"
    )


def observation_kind(event: Observed) -> str:
    return next(name for name, kind in OBSERVATION_KINDS.items() if type(event) is kind)


def observation_document(event: Observed, digest: str) -> dict[str, Any]:
    """The document of an observation; its id is the event's id. ``digest`` is equal for two that say the same."""
    about = _about_node(event) if isinstance(event, NodeEvent) else _about_pod(event)
    text = " ".join(word for word in (event.key, *_words(event)) if word)
    head = {"@timestamp": rfc3339(event.observed_at), "kind": observation_kind(event), "node": event.node}
    return head | about | {"digest": digest, "text": text, "event": event}


def _about_pod(event: PodObserved) -> dict[str, Any]:
    pod = event.pod
    return {"namespace": pod.namespace, "pod": pod.name, "pod_uid": pod.uid, "phase": event.phase}


def _about_node(event: NodeEvent) -> dict[str, Any]:
    devices = event.uuid if isinstance(event, NodeRegistered) else []
    problems = [each.code for each in event.problems] if isinstance(event, NodeChecked) else []
    return {"scheduler": event.scheduler, "devices": devices, "problems": problems}


def _words(event: Observed) -> list[str]:
    """What free-text search looks at."""
    if isinstance(event, NodeRegistered):
        return [event.cause, *sorted(set(event.model)), *event.uuid]
    if isinstance(event, NodeChecked):
        return [word for each in event.problems for word in (each.code, each.vendor, each.message)]
    conditions = [word for each in event.conditions for word in (each.type, each.status, each.reason, each.message)]
    if isinstance(event, PodObserved):
        return [event.node, event.phase, "deleted" if event.deleted else "", *conditions]
    return conditions


def observation_of(document: dict[str, Any]) -> Observed | Rejected:
    """The event that a document of the observations index holds (its ``_source``)."""
    kind = OBSERVATION_KINDS.get(str(document.get("kind")))
    if kind is None:
        return Rejected(f"no kind of observation is called {document.get('kind')!r:.100}", "document.kind")
    return read(kind, document.get("event"), "document.event")
