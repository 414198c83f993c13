"""An attempt that was read, as the contract's events, with all that the log leaves open said to be open."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

import numpy as np

from ingest.hami.attempt import NOTHING, UNKNOWN, UNSET_PERCENT, Asked, Attempt, DeviceLine, NodeLine
from ingest.hami.registry import Card, Cards
from schemas.events import (
    FITS,
    NOT_SAID,
    PICKED,
    REFUSED,
    UNREGISTERED,
    AttemptConcluded,
    AttemptEvent,
    BindConcluded,
    DeviceKind,
    DevicesJudged,
    NodesJudged,
    PodRef,
    Reading,
    Refusal,
    Request,
)
from schemas.events.base import OFFERED_NODES
from schemas.ids import attempt_id
from schemas.runs import refusal_runs, runs
from schemas.tables import cut_refusals

SOURCE: Final = "hami-log"

REQUESTS: Final = "requests"
CONTAINERS: Final = "container names"
NODES: Final = "names of refused nodes"
REASONS: Final = "reasons"
SCORES: Final = "exact scores"
REFUSING: Final = "refusing containers"
DEVICES: Final = "devices"
NODES_OF_DEVICES: Final = "nodes of devices"

_COUNTED: Final = re.compile(r"(\d{1,9})/(\d{1,9}) ([^\s,/]{1,100})")
_ROW_BYTES: Final = 40
"""Of a device's numbers and codes in JSON, at most."""
_NODE_BYTES: Final = 128
_STRAYS: Final = 100
_ROOM: Final = 48 * 1024
_NUMBERS: Final = {
    "memory_mib": re.compile(r" device total memory=(\d{1,9})"),
    "memory_used_mib": re.compile(r" device used memory=(\d{1,9})"),
    "cores_percent": re.compile(r" device total core=(\d{1,9})"),
    "cores_used_percent": re.compile(r" device used core=(\d{1,9})"),
    "slots": re.compile(r" count=(\d{1,9})"),
    "slots_used": re.compile(r" used=(\d{1,9})"),
}


class _Piece(NamedTuple):
    """Cards of one node, or some of those of which the node is not known."""

    node: str
    rows: list[tuple[str, DeviceLine]]


@dataclass(frozen=True, slots=True)
class Bind:
    """A bind as far as its lines were read."""

    node: str
    started: datetime
    error: str = ""
    ended: datetime | None = None


def about(attempt: Attempt, scheduler: str) -> dict[str, Any]:
    """What every event of the attempt says alike. A pod whose UID the log does not say is told apart by its name."""
    return {
        "attempt_id": attempt_id(scheduler, attempt.uid or attempt.pod, attempt.started),
        "pod": PodRef(namespace=attempt.namespace, name=attempt.name, uid=attempt.uid),
        "scheduler": scheduler,
        "started": attempt.started,
    }


def tell_bind(said: dict[str, Any], bind: Bind, ended: datetime) -> BindConcluded:
    ended = bind.ended or ended
    started = min(bind.started, ended)
    outcome = {"node": bind.node, "bound": not bind.error, "error": bind.error}
    return BindConcluded(**said, **outcome, bind_started=started, ended=ended)


def tell(attempt: Attempt, cards: Cards, scheduler: str) -> tuple[list[AttemptEvent], Reading]:
    """All events of the attempt; without a conclusion where its end was not read."""
    telling = _Telling(attempt, cards, about(attempt, scheduler))
    return telling.events(), telling.reading()


class _Telling:
    def __init__(self, attempt: Attempt, cards: Cards, said: dict[str, Any]) -> None:
        self._attempt, self._cards, self._about = attempt, cards, said
        self._lines = _all_nodes(attempt)
        self._names = sorted(self._lines)
        self._index = {name: place for place, name in enumerate(self._names)}
        self._requests = _requests(attempt)
        self._rows = _rows(attempt)
        self._whole = {key for key, rows in self._rows.items() if self._is_whole(*key, rows)}

    def events(self) -> list[AttemptEvent]:
        devices = list(self._devices())
        nodes = list(self._nodes())
        events: list[AttemptEvent] = [*devices, *nodes]
        if self._attempt.ended:
            events.append(self._conclusion(self._attempt.ended, devices, len(nodes)))
        return events

    def _conclusion(self, ended: datetime, devices: Sequence[DevicesJudged], nodes: int) -> AttemptConcluded:
        attempt = self._attempt
        return AttemptConcluded(
            **self._about,
            ended=max(ended, attempt.started),
            requests=self._requests,
            node_policy=attempt.node_policy,
            offered_nodes=max(attempt.offered or 0, len(self._names)),
            judged_nodes=len(self._names),
            judged_devices=sum(len(each.uuid) for each in devices),
            device_records=len(devices),
            node_records=nodes,
            chosen=attempt.chosen or None if not attempt.error else None,
            error=attempt.error,
            reading=self.reading(),
        )

    def reading(self) -> Reading:
        return Reading(source=SOURCE, levels=sorted(self._attempt.levels), not_said=list(self._open()))

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
        if any(not _refusal(line).counts and not _refusal(line).bare for line in refused):
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
            if line.verdict == REFUSED and not _refusal(line).bare and (line.container, name) not in self._whole:
                return False
        return True

    def _is_whole(self, container: int, node: str, rows: dict[str, DeviceLine]) -> bool:
        """Do the rows count what the node's refusal counts?"""
        line = self._lines.get(node)
        if not line or line.verdict != REFUSED or line.container != container or container == UNKNOWN:
            return False
        return _refusal(line).counts == Counter(row.verdict for row in rows.values())

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
        refusals, refusal = _refusal_table(lines)
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
        kinds, columns = _numbers(rows, self._cards)
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
        return _refusal(line).devices if line and line.verdict == REFUSED else 0


