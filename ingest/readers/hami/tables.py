"""An attempt as the tables of events: nodes, refusals, requests, and the rows of devices."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from engine.hami.quantities import UNSET_PERCENT
from engine.hami.reason_codes import ReasonCode
from engine.summaries.text import read_reasons, write_reasons
from ingest.readers.hami.attempt import UNKNOWN, DeviceLine, HamiAttempt, NodeLine
from ingest.readers.hami.container_requests import NO_REQUEST, ContainerRequest
from schemas.events import FITS, PICKED, REFUSED, UNREGISTERED, Refusal, Request

Rows = dict[tuple[int, str], dict[str, DeviceLine]]
"""Device lines by container and node, and by UUID within."""
Keys = set[tuple[int, str]]


def collect_nodes(attempt: HamiAttempt) -> dict[str, NodeLine]:
    """Collect the line of each node by name; codes without counts if only the event lines name it."""
    lines = dict(attempt.nodes)
    lines |= {name: NodeLine(UNREGISTERED) for name in attempt.unregistered if name not in lines}
    by_node: dict[str, list[str]] = {}
    for code, names in attempt.codes.items():
        for name in names:
            by_node.setdefault(name, []).append(code)
    for name, codes in by_node.items():
        # A node's own line has counts, which are better than the codes of the event lines.
        if name not in lines or (lines[name].verdict == REFUSED and not lines[name].reason):
            container = attempt.find_only_container()
            lines[name] = NodeLine(REFUSED, reason="\n".join(sorted(codes)), is_exact=False, container=container)
    lines |= _explain_by_unplaced(attempt, lines)
    # Which of the nodes a line is about is certain where all of them have the same numbers.
    if len(attempt.shortages) == 1:
        [cause] = attempt.shortages
        lines |= {
            name: line._replace(cause=cause) for name, line in lines.items() if _is_short(line) and not line.cause
        }
    return lines


def _explain_by_unplaced(attempt: HamiAttempt, lines: Mapping[str, NodeLine]) -> dict[str, NodeLine]:
    """Explain refused nodes without a reason, as up to v2.5, by the lines of devices that no registration places.

    Which of several nodes a device is on does not matter where all of them are refused for the same reason.
    """
    unexplained = [name for name, line in lines.items() if line.verdict == REFUSED and not line.reason]
    if not unexplained or any(line.node for line in attempt.devices.values()):
        return {}
    codes = sorted({line.verdict for line in attempt.devices.values()} - {FITS})
    if not attempt.devices and sum(attempt.shortages.values()) == len(unexplained):
        codes = [ReasonCode.NODE_INSUFFICIENT_DEVICE.value]
    if not codes or (len(unexplained) > 1 and len(codes) > 1):
        return {}
    container = attempt.find_only_container()
    # As many lines as nodes say what each of them lacks.
    explained = NodeLine(REFUSED, reason="\n".join(codes), is_exact=not attempt.devices, container=container)
    return dict.fromkeys(unexplained, explained)


def _is_short(line: NodeLine) -> bool:
    return line.verdict == REFUSED and line.reason == ReasonCode.NODE_INSUFFICIENT_DEVICE


def count_unnamed_refusals(attempt: HamiAttempt, nodes: Mapping[str, NodeLine]) -> dict[str, int]:
    """Count the nodes by reason that lines refuse without naming them, if no other line names them."""
    lines = sum(attempt.shortages.values())
    named = sum(ReasonCode.NODE_INSUFFICIENT_DEVICE in line.reason for line in nodes.values())
    return {ReasonCode.NODE_INSUFFICIENT_DEVICE.value: lines - named} if lines > named else {}


def parse_refusal(line: NodeLine) -> Refusal:
    """Parse ``1/2 CodeA, 1/2 CodeB`` into counts; a reason in any other form stays ``bare``."""
    if not line.is_exact:
        return Refusal(uncounted=line.reason.split("\n"))
    refusal = _parse_counts(line.reason)
    return refusal.model_copy(update={"cause": line.cause}) if line.cause and refusal.bare else refusal


# Thousands of nodes share a few reasons.
@lru_cache(maxsize=1_024)
def _parse_counts(text: str) -> Refusal:
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


def build_refusal_table(lines: Iterable[NodeLine]) -> tuple[list[Refusal], Any]:
    """Build the distinct refusals, and an array (lines,) with the index of each line's refusal, -1 for none."""
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
            table.append(parse_refusal(line))
        column.append(places[key])
    return table, np.array(column, dtype=np.int64)


def build_requests(attempt: HamiAttempt) -> list[Request]:
    """Build a request per container; empty ones if the log has only the containers' names."""
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


def group_rows(attempt: HamiAttempt) -> Rows:
    """Group the device lines by container and node, then by UUID; devices taken on the chosen node are ``picked``."""
    rows: Rows = {}
    for key, line in attempt.devices.items():
        # A node's name has no slash; a device's may have one.
        position, _, uuid = key.split("/", 2)
        rows.setdefault((int(position), line.node), {})[uuid] = line
    if attempt.chosen and not attempt.error:
        for index, uuids in attempt.picked.items():
            # A pod with one requesting container leaves no doubt whose devices they are.
            container = index if index != UNKNOWN else attempt.find_only_container()
            taken = rows.setdefault((container, attempt.chosen), {})
            taken |= {uuid: DeviceLine(PICKED, attempt.chosen, "") for uuid in uuids}
    return rows


def add_rows_by_elimination(rows: Rows, nodes: Mapping[str, NodeLine], by_node: Mapping[str, Sequence[str]]) -> Rows:
    """Add the rows of devices without a line where only one reason is left for all of them.

    HAMi's line about a quota names no device, and the node's own reason counts them: with `5/8 ResourceQuotaNotFit`,
    and lines about three of its eight devices, the other five are those. ``by_node``: the UUIDs of each node.
    """
    added = dict(rows)
    for name, node in nodes.items():
        key, counts = (node.container, name), parse_refusal(node).counts if node.verdict == REFUSED else {}
        lines = rows.get(key, {})
        left = Counter(counts) - Counter(line.verdict for line in lines.values())
        unnamed = [uuid for uuid in by_node.get(name, ()) if uuid not in lines]
        if node.container != UNKNOWN and len(left) == 1 and left.total() == len(unnamed):
            [code] = left
            added[key] = {**lines, **{uuid: DeviceLine(code, name, "") for uuid in unnamed}}
    return added


def find_complete_rows(nodes: Mapping[str, NodeLine], rows: Rows) -> Keys:
    """Find the keys of rows that add up to the counts in their node's refusal: no device line is missing there."""
    return {key for key, lines in rows.items() if _is_whole(key, lines, nodes)}


def _is_whole(key: tuple[int, str], lines: Mapping[str, DeviceLine], nodes: Mapping[str, NodeLine]) -> bool:
    container, name = key
    node = nodes.get(name)
    if not node or node.verdict != REFUSED or node.container != container or container == UNKNOWN:
        return False
    return parse_refusal(node).counts == Counter(line.verdict for line in lines.values())


def measure_json(text: str) -> int:
    """Measure an upper bound of the text's bytes in JSON: a control character takes six, the most of all."""
    return len(text) + 3 if text.isascii() and text.isprintable() else 6 * len(text.encode()) + 3
