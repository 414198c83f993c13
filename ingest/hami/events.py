"""An attempt as schedulerlog's events: devices and nodes that were judged, and how it ended."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

import numpy as np

from ingest.hami.attempt import UNKNOWN, Bind, DeviceLine, HamiAttempt
from ingest.hami.devices import RegisteredDevices
from ingest.hami.gaps import gaps_of
from ingest.hami.tables import nodes_of, numbers_of, refusal_of, refusal_table, requests_of, rows_of, whole_rows
from schemas.codec.chunking import refusal_runs, runs
from schemas.codec.code_tables import cut_refusals
from schemas.events import (
    FITS,
    PICKED,
    REFUSED,
    UNREGISTERED,
    AttemptConcluded,
    AttemptEvent,
    BindConcluded,
    DevicesJudged,
    NodesJudged,
    PodRef,
    Provenance,
    Request,
)
from schemas.ids import attempt_id

SOURCE: Final = "hami-log"

_ROW_BYTES: Final = 40
"""Of a device's numbers and codes in JSON, at most."""
_NODE_BYTES: Final = 128
_DEVICES_WITHOUT_NODE: Final = 100
"""At most in one piece, as there may be more than fit into a record."""
# Below 64 KiB by a margin for what each record holds once and for texts that JSON escapes.
_RECORD_BYTES: Final = 48 * 1024


class _Piece(NamedTuple):
    """Devices that stay together in a record: those of one node, or some of those whose node is unknown."""

    node: str
    rows: list[tuple[str, DeviceLine]]


def shared_fields(attempt: HamiAttempt, scheduler: str) -> dict[str, Any]:
    """The fields that all events of the attempt share. Without a UID in the log, the pod's name goes into the id."""
    return {
        "attempt_id": attempt_id(scheduler, attempt.uid or attempt.pod, attempt.started_at),
        "pod": PodRef(namespace=attempt.namespace, name=attempt.name, uid=attempt.uid),
        "scheduler": scheduler,
        "started_at": attempt.started_at,
    }


def bind_concluded(shared: dict[str, Any], bind: Bind, ended_at: datetime) -> BindConcluded:
    ended_at = bind.ended_at or ended_at
    # As above: a clock that was set must not make a bind end before it began.
    started = min(bind.started_at, ended_at)
    outcome = {"node": bind.node, "bound": not bind.error, "error": bind.error}
    return BindConcluded(**shared, **outcome, bind_started_at=started, ended_at=ended_at)


def events_of(
    attempt: HamiAttempt, registered: RegisteredDevices, scheduler: str
) -> tuple[list[AttemptEvent], Provenance]:
    """All events of the attempt; without a conclusion where its end was not read."""
    builder = _EventBuilder(attempt, registered, shared_fields(attempt, scheduler))
    return builder.events(), builder.provenance


