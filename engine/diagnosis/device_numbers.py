"""Numbers of the devices behind a refusal: the requested amount, and the most that was free."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from engine.diagnosis.facts import DiagnosisFacts
from engine.diagnosis.outcome import Word
from engine.diagnosis.refused_nodes import NAMES_REQUEST, RefusedNodes
from engine.diagnosis.texts import write_phrase
from engine.diagnosis.wording import enumerate_names
from engine.hami.reason_codes import ReasonCode
from schemas.answers.attempts import DeviceLog
from schemas.answers.diagnosis import InBothLanguages
from schemas.events import FITS, PICKED, Request

_NOT_ACCEPTED: Final = frozenset((ReasonCode.CARD_TYPE_MISMATCH, ReasonCode.CARD_UUID_MISMATCH))
MAX_MODELS: Final = 3


class Numbers(NamedTuple):
    words: Mapping[str, Word]
    clauses: tuple[str, ...] = ()


def describe_requested_memory(request: Request | None) -> InBothLanguages:
    """Describe what a container requests of each device. Without an amount it is the complete device, as HAMi counts
    it."""
    if request and request.memory_mib:
        return write_phrase("mib", n=request.memory_mib)
    percent = request.memory_percent if request and request.memory_percent else 100
    return write_phrase("percent_of_memory", n=percent)


def collect_numbers(group: RefusedNodes, facts: DiagnosisFacts) -> Numbers:
    """Collect the numbers of the sentence about ``group`` beyond its count of nodes; clauses exist only for reported
    numbers."""
    request, rows = group.request, select_rows(group, facts)
    is_core = group.code == ReasonCode.CARD_INSUFFICIENT_CORE
    words: dict[str, Word] = {
        "count": request.count if request else 1,
        "asked": request.cores_percent if request and is_core else describe_requested_memory(request),
    }
    request_clauses = ("asked",) if request and group.code in NAMES_REQUEST else ()
    row_numbers = _BY_CODE[group.code](rows) if rows and group.code in _BY_CODE else None
    if row_numbers is None:
        return Numbers(words, request_clauses)
    if group.code in _AMOUNTS and any(_AMOUNTS[group.code](row, request) for row in rows):
        return Numbers(words, (*request_clauses, "own"))
    some_fit = "free" in row_numbers.clauses and _has_suitable_device(group, facts)
    clauses = ("free_of_refused",) if some_fit else row_numbers.clauses
    return Numbers({**words, **row_numbers.words}, (*request_clauses, *clauses))


def _has_suitable_device(group: RefusedNodes, facts: DiagnosisFacts) -> bool:
    """Tell whether one of the nodes has suitable devices, only too few."""
    nodes = frozenset(group.names)
    good = (PICKED, FITS, ReasonCode.ALLOCATED_CARDS_INSUFFICIENT_REQUEST)
    return any(row.node in nodes and row.verdict in good for row in facts.devices or ())


# The numbers are from before the attempt: the shares of the pod's earlier containers are not in them, and they are why
# a device that seems to have enough was refused.


def _has_memory(row: DeviceLog, request: Request | None) -> bool:
    requested = request.compute_memory(row.memory_total_mib) if request else None
    free = (row.memory_total_mib or 0) - (row.memory_used_mib or 0)
    return bool(requested) and free >= (requested or 0)


def _has_cores(row: DeviceLog, request: Request | None) -> bool:
    free = (row.cores_total_percent or 0) - (row.cores_used_percent or 0)
    return request is not None and free >= request.cores_percent


def _is_empty(row: DeviceLog, _: Request | None) -> bool:
    return row.slots_used == 0


def select_rows(group: RefusedNodes, facts: DiagnosisFacts) -> list[DeviceLog]:
    """Select the devices that were refused for the group's reason, of its nodes and its containers."""
    if not facts.devices:
        return []
    nodes = frozenset(group.names)
    return [
        row
        for row in facts.devices
        if row.verdict == group.code
        and row.node in nodes
        and (not group.containers or row.container in group.containers)
    ]


