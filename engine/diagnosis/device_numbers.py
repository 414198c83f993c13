"""The numbers of the devices behind a refusal: how much was asked, and the most that was free."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from engine.diagnosis.facts import DiagnosisFacts
from engine.diagnosis.outcome import Word
from engine.diagnosis.refused_nodes import SAYS_ASKED, RefusedNodes
from engine.diagnosis.texts import phrase
from engine.diagnosis.wording import enumerated
from engine.hami.reason_codes import ReasonCode
from schemas.answers.devices import DeviceLog
from schemas.answers.diagnosis import InBothLanguages
from schemas.events import FITS, PICKED, Request

_NOT_ACCEPTED: Final = frozenset((ReasonCode.CARD_TYPE_MISMATCH, ReasonCode.CARD_UUID_MISMATCH))
MAX_MODELS: Final = 3


class Numbers(NamedTuple):
    words: Mapping[str, Word]
    clauses: tuple[str, ...] = ()


def asked_memory(request: Request | None) -> InBothLanguages:
    """What a container asks of each device, in words. Without an amount it is the whole device, as HAMi counts it."""
    if request and request.memory_mib:
        return phrase("mib", n=request.memory_mib)
    percent = request.memory_percent if request and request.memory_percent else 100
    return phrase("percent_of_memory", n=percent)


def numbers_of(group: RefusedNodes, facts: DiagnosisFacts) -> Numbers:
    """What the sentence about ``group`` says beyond its count of nodes; clauses only for numbers that are known."""
    request, rows = group.request, rows_of(group, facts)
    is_core = group.code == ReasonCode.CARD_INSUFFICIENT_CORE
    words: dict[str, Word] = {
        "count": request.count if request else 1,
        "asked": request.cores_percent if request and is_core else asked_memory(request),
    }
    asked = ("asked",) if request and group.code in SAYS_ASKED else ()
    known = _BY_CODE[group.code](rows) if rows and group.code in _BY_CODE else None
    if known is None:
        return Numbers(words, asked)
    if group.code in _AMOUNTS and any(_AMOUNTS[group.code](row, request) for row in rows):
        return Numbers(words, (*asked, "own"))
    some_fit = "free" in known.clauses and _some_fit(group, facts)
    clauses = ("free_of_refused",) if some_fit else known.clauses
    return Numbers({**words, **known.words}, (*asked, *clauses))


def _some_fit(group: RefusedNodes, facts: DiagnosisFacts) -> bool:
    """Has one of the nodes devices that would do, only too few?"""
    nodes = frozenset(group.names)
    good = (PICKED, FITS, ReasonCode.ALLOCATED_CARDS_INSUFFICIENT_REQUEST)
    return any(row.node in nodes and row.verdict in good for row in facts.devices or ())


# The numbers are those before the attempt: what the pod's earlier containers take is not in them, and a device that
# seems to have enough was refused because of these.


def _has_memory(row: DeviceLog, request: Request | None) -> bool:
    asked = request.memory_of(row.memory_total_mib) if request else None
    free = (row.memory_total_mib or 0) - (row.memory_used_mib or 0)
    return bool(asked) and free >= (asked or 0)


def _has_cores(row: DeviceLog, request: Request | None) -> bool:
    free = (row.cores_total_percent or 0) - (row.cores_used_percent or 0)
    return request is not None and free >= request.cores_percent


def _is_empty(row: DeviceLog, _: Request | None) -> bool:
    return row.slots_used == 0


def rows_of(group: RefusedNodes, facts: DiagnosisFacts) -> list[DeviceLog]:
    """The devices that were refused for the group's reason, of its nodes and its containers."""
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