class _EventBuilder:
    def __init__(self, attempt: HamiAttempt, registered: RegisteredDevices, shared: dict[str, Any]) -> None:
        self._attempt, self._registered, self._shared = attempt, registered, shared
        self._lines = nodes_of(attempt)
        # HAMi judges nodes in goroutines and so prints them in any order; sorted, two readings give the same records.
        self._names = sorted(self._lines)
        self._index = {name: index for index, name in enumerate(self._names)}
        self._requests = requests_of(attempt)
        self._rows = rows_of(attempt)
        self._whole = whole_rows(self._lines, self._rows)
        gaps = gaps_of(attempt, self._requests, self._lines, self._rows, self._whole)
        self.provenance = Provenance(source=SOURCE, levels=sorted(attempt.levels), not_reported=gaps)

    def events(self) -> list[AttemptEvent]:
        devices = list(self._devices())
        nodes = list(self._nodes())
        events: list[AttemptEvent] = [*devices, *nodes]
        if self._attempt.ended_at:
            events.append(self._conclusion(self._attempt.ended_at, devices, len(nodes)))
        return events

    def _conclusion(self, ended_at: datetime, devices: Sequence[DevicesJudged], nodes: int) -> AttemptConcluded:
        attempt = self._attempt
        return AttemptConcluded(
            **self._shared,
            # klog's times may go back (a clock that was set).
            ended_at=max(ended_at, attempt.started_at),
            requests=self._requests,
            node_policy=attempt.node_policy,
            # A line can be missing, but a node that was judged was offered.
            offered_nodes=max(attempt.offered or 0, len(self._names)),
            judged_nodes=len(self._names),
            # Of the rows that were read, so that a fold that has them all finds nothing missing.
            judged_devices=sum(len(record.uuid) for record in devices),
            device_records=len(devices),
            node_records=nodes,
            chosen=attempt.chosen or None if not attempt.error else None,
            error=attempt.error,
            provenance=self.provenance,
        )

    def _nodes(self) -> Iterator[NodesJudged]:
        if not self._names:
            return
        verdicts = [PICKED, FITS, REFUSED, UNREGISTERED]
        lines = [self._lines[name] for name in self._names]
        chosen = self._attempt.chosen if not self._attempt.error else ""
        words = [
            PICKED if line.verdict == FITS and name == chosen else line.verdict
            for name, line in zip(self._names, lines, strict=True)
        ]
        refusals, refusal = refusal_table(lines)
        sizes = np.array([_json_bytes(name) + _NODE_BYTES for name in self._names], dtype=np.int64)
        # One record per part: an attempt on thousands of nodes exceeds the size that Kafka takes.
        for part, run in enumerate(refusal_runs(sizes, refusals, refusal, _RECORD_BYTES)):
            table, column = cut_refusals(refusals, refusal[run])
            yield NodesJudged(
                **self._shared,
                part=part,
                containers=[request.container for request in self._requests],
                verdicts=verdicts,
                refusals=table,
                nodes=self._names[run],
                node_index=np.arange(run.start, run.stop),
                verdict=np.array([verdicts.index(word) for word in words[run]], dtype=np.int64),
                score=np.array([line.score for line in lines[run]], dtype=np.float32),
                refused_by=np.array([self._container(line.container) for line in lines[run]], dtype=np.int64),
                refusal=column,
            )

    def _container(self, container: int) -> int:
        """The index of a container that the requests name, else ``UNKNOWN``."""
        return container if 0 <= container < len(self._requests) else UNKNOWN

    def _devices(self) -> Iterator[DevicesJudged]:
        """Records of nodes with all their devices, and ``partial`` records: consumers count only the former."""
        part = 0
        for container in sorted({container for container, _ in self._rows}):
            for is_whole in (True, False):
                keys = sorted(
                    key for key in self._rows if key[0] == container and (key in self._whole) == is_whole
                )  # fmt: skip
                for record in self._records(part, container, keys, is_whole=is_whole):
                    part += 1
                    yield record

    def _records(
        self, part: int, container: int, keys: Sequence[tuple[int, str]], *, is_whole: bool
    ) -> Iterator[DevicesJudged]:
        pieces = [piece for key in keys for piece in self._pieces(key)]
        sizes = [sum(_json_bytes(uuid) + _ROW_BYTES for uuid, _ in piece.rows) + _NODE_BYTES for piece in pieces]
        for offset, run in enumerate(runs(np.array(sizes, dtype=np.int64), _RECORD_BYTES)):
            yield self._record(part + offset, container, pieces[run], is_whole=is_whole)

    def _pieces(self, key: tuple[int, str]) -> Iterator["_Piece"]:
        """One piece per node. Devices whose node is unknown are divided: there may be more than fit into a record."""
        rows = list(self._rows[key].items())
        size = len(rows) if key[1] else _DEVICES_WITHOUT_NODE
        for start in range(0, len(rows), size):
            yield _Piece(key[1], rows[start : start + size])

    def _record(self, part: int, container: int, pieces: Sequence["_Piece"], *, is_whole: bool) -> DevicesJudged:
        rows = [row for piece in pieces for row in piece.rows]
        kinds, columns = numbers_of(rows, self._registered)
        verdicts = sorted({line.verdict for _, line in rows})
        known = self._container(container)
        return DevicesJudged(
            **self._shared,
            part=part,
            # Behind all containers: a position that no request has.
            container=known if known != UNKNOWN else len(self._requests),
            request=self._requests[known] if known != UNKNOWN else Request(container=""),
            verdicts=verdicts,
            kinds=kinds,
            nodes=[piece.node for piece in pieces],
            node_index=[self._index.get(piece.node, len(self._names)) for piece in pieces],
            devices=[self._size(piece.node) for piece in pieces],
            rows=[len(piece.rows) for piece in pieces],
            verdict=[verdicts.index(line.verdict) for _, line in rows],
            uuid=[uuid for uuid, _ in rows],
            partial=not is_whole,
            **columns,
        )

    def _size(self, node: str) -> int:
        """The Y of ``X/Y Reason``; 0 where the log does not give it."""
        line = self._lines.get(node)
        return refusal_of(line).devices if line and line.verdict == REFUSED else 0


def _json_bytes(text: str) -> int:
    """An upper bound: a control character takes six bytes in JSON, the most of all characters."""
    return len(text) + 3 if text.isascii() and text.isprintable() else 6 * len(text.encode()) + 3