def compare_with_largest(group: RefusedNodes, facts: DiagnosisFacts) -> Numbers | None:
    """Return the numbers that show that no device of the cluster is as large as requested; None if one may be."""
    requested = group.request.memory_mib if group.request else None
    accepted = [row for row in facts.devices or () if row.verdict not in _NOT_ACCEPTED]
    sizes = [row.memory_total_mib for row in accepted]
    is_complete = facts.devices is not None and not facts.select_unknown("devices")
    if not (requested and sizes and is_complete) or None in sizes:
        return None
    largest = max(size for size in sizes if size is not None)
    devices = len({(row.node, row.uuid) for row in accepted})
    words: dict[str, Word] = {"asked": write_phrase("mib", n=requested), "largest": largest, "devices": devices}
    return Numbers(words) if largest < requested else None


def list_models(rows: Sequence[DeviceLog]) -> list[str]:
    """List the models of the devices, as they are registered; empty if there are too many, or none is reported."""
    models = sorted({row.model for row in rows if row.model})
    return models if len(models) <= MAX_MODELS else []


def _find_free_memory(rows: Sequence[DeviceLog]) -> Numbers | None:
    return _find_max_free(rows, lambda row: (row.memory_total_mib, row.memory_used_mib))


def _find_free_cores(rows: Sequence[DeviceLog]) -> Numbers | None:
    return _find_max_free(rows, lambda row: (row.cores_total_percent, row.cores_used_percent))


def _find_max_free(
    rows: Sequence[DeviceLog], amounts: Callable[[DeviceLog], tuple[int | None, int | None]]
) -> Numbers | None:
    row_amounts = [(row, *amounts(row)) for row in rows]
    free = [(total - used, row) for row, total, used in row_amounts if total is not None and used is not None]
    if len(free) < len(rows):
        return None
    max_free, best = max(free, key=lambda pair: (pair[0], pair[1].node))
    # The free amount of an overcommitted device is negative.
    return Numbers({"free": max(max_free, 0), "node": best.node}, ("free",))


def _find_free_slots(rows: Sequence[DeviceLog]) -> Numbers | None:
    slots = [(row.slots_used, row.slots_total, row.node) for row in rows]
    emptiest = min(((used, total, node) for used, total, node in slots if used is not None and total), default=None)
    if emptiest is None:
        return None
    return Numbers({"slots_used": emptiest[0], "slots": emptiest[1], "node": emptiest[2]}, ("slots",))


def _find_devices(rows: Sequence[DeviceLog]) -> Numbers | None:
    named = sorted((row.node, row.uuid) for row in rows if row.uuid)
    if not named:
        return None
    return Numbers({"devices": len(set(named)), "node": named[0][0], "device": named[0][1]}, ("devices",))


def _describe_models(rows: Sequence[DeviceLog]) -> Numbers | None:
    models = list_models(rows)
    return Numbers({"models": enumerate_names(models, "and")}, ("models",)) if models else None


def _count_suitable(rows: Sequence[DeviceLog]) -> Numbers:
    """Find the node with the most devices that suit the container that wants more of them."""
    counts = Counter(row.node for row in rows)
    node = max(counts, key=lambda name: (counts[name], name))
    return Numbers({"good": counts[node], "node": node}, ("good",))


_AMOUNTS: Final[Mapping[str, Callable[[DeviceLog, Request | None], bool]]] = {
    ReasonCode.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT: _is_empty,
    ReasonCode.CARD_INSUFFICIENT_MEMORY: _has_memory,
    ReasonCode.CARD_INSUFFICIENT_CORE: _has_cores,
}
"""Predicates: the device would suit by the numbers that it had before the attempt."""
_BY_CODE: Final[Mapping[str, Callable[[Sequence[DeviceLog]], Numbers | None]]] = {
    ReasonCode.CARD_NOT_HEALTH: _find_devices,
    ReasonCode.CARD_CORDONED: _find_devices,
    ReasonCode.CARD_TYPE_MISMATCH: _describe_models,
    ReasonCode.CARD_TIME_SLICING_EXHAUSTED: _find_free_slots,
    ReasonCode.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT: _find_free_slots,
    ReasonCode.CARD_INSUFFICIENT_MEMORY: _find_free_memory,
    ReasonCode.CARD_INSUFFICIENT_CORE: _find_free_cores,
    ReasonCode.ALLOCATED_CARDS_INSUFFICIENT_REQUEST: _count_suitable,
}