def too_large(group: RefusedNodes, facts: DiagnosisFacts) -> Numbers | None:
    """The numbers that show that no device of the cluster is as large as asked; None where one may be."""
    asked = group.request.memory_mib if group.request else None
    accepted = [row for row in facts.devices or () if row.verdict not in _NOT_ACCEPTED]
    sizes = [row.memory_total_mib for row in accepted]
    is_whole = facts.devices is not None and not facts.unknown_of("devices")
    if not (asked and sizes and is_whole) or None in sizes:
        return None
    largest = max(size for size in sizes if size is not None)
    devices = len({(row.node, row.uuid) for row in accepted})
    words: dict[str, Word] = {"asked": phrase("mib", n=asked), "largest": largest, "devices": devices}
    return Numbers(words) if largest < asked else None


def models_of(rows: Sequence[DeviceLog]) -> list[str]:
    """The models of the devices, as they are registered; empty where there are too many, or none is known."""
    models = sorted({row.model for row in rows if row.model})
    return models if len(models) <= MAX_MODELS else []


def _free_memory(rows: Sequence[DeviceLog]) -> Numbers | None:
    return _max_free(rows, lambda row: (row.memory_total_mib, row.memory_used_mib))


def _free_cores(rows: Sequence[DeviceLog]) -> Numbers | None:
    return _max_free(rows, lambda row: (row.cores_total_percent, row.cores_used_percent))


def _max_free(
    rows: Sequence[DeviceLog], amounts: Callable[[DeviceLog], tuple[int | None, int | None]]
) -> Numbers | None:
    known = [(row, *amounts(row)) for row in rows]
    free = [(total - used, row) for row, total, used in known if total is not None and used is not None]
    if len(free) < len(rows):
        return None
    max_free, best = max(free, key=lambda pair: (pair[0], pair[1].node))
    # A device that is overcommitted has less than nothing free.
    return Numbers({"free": max(max_free, 0), "node": best.node}, ("free",))


def _slots(rows: Sequence[DeviceLog]) -> Numbers | None:
    known = [(row.slots_used, row.slots_total, row.node) for row in rows]
    emptiest = min(((used, total, node) for used, total, node in known if used is not None and total), default=None)
    if emptiest is None:
        return None
    return Numbers({"slots_used": emptiest[0], "slots": emptiest[1], "node": emptiest[2]}, ("slots",))


def _devices(rows: Sequence[DeviceLog]) -> Numbers | None:
    named = sorted((row.node, row.uuid) for row in rows if row.uuid)
    if not named:
        return None
    return Numbers({"devices": len(set(named)), "node": named[0][0], "device": named[0][1]}, ("devices",))


def _models(rows: Sequence[DeviceLog]) -> Numbers | None:
    models = models_of(rows)
    return Numbers({"models": enumerated(models, "and")}, ("models",)) if models else None


def _suitable(rows: Sequence[DeviceLog]) -> Numbers:
    """The most devices of one node that would do for the container that wants more of them."""
    counts = Counter(row.node for row in rows)
    node = max(counts, key=lambda name: (counts[name], name))
    return Numbers({"good": counts[node], "node": node}, ("good",))


_AMOUNTS: Final[Mapping[str, Callable[[DeviceLog, Request | None], bool]]] = {
    ReasonCode.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT: _is_empty,
    ReasonCode.CARD_INSUFFICIENT_MEMORY: _has_memory,
    ReasonCode.CARD_INSUFFICIENT_CORE: _has_cores,
}
"""Would the device do by the numbers that it had before the attempt?"""
_BY_CODE: Final[Mapping[str, Callable[[Sequence[DeviceLog]], Numbers | None]]] = {
    ReasonCode.CARD_NOT_HEALTH: _devices,
    ReasonCode.CARD_CORDONED: _devices,
    ReasonCode.CARD_TYPE_MISMATCH: _models,
    ReasonCode.CARD_TIME_SLICING_EXHAUSTED: _slots,
    ReasonCode.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT: _slots,
    ReasonCode.CARD_INSUFFICIENT_MEMORY: _free_memory,
    ReasonCode.CARD_INSUFFICIENT_CORE: _free_cores,
    ReasonCode.ALLOCATED_CARDS_INSUFFICIENT_REQUEST: _suitable,
}
