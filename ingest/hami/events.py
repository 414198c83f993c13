"""An attempt that was read, as the contract's events, with all that the log leaves open said to be open."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

import numpy as np

from ingest.hami.attempt import UNKNOWN, Attempt, DeviceLine
from ingest.hami.registry import Cards
from ingest.hami.tables import nodes_of, numbers_of, refusal_of, refusal_table, requests_of, rows_of
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
from schemas.events.base import OFFERED_NODES
from schemas.ids import attempt_id

SOURCE: Final = "hami-log"

REQUESTS: Final = "requests"
CONTAINERS: Final = "container names"
NODES: Final = "names of refused nodes"
REASONS: Final = "reasons"
SCORES: Final = "exact scores"
REFUSING: Final = "refusing containers"
DEVICES: Final = "devices"
NODES_OF_DEVICES: Final = "nodes of devices"

_ROW_BYTES: Final = 40
"""Of a device's numbers and codes in JSON, at most."""
_NODE_BYTES: Final = 128
_STRAYS: Final = 100
_ROOM: Final = 48 * 1024


class _Piece(NamedTuple):
    """Cards of one node, or some of those of which the node is not known."""

    node: str
    rows: list[tuple[str, DeviceLine]]


@dataclass(frozen=True, slots=True)
class Bind:
    """A bind as far as its lines were read."""

    node: str
    started_at: datetime
    error: str = ""
    ended_at: datetime | None = None


def about(attempt: Attempt, scheduler: str) -> dict[str, Any]:
    """What every event of the attempt says alike. A pod whose UID the log does not say is told apart by its name."""
    return {
        "attempt_id": attempt_id(scheduler, attempt.uid or attempt.pod, attempt.started_at),
        "pod": PodRef(namespace=attempt.namespace, name=attempt.name, uid=attempt.uid),
        "scheduler": scheduler,
        "started_at": attempt.started_at,
    }


def tell_bind(said: dict[str, Any], bind: Bind, ended_at: datetime) -> BindConcluded:
    ended_at = bind.ended_at or ended_at
    started = min(bind.started_at, ended_at)
    outcome = {"node": bind.node, "bound": not bind.error, "error": bind.error}
    return BindConcluded(**said, **outcome, bind_started_at=started, ended_at=ended_at)


def tell(attempt: Attempt, cards: Cards, scheduler: str) -> tuple[list[AttemptEvent], Provenance]:
    """All events of the attempt; without a conclusion where its end was not read."""
    telling = _Telling(attempt, cards, about(attempt, scheduler))
    return telling.events(), telling.reading()


class _Telling:
    def __init__(self, attempt: Attempt, cards: Cards, said: dict[str, Any]) -> None:
        self._attempt, self._cards, self._about = attempt, cards, said
        self._lines = nodes_of(attempt)
        self._names = sorted(self._lines)
        self._index = {name: place for place, name in enumerate(self._names)}
        self._requests = requests_of(attempt)
        self._rows = rows_of(attempt)
        self._whole = {key for key, rows in self._rows.items() if self._is_whole(*key, rows)}

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
            **self._about,
            ended_at=max(ended_at, attempt.started_at),
            requests=self._requests,
            node_policy=attempt.node_policy,
            offered_nodes=max(attempt.offered or 0, len(self._names)),
            judged_nodes=len(self._names),
            judged_devices=sum(len(each.uuid) for each in devices),
            device_records=len(devices),
            node_records=nodes,
            chosen=attempt.chosen or None if not attempt.error else None,
            error=attempt.error,
            provenance=self.reading(),
        )

    def reading(self) -> Provenance:
        return Provenance(source=SOURCE, levels=sorted(self._attempt.levels), not_reported=list(self._open()))

    def _open(self) -> Iterator[str]:
        """What the log leaves open, in words. An attempt that ended before any node was judged has no nodes to name."""
        attempt, lines = self._attempt, self._lines.values()
        if attempt.requests is None:
            yield REQUESTS
        if not self._requests or not all(request.container for request in self._requests):
            yield CONTAINERS
        if attempt.error and not lines:
            return
        if attempt.offered is None:
            yield OFFERED_NODES
        elif attempt.offered > len(lines):
            yield NODES
        refused = [line for line in lines if line.verdict == REFUSED]
        if any(not refusal_of(line).counts and not refusal_of(line).bare for line in refused):
            yield REASONS
        if any(line.verdict == FITS and not line.is_exact for line in lines):
            yield SCORES
        if any(line.container == UNKNOWN for line in refused) and len(attempt.asking()) != 1:
            yield REFUSING
        if not self._has_all_devices():
            yield DEVICES
        if any(not node for _, node in self._rows):
            yield NODES_OF_DEVICES

    def _has_all_devices(self) -> bool:
        """Of refused nodes every card is counted, of fitting ones some are known."""
        judged = {node for _, node in self._rows}
        for name, line in self._lines.items():
            if line.verdict == FITS and name not in judged:
                return False
            if line.verdict == REFUSED and not refusal_of(line).bare and (line.container, name) not in self._whole:
                return False
        return True

    def _is_whole(self, container: int, node: str, rows: dict[str, DeviceLine]) -> bool:
        """Do the rows count what the node's refusal counts?"""
        line = self._lines.get(node)
        if not line or line.verdict != REFUSED or line.container != container or container == UNKNOWN:
            return False
        return refusal_of(line).counts == Counter(row.verdict for row in rows.values())

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
        for part, run in enumerate(refusal_runs(sizes, refusals, refusal, _ROOM)):
            table, column = cut_refusals(refusals, refusal[run])
            yield NodesJudged(
                **self._about,
                part=part,
                containers=[request.container for request in self._requests],
                verdicts=verdicts,
                refusals=table,
                nodes=self._names[run],
                node_index=np.arange(run.start, run.stop),
                verdict=np.array([verdicts.index(word) for word in words[run]], dtype=np.int64),
                score=np.array([line.score for line in lines[run]], dtype=np.float32),
                refused_by=np.array([self._known(line.container) for line in lines[run]], dtype=np.int64),
                refusal=column,
            )

    def _known(self, container: int) -> int:
        return container if 0 <= container < len(self._requests) else UNKNOWN

    def _devices(self) -> Iterator[DevicesJudged]:
        """Whole nodes and others in records of their own, so that only whole ones are counted."""
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
        for offset, run in enumerate(runs(np.array(sizes, dtype=np.int64), _ROOM)):
            yield self._record(part + offset, container, pieces[run], is_whole=is_whole)

    def _pieces(self, key: tuple[int, str]) -> Iterator["_Piece"]:
        """One for a node; the cards of which the node is not known are more than fit into a record."""
        rows = list(self._rows[key].items())
        size = len(rows) if key[1] else _STRAYS
        for start in range(0, len(rows), size):
            yield _Piece(key[1], rows[start : start + size])

    def _record(self, part: int, container: int, pieces: Sequence["_Piece"], *, is_whole: bool) -> DevicesJudged:
        rows = [row for piece in pieces for row in piece.rows]
        kinds, columns = numbers_of(rows, self._cards)
        verdicts = sorted({line.verdict for _, line in rows})
        known = self._known(container)
        return DevicesJudged(
            **self._about,
            part=part,
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
        """The Y of ``X/Y Reason``; 0 where the log does not say it."""
        line = self._lines.get(node)
        return refusal_of(line).devices if line and line.verdict == REFUSED else 0


def _json_bytes(text: str) -> int:
    """At most. A control character takes six bytes in JSON, as does no other."""
    return len(text) + 3 if text.isascii() and text.isprintable() else 6 * len(text.encode()) + 3
