"""What a decision says to the world: a Decision as the contract's events.

An attempt's events in order: `DevicesJudged` records, `NodesJudged` records, `AttemptConcluded`. Rows stay numpy
columns and names stay the JSON that was made when the node registered, so that 40,000 verdicts cost a few milliseconds.
`schemas.codec.records.encode` writes them; every record of a cluster of ordinary names stays below 64 KiB.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any, Final, TypeVar

import numpy as np
import orjson
from numpy.typing import NDArray

from hami.reason_codes import ReasonCode
from hami.requests import UNSET_PERCENT
from scheduler.devices.node_entry import DeviceKind
from scheduler.judge import verdict_codes
from scheduler.judge.decision import ContainerJudgement, Decision, Failed
from scheduler.judge.request import ContainerRequest
from schemas import events
from schemas.codec.chunking import refusal_runs, runs
from schemas.codec.code_tables import cut_refusals
from schemas.codec.records import MAX_VALUE_BYTES, encode_value
from schemas.events import AttemptConcluded, BindConcluded, DevicesJudged, NodesJudged, PodRef, Request
from schemas.ids import attempt_id

Ints = NDArray[np.int64]
T = TypeVar("T")

_NUMBERS: Final = {
    "numa": "numa",
    "memory_used_mib": "used_memory_mib",
    "cores_used_percent": "used_cores",
    "slots_used": "used_slots",
}
"""Columns of `DevicesJudged` and where a judgement keeps them."""

_SLACK_BYTES: Final = 128
"""For brackets, and a part number that takes more digits than in the empty record."""

_FLOAT_BYTES: Final = 17
"""A float32 in its shortest text, and a comma."""

_ZERO_BYTES: Final = 4

_NAME: Final = attrgetter("name_json")
_UUIDS: Final = attrgetter("uuids_json")

# Models that are made without validation below name their empty lists and mappings too: pydantic would look each
# default factory's signature up, every time, which takes longer than everything else about a conclusion.

_INT64_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class AttemptRef:
    """One try of one pod: what every event about it names."""

    id: str
    pod: PodRef
    scheduler: str
    started_at: datetime

    @classmethod
    def of(cls, scheduler: str, pod: PodRef, started_at: datetime) -> "AttemptRef":
        return cls(attempt_id(scheduler, pod.uid, started_at), pod, scheduler, started_at)

    @property
    def common_fields(self) -> dict[str, Any]:
        return {"attempt_id": self.id, "pod": self.pod, "scheduler": self.scheduler, "started_at": self.started_at}


def events_of(
    attempt: AttemptRef, decision: Decision, ended_at: datetime, error: str = ""
) -> Iterator[DevicesJudged | NodesJudged | AttemptConcluded]:
    """Everything that was decided about one pod.

    `error`: why the decision could not be written to the pod. Then no node is chosen; the verdicts stand.
    """
    requests = [request_of(container) for container in decision.containers]
    about = attempt.common_fields
    devices = nodes = 0
    for record in _devices(about, decision, requests):
        devices += 1
        yield record
    for judged in _nodes(about, decision, is_placed=not error):
        nodes += 1
        yield judged
    yield AttemptConcluded.model_construct(
        **about,
        ended_at=ended_at,
        requests=requests,
        node_policy=decision.node_policy,
        device_policy=decision.device_policy,
        offered_nodes=len(decision.node_names),
        judged_nodes=len(decision.node_names),
        judged_devices=sum(len(judgement.verdict) for judgement in decision.judgements),
        device_records=devices,
        node_records=nodes,
        chosen=None if error else decision.chosen,
        error=error,
        refused_nodes={},
    )


def failure_of(attempt: AttemptRef, failed: Failed, offered_nodes: int, ended_at: datetime) -> AttemptConcluded:
    """The conclusion of an attempt that ended before any node was judged."""
    return AttemptConcluded.model_construct(
        **attempt.common_fields,
        ended_at=ended_at,
        requests=[request_of(container) for container in failed.containers],
        offered_nodes=offered_nodes,
        judged_nodes=0,
        judged_devices=0,
        device_records=0,
        node_records=0,
        error=failed.error,
        refused_nodes={},
    )


def bind_of(attempt: AttemptRef, node: str, error: str, bind_started_at: datetime, ended_at: datetime) -> BindConcluded:
    return BindConcluded(
        **attempt.common_fields,
        node=node,
        bound=not error,
        error=error,
        bind_started_at=bind_started_at,
        ended_at=ended_at,
    )


def request_of(asked: ContainerRequest) -> Request:
    if not asked.asks:
        return Request(container=asked.name, init=asked.is_init)
    takes_share = asked.memory_mib <= 0 and asked.memory_percentage < UNSET_PERCENT
    return Request(
        container=asked.name,
        init=asked.is_init,
        vendor=asked.vendor,
        count=min(asked.count, _INT64_MAX),
        memory_mib=None if takes_share else _count(asked.memory_mib),
        memory_percent=_count(asked.memory_percentage) if takes_share else None,
        cores_percent=_count(asked.cores),
    )


def _count(number: int) -> int:
    return min(max(number, 0), _INT64_MAX)


def _devices(about: dict[str, Any], decision: Decision, requests: Sequence[Request]) -> Iterator[DevicesJudged]:
    part = 0
    for judged in decision.judgements:
        columns = _DeviceColumns(decision, judged)
        once = about | {
            "container": judged.container,
            "request": requests[judged.container],
            "verdicts": columns.verdicts,
            "kinds": columns.kinds,
        }
        room = _room(dict.fromkeys(DevicesJudged.model_fields) | once)
        for run in runs(columns.sizes, room):
            yield DevicesJudged.model_construct(**once, part=part, **columns.cut(run))
            part += 1


def _room(once: dict[str, Any]) -> int:
    """Bytes that a record leaves for its columns, given what it says once; runs of one node may take more."""
    return max(MAX_VALUE_BYTES - len(encode_value(once)) - _SLACK_BYTES, 1)


class _DeviceColumns:
    """One judgement, ready to be cut into runs of nodes."""

    def __init__(self, decision: Decision, judged: ContainerJudgement) -> None:
        self._judged = judged
        judged_only = map(decision.fragments.__getitem__, judged.nodes.tolist())
        self._fragments = list(filter(None, judged_only))  # only registered nodes are judged
        self.verdicts, self._verdict = _table(verdict_codes.VERDICTS, judged.verdict)
        kinds, self._kind = _table(decision.kinds, judged.kind)
        self.kinds = [_kind(kind) for kind in kinds]
        self._numbers = {name: getattr(judged, source) for name, source in _NUMBERS.items()}
        self._names = list(map(_NAME, self._fragments))
        self._uuids = list(map(_UUIDS, self._fragments))
        for place in np.flatnonzero(~judged.whole).tolist():
            self._uuids[place] = self._looked_at(place)
        self.sizes = self._sizes()

    def _looked_at(self, place: int) -> bytes:
        start, stop = self._judged.offsets[place : place + 2].tolist()
        uuids = self._fragments[place].uuids
        return b",".join([_json(uuids[device]) for device in self._judged.device[start:stop].tolist()])

    def _sizes(self) -> Ints:
        """Bytes per node, at most: texts as they are, numbers as wide as the widest of their column."""
        rows = np.diff(self._judged.offsets)
        row_bytes = sum(map(_width, (self._verdict, self._kind, *self._numbers.values())))
        node_bytes = _width(self._judged.nodes) + _width(self._judged.devices) + _width(rows)
        texts = np.fromiter(map(len, self._uuids), np.int64) + np.fromiter(map(len, self._names), np.int64)
        sizes: Ints = texts + 2 + node_bytes + rows * row_bytes
        return sizes

    def cut(self, run: slice) -> dict[str, Any]:
        """The columns of the nodes in `run`."""
        offsets = self._judged.offsets
        rows = slice(int(offsets[run.start]), int(offsets[run.stop]))
        return {
            "nodes": _array(self._names[run]),
            "node_index": self._judged.nodes[run],
            "devices": self._judged.devices[run],
            "rows": np.diff(offsets[run.start : run.stop + 1]),
            "verdict": self._verdict[rows],
            "uuid": _array([uuids for uuids in self._uuids[run] if uuids]),
            "kind": self._kind[rows],
        } | {name: column[rows] for name, column in self._numbers.items()}


def _json(text: str) -> bytes:
    encoded: bytes = orjson.dumps(text)
    return encoded


def _array(parts: Sequence[bytes]) -> orjson.Fragment:
    return orjson.Fragment(b"[" + b",".join(parts) + b"]")


def _width(column: NDArray[Any]) -> int:
    """Characters of the longest number in the column, and a comma."""
    if not column.size:
        return 0
    return max(len(str(column.min())), len(str(column.max()))) + 1


def _kind(kind: DeviceKind) -> events.DeviceKind:
    numbers = (min(max(number, -_INT64_MAX), _INT64_MAX) for number in (kind.memory_mib, kind.cores, kind.slots))
    memory, cores, slots = numbers
    return events.DeviceKind.model_construct(model=kind.model, memory_mib=memory, cores_percent=cores, slots=slots)


def _table(entries: Sequence[T], column: NDArray[Any]) -> tuple[list[T], Ints]:
    """The entries that occur, and the column as indices into them."""
    used = np.flatnonzero(np.bincount(column, minlength=len(entries)))
    places = np.zeros(len(entries), np.int64)
    places[used] = np.arange(len(used))
    return [entries[code] for code in used.tolist()], places[column]


def _nodes(about: dict[str, Any], decision: Decision, *, is_placed: bool) -> Iterator[NodesJudged]:
    columns = _NodeColumns(decision, is_placed=is_placed)
    once = about | {"containers": [container.name for container in decision.containers], "verdicts": columns.verdicts}
    room = _room(dict.fromkeys(NodesJudged.model_fields) | once)
    for part, run in enumerate(columns.runs(room)):
        yield NodesJudged.model_construct(**once, part=part, **columns.cut(run))


class _NodeColumns:
    """What became of every offered node, ready to be cut into runs."""

    def __init__(self, decision: Decision, *, is_placed: bool) -> None:
        self._decision = decision
        verdict = decision.node_verdict
        if not is_placed:
            verdict = np.where(verdict == verdict_codes.NODE_PICKED, verdict_codes.NODE_FITS, verdict)
        self.verdicts, self._verdict = _table(verdict_codes.NODE_VERDICTS, verdict)
        if None in decision.fragments:
            self._names = [
                fragment.name_json if fragment else _json(name)
                for name, fragment in zip(decision.node_names, decision.fragments, strict=True)
            ]
        else:
            self._names = list(map(_NAME, decision.fragments))
        # HAMi divides by totals of zero; the contract knows finite scores alone.
        self._score = np.nan_to_num(decision.score, nan=0.0)
        self._refusals, self._refusal = _refusals(decision)

    def runs(self, room: int) -> Iterator[slice]:
        """Slices of nodes that take at most `room` bytes, each refusal once a record."""
        all_codes = (np.arange(len(self._names)), self._verdict, self._refusal, self._decision.refused_by)
        numbers = sum(map(_width, all_codes)) + np.where(self._score == 0, _ZERO_BYTES, _FLOAT_BYTES)
        texts = np.fromiter(map(len, self._names), np.int64) + 1
        return refusal_runs(texts + numbers, self._refusals, self._refusal, room)

    def cut(self, run: slice) -> dict[str, Any]:
        refusals, refusal = cut_refusals(self._refusals, self._refusal[run])
        return {
            "nodes": _array(self._names[run]),
            "node_index": np.arange(run.start, run.stop),
            "verdict": self._verdict[run],
            "score": self._score[run],
            "refused_by": self._decision.refused_by[run],
            "refusals": refusals,
            "refusal": refusal,
        }


def _refusals(decision: Decision) -> tuple[list[events.Refusal], Ints]:
    """The distinct refusals, and per node the index into them; a node whose registration is broken has its own."""
    table = [
        events.Refusal.model_construct(
            counts=dict(refusal.counts), devices=refusal.devices, bare=refusal.bare, cause="", uncounted=[]
        )
        for refusal in decision.refusals
    ]
    if not decision.unregistered_causes:
        return table, decision.refusal
    column = decision.refusal.copy()
    causes: dict[str, int] = {}
    for node, name in enumerate(decision.node_names):
        cause = decision.unregistered_causes.get(name)
        if cause:
            column[node] = causes.setdefault(cause, len(table) + len(causes))
    table += [events.Refusal(bare=ReasonCode.NODE_UNREGISTERED.value, cause=cause) for cause in causes]
    return table, column
