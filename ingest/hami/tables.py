"""What is known of an attempt as the contract's tables: nodes, refusals, requests, rows and numbers of cards."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from hami.requests import UNSET_PERCENT
from ingest.hami.attempt import NOTHING, UNKNOWN, Asked, Attempt, DeviceLine, NodeLine
from ingest.hami.registry import Card, Cards
from schemas.events import NOT_REPORTED, PICKED, REFUSED, UNREGISTERED, DeviceKind, Refusal, Request
from summaries.text import read_reasons, reason_text

_NUMBERS: Final = {
    "memory_mib": re.compile(r" device total memory=(\d{1,9})"),
    "memory_used_mib": re.compile(r" device used memory=(\d{1,9})"),
    "cores_percent": re.compile(r" device total core=(\d{1,9})"),
    "cores_used_percent": re.compile(r" device used core=(\d{1,9})"),
    "slots": re.compile(r" count=(\d{1,9})"),
    "slots_used": re.compile(r" used=(\d{1,9})"),
}


def nodes_of(attempt: Attempt) -> dict[str, NodeLine]:
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


def refusal_of(line: NodeLine) -> Refusal:
    """``1/2 CodeA, 1/2 CodeB`` as counts; other words as they are."""
    if not line.is_exact:
        return Refusal(uncounted=line.reason.split("\n"))
    counted = [each for each in read_reasons(line.reason) if each]
    totals = {each.devices for each in counted}
    codes = {each.code: each.refused for each in counted}
    # Words that are no counts, or that say more than one total, are told as they are.
    if (
        len(totals) != 1
        or min(*codes.values(), *totals) < 0
        or reason_text(codes, devices := totals.pop()) != ", ".join(sorted(line.reason.split(", ")))
    ):
        return Refusal(bare=line.reason)
    return Refusal(counts=codes, devices=devices)


def refusal_table(lines: Iterable[NodeLine]) -> tuple[list[Refusal], Any]:
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
            table.append(refusal_of(line))
        column.append(places[key])
    return table, np.array(column, dtype=np.int64)


def requests_of(attempt: Attempt) -> list[Request]:
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


def rows_of(attempt: Attempt) -> dict[tuple[int, str], dict[str, DeviceLine]]:
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


def numbers_of(rows: Sequence[tuple[str, DeviceLine]], cards: Cards) -> tuple[list[DeviceKind], dict[str, list[int]]]:
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
        columns["numa"].append(NOT_REPORTED if card.numa is None else card.numa)
        for name in ("memory_used_mib", "cores_used_percent", "slots_used"):
            columns[name].append(said.get(name, NOT_REPORTED))
    kinds = [
        DeviceKind(model=model, memory_mib=memory, cores_percent=cores, slots=slots)
        for model, memory, cores, slots in places
    ]
    return kinds, columns
