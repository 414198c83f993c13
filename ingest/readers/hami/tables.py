"""An attempt as the tables of events: nodes, refusals, requests, and the rows of devices."""

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from engine.hami.reason_codes import ReasonCode
from engine.hami.requests import UNSET_PERCENT
from engine.summaries.text import read_reasons, write_reasons
from ingest.readers.hami.attempt import UNKNOWN, DeviceLine, HamiAttempt, NodeLine
from ingest.readers.hami.container_requests import NO_REQUEST, ContainerRequest
from schemas.events import PICKED, REFUSED, UNREGISTERED, Refusal, Request

Rows = dict[tuple[int, str], dict[str, DeviceLine]]
"""Device lines by container and node, and by UUID within."""
Keys = set[tuple[int, str]]


def nodes_of(attempt: HamiAttempt) -> dict[str, NodeLine]:
    """By name, what is known of each node; codes without counts where only the event lines name it."""
    lines = dict(attempt.nodes)
    lines |= {name: NodeLine(UNREGISTERED) for name in attempt.unregistered if name not in lines}
    by_node: dict[str, list[str]] = {}
    for code, names in attempt.codes.items():
        for name in names:
            by_node.setdefault(name, []).append(code)
    for name, codes in by_node.items():
        # A node's own line has counts, which are better than the codes of the event lines.
        if name not in lines or (lines[name].verdict == REFUSED and not lines[name].reason):
            container = attempt.only_container()
            lines[name] = NodeLine(REFUSED, reason="\n".join(sorted(codes)), is_exact=False, container=container)
    # Which of the nodes a line is about is certain where all of them have the same numbers.
    if len(attempt.shortages) == 1:
        [cause] = attempt.shortages
        lines |= {
            name: line._replace(cause=cause) for name, line in lines.items() if _is_short(line) and not line.cause
        }
    return lines


def _is_short(line: NodeLine) -> bool:
    return line.verdict == REFUSED and line.reason == ReasonCode.NODE_INSUFFICIENT_DEVICE


def unnamed_refusals(attempt: HamiAttempt, nodes: Mapping[str, NodeLine]) -> dict[str, int]:
    """Reason to number of nodes that were refused for it by lines that do not name them, where no other does."""
    lines = sum(attempt.shortages.values())
    named = sum(ReasonCode.NODE_INSUFFICIENT_DEVICE in line.reason for line in nodes.values())
    return {ReasonCode.NODE_INSUFFICIENT_DEVICE.value: lines - named} if lines > named else {}


def refusal_of(line: NodeLine) -> Refusal:
    """``1/2 CodeA, 1/2 CodeB`` as counts; a reason of any other form is kept as ``bare``."""
    if not line.is_exact:
        return Refusal(uncounted=line.reason.split("\n"))
    found = _refusal(line.reason)
    return found.model_copy(update={"cause": line.cause}) if line.cause and found.bare else found


# Thousands of nodes share a few reasons.
@lru_cache(maxsize=1_024)
def _refusal(text: str) -> Refusal:
    counted = [reason for reason in read_reasons(text) if reason]
    totals = {reason.devices for reason in counted}
    codes = {reason.code: reason.refused for reason in counted}
    # Counts that don't spell the same text again (several totals, other words between them) would falsify it.
    if (
        len(totals) != 1
        or min(*codes.values(), *totals) < 0
        or write_reasons(codes, devices := totals.pop()) != ", ".join(sorted(text.split(", ")))
    ):
        return Refusal(bare=text)
    return Refusal(counts=codes, devices=devices)


def refusal_table(lines: Iterable[NodeLine]) -> tuple[list[Refusal], Any]:
    """The distinct refusals, and for each line its index in them; -1 for one without. Shape of the array: (lines,)."""
    places: dict[tuple[str, str, bool], int] = {}
    table: list[Refusal] = []
    column = []
    for line in lines:
        if line.verdict != REFUSED or not line.reason:
            column.append(-1)
            continue
        key = (line.reason, line.cause, line.is_exact)
        if key not in places:
            places[key] = len(table)
            table.append(refusal_of(line))
        column.append(places[key])
    return table, np.array(column, dtype=np.int64)


def requests_of(attempt: HamiAttempt) -> list[Request]:
    """A request per container; empty ones where the log has only the containers' names."""
    requests = attempt.requests if attempt.requests is not None else [NO_REQUEST] * len(attempt.names)
    return [_request(attempt, index, request) for index, request in enumerate(requests)]


def _request(attempt: HamiAttempt, index: int, request: ContainerRequest) -> Request:
    # As in HAMi, an amount of memory takes precedence over a percentage.
    share = request.memory_percent if request.memory_percent != UNSET_PERCENT and not request.memory_mib else None
    has_memory = bool(request.devices) and share is None
    return Request(
        container=attempt.names.get(index, ""),
        init=index < (attempt.init_containers or 0),
        vendor=request.vendor,
        count=request.devices,
        memory_mib=max(request.memory_mib, 0) if has_memory else None,
        memory_percent=max(share, 0) if share is not None and request.devices else None,
        cores_percent=max(request.cores_percent, 0),
    )


def rows_of(attempt: HamiAttempt) -> Rows:
    """The device lines by container and node, and by UUID within; devices taken on the chosen node are ``picked``."""
    rows: Rows = {}
    for key, line in attempt.devices.items():
        # A node's name has no slash; a device's may have one.
        position, _, uuid = key.split("/", 2)
        rows.setdefault((int(position), line.node), {})[uuid] = line
    if attempt.chosen and not attempt.error:
        for index, uuids in attempt.picked.items():
            # A pod with one requesting container leaves no doubt whose devices they are.
            container = index if index != UNKNOWN else attempt.only_container()
            taken = rows.setdefault((container, attempt.chosen), {})
            taken |= {uuid: DeviceLine(PICKED, attempt.chosen, "") for uuid in uuids}
    return rows


def whole_rows(nodes: Mapping[str, NodeLine], rows: Rows) -> Keys:
    """Keys of the rows that add up to the counts in their node's refusal: no device line is missing there."""
    return {key for key, lines in rows.items() if _is_whole(key, lines, nodes)}


def _is_whole(key: tuple[int, str], lines: Mapping[str, DeviceLine], nodes: Mapping[str, NodeLine]) -> bool:
    container, name = key
    node = nodes.get(name)
    if not node or node.verdict != REFUSED or node.container != container or container == UNKNOWN:
        return False
    return refusal_of(node).counts == Counter(line.verdict for line in lines.values())


def json_bytes(text: str) -> int:
    """An upper bound: a control character takes six bytes in JSON, the most of all characters."""
    return len(text) + 3 if text.isascii() and text.isprintable() else 6 * len(text.encode()) + 3