def _json_bytes(text: str) -> int:
    """At most. A control character takes six bytes in JSON, as does no other."""
    return len(text) + 3 if text.isascii() and text.isprintable() else 6 * len(text.encode()) + 3


def _all_nodes(attempt: Attempt) -> dict[str, NodeLine]:
    """What is known of each node; where only the event lines tell, the codes without counts."""
    lines = dict(attempt.nodes)
    lines |= {name: NodeLine(UNREGISTERED) for name in attempt.unregistered if name not in lines}
    by_node: dict[str, list[str]] = {}
    for code, names in attempt.codes.items():
        for name in names:
            by_node.setdefault(name, []).append(code)
    for name, codes in by_node.items():
        if name not in lines or (lines[name].verdict == REFUSED and not lines[name].reason):
            container = attempt.only_container()
            lines[name] = NodeLine(REFUSED, reason="\n".join(sorted(codes)), is_exact=False, container=container)
    return lines


def _refusal(line: NodeLine) -> Refusal:
    """``1/2 CodeA, 1/2 CodeB`` as counts; other words as they are."""
    if not line.is_exact:
        return Refusal(uncounted=line.reason.split("\n"))
    pairs = [_COUNTED.fullmatch(pair) for pair in line.reason.split(", ")]
    counted = [pair for pair in pairs if pair]
    totals = {int(pair[2]) for pair in counted}
    codes = {pair[3]: int(pair[1]) for pair in counted}
    if len(counted) < len(pairs) or len(totals) != 1 or len(codes) < len(pairs):
        return Refusal(bare=line.reason)
    return Refusal(counts=codes, devices=totals.pop())


def _refusal_table(lines: Iterable[NodeLine]) -> tuple[list[Refusal], Any]:
    places: dict[tuple[str, bool], int] = {}
    table: list[Refusal] = []
    column = []
    for line in lines:
        if line.verdict != REFUSED or not line.reason:
            column.append(-1)
            continue
        key = (line.reason, line.is_exact)
        if key not in places:
            places[key] = len(table)
            table.append(_refusal(line))
        column.append(places[key])
    return table, np.array(column, dtype=np.int64)


def _requests(attempt: Attempt) -> list[Request]:
    asked = attempt.requests if attempt.requests is not None else [NOTHING] * len(attempt.names)
    return [_request(attempt, place, each) for place, each in enumerate(asked)]


def _request(attempt: Attempt, place: int, asked: Asked) -> Request:
    share = asked.memory_percent if asked.memory_percent != UNSET_PERCENT and not asked.memory_mib else None
    has_memory = bool(asked.devices) and share is None
    return Request(
        container=attempt.names.get(place, ""),
        init=place < (attempt.init_containers or 0),
        vendor=asked.vendor,
        count=asked.devices,
        memory_mib=max(asked.memory_mib, 0) if has_memory else None,
        memory_percent=max(share, 0) if share is not None and asked.devices else None,
        cores_percent=max(asked.cores_percent, 0),
    )


def _rows(attempt: Attempt) -> dict[tuple[int, str], dict[str, DeviceLine]]:
    """The device lines by container and node, and by UUID within; the cards taken on the chosen node are picked."""
    rows: dict[tuple[int, str], dict[str, DeviceLine]] = {}
    for key, line in attempt.devices.items():
        position, _, uuid = key.partition("/")
        rows.setdefault((int(position), line.node), {})[uuid] = line
    if attempt.chosen and not attempt.error:
        for place, uuids in attempt.picked.items():
            container = place if place != UNKNOWN else attempt.only_container()
            taken = rows.setdefault((container, attempt.chosen), {})
            taken |= {uuid: DeviceLine(PICKED, attempt.chosen, "") for uuid in uuids}
    return rows


def _numbers(rows: Sequence[tuple[str, DeviceLine]], cards: Cards) -> tuple[list[DeviceKind], dict[str, list[int]]]:
    """The table of kinds, and the columns of numbers: from the line, else from the card's registration."""
    places: dict[tuple[Any, ...], int] = {}
    columns: dict[str, list[int]] = {
        name: [] for name in ("kind", "numa", "memory_used_mib", "cores_used_percent", "slots_used")
    }
    for uuid, line in rows:
        card = cards.get(uuid, Card(""))
        said = {name: int(found[1]) for name, number in _NUMBERS.items() if (found := number.search(line.said))}
        kind = (
            card.model,
            said.get("memory_mib", card.memory_mib),
            said.get("cores_percent", card.cores_percent),
            said.get("slots", card.slots),
        )
        columns["kind"].append(places.setdefault(kind, len(places)))
        columns["numa"].append(NOT_SAID if card.numa is None else card.numa)
        for name in ("memory_used_mib", "cores_used_percent", "slots_used"):
            columns[name].append(said.get(name, NOT_SAID))
    kinds = [
        DeviceKind(model=model, memory_mib=memory, cores_percent=cores, slots=slots)
        for model, memory, cores, slots in places
    ]
    return kinds, columns
