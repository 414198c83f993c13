"""An attempt as events: the cards and nodes that were judged, what about the placement can't be right, the end."""

from collections.abc import Iterator
from functools import lru_cache
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np

from hami.reason_codes import ReasonCode
from ingest.kai.attempt import Attempt, Card, Change, JudgedNode
from schemas.codec.chunking import HEAD_BYTES, refusal_runs, runs
from schemas.codec.records import MAX_VALUE_BYTES
from schemas.events import (
    FITS,
    NOT_REACHED,
    PICKED,
    REFUSED,
    AttemptConcluded,
    AttemptEvent,
    BindConcluded,
    DeviceKind,
    DevicesJudged,
    FindingReported,
    NodesJudged,
    PodRef,
    Provenance,
    Refusal,
    Request,
)
from schemas.events.base import NOT_REPORTED
from schemas.ids import attempt_id

SCHEDULER: Final = "kai-scheduler"
INSUFFICIENT_MEMORY: Final = ReasonCode.CARD_INSUFFICIENT_MEMORY.value
IN_USE: Final = ReasonCode.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT.value
GPU_REASON: Final = "Node didn't have enough resources: GPUs"
RELEASING_MEMORY_COUNTED: Final = "ReleasingMemoryCounted"
MEMORY_CHANGED: Final = "MemoryChanged"

_ROW_BYTES: Final = 96
_NODE_BYTES: Final = 64


class _Told(NamedTuple):
    """One node: its verdict, why it was refused; and of each of its shared cards the group, the card, its verdict."""

    name: str
    verdict: str
    score: float
    groups: list[str]
    cards: list[Card]
    verdicts: list[str]
    devices: int
    refusal: Refusal | None


def events_of(attempt: Attempt, node_count: int = 0) -> Iterator[AttemptEvent]:
    """``node_count`` is how many nodes the session has; 0 where it is not known."""
    head = _head(attempt)
    request = request_of(attempt)
    nodes = [_told(attempt, name, node, request) for name, node in sorted(_all_nodes(attempt).items())]
    devices = list(_devices_judged(head, request, nodes))
    judged = list(_nodes_judged(head, nodes))
    yield from devices
    yield from judged
    yield from _findings(head, attempt)
    if _is_over(attempt):
        yield _concluded(head, attempt, request, nodes, node_count, (devices, judged))
    if attempt.bind_failed_at and attempt.chosen:
        yield BindConcluded(
            **head, node=attempt.chosen, bound=False, error=attempt.bind_error,
            bind_started_at=attempt.bind_failed_at, ended_at=attempt.bind_failed_at,
        )  # fmt: skip


def _head(attempt: Attempt) -> dict[str, Any]:
    namespace, _, name = attempt.pod.partition("/")
    # Without a session nothing but the place in the log tells two attempts of a pod apart that have no time.
    who = "/".join((attempt.pod, attempt.session or f"line {attempt.ordinal}"))
    return {
        "attempt_id": attempt_id(SCHEDULER, who, attempt.started_at),
        "pod": PodRef(namespace=namespace, name=name),
        "scheduler": SCHEDULER,
        "started_at": attempt.started_at,
    }


def _is_over(attempt: Attempt) -> bool:
    """Is it known how it ended? A log that stops, or a level that leaves the end out, does not say."""
    return bool(attempt.is_placed or attempt.fit or attempt.is_allocation_over)


def request_of(attempt: Attempt) -> Request:
    """KAI names no container and prints a request for an amount of memory as 0 GPUs."""
    asked = attempt.asked
    asks_memory = attempt.memory_mib is not None or bool(attempt.job_asked and attempt.job_asked.devices)
    count = asked.devices if asked and asked.devices else int(asks_memory)
    share = round(asked.share * 100) if asked and asked.devices and asked.share < 1 else None
    memory = attempt.memory_mib if share is None else None
    whole = 100 if count and share is None and memory is None and asked and asked.devices else 0
    return Request(
        container="", vendor="NVIDIA" if count else "", count=count,
        memory_mib=memory, memory_percent=share or (100 if whole else None), cores_percent=whole,
    )  # fmt: skip


def _all_nodes(attempt: Attempt) -> dict[str, JudgedNode]:
    """The nodes that were looked at, and those that only the fit error names."""
    nodes = dict(attempt.judged())
    for name, why in (attempt.fit.nodes if attempt.fit else {}).items():
        node = nodes.setdefault(name, JudgedNode())
        if not (node.is_taken and attempt.is_placed):
            node.is_refused, node.reason, node.detail = True, why.reason, why.detail
    return nodes


def _told(attempt: Attempt, name: str, node: JudgedNode, request: Request) -> _Told:
    is_chosen = attempt.is_placed and name == attempt.chosen
    is_refused = not node.is_taken and (node.is_refused or node.is_gpu_refused or _is_blank(node, attempt))
    groups = sorted(node.cards)
    cards = [node.cards[group] for group in groups]
    verdicts = _verdicts(attempt, node, request, is_refused, attempt.groups if is_chosen else [])
    devices = max(node.card_count, len(groups))
    refusal = _refusal(node, verdicts, devices) if is_refused else None
    verdict = PICKED if is_chosen else REFUSED if is_refused else FITS
    return _Told(name, verdict, node.score if not is_refused else 0.0, groups, cards, verdicts, devices, refusal)


def _is_blank(node: JudgedNode, attempt: Attempt) -> bool:
    """A node without a score or a card that fits, in an attempt that found none: looked at in vain."""
    return not (node.score or node.fitting or attempt.chosen)


def _verdicts(attempt: Attempt, node: JudgedNode, request: Request, is_refused: bool, picked: list[str]) -> list[str]:
    """Of the node's cards, in the order of their groups."""
    is_whole = request.memory_percent == 100
    if is_refused and not is_whole and attempt.memory_mib is None and not picked:
        # Nothing is known of a card that tells it from the others.
        return [INSUFFICIENT_MEMORY if node.is_gpu_refused else NOT_REACHED] * len(node.cards)
    return [
        _verdict(attempt, node, group, is_whole=is_whole, is_refused=is_refused, picked=picked)
        for group in sorted(node.cards)
    ]


def _verdict(
    attempt: Attempt, node: JudgedNode, group: str, *, is_whole: bool, is_refused: bool, picked: list[str]
) -> str:
    if group in picked:
        return PICKED
    if not is_refused and group in node.fitting:
        return FITS
    # A card that is shared already can't be had as a whole.
    return IN_USE if is_whole else _shared_verdict(attempt, node, node.cards[group], is_refused)


def _shared_verdict(attempt: Attempt, node: JudgedNode, card: Card, is_refused: bool) -> str:
    """KAI refuses a shared card for its memory alone. Without numbers the refusal of the node's GPUs says it."""
    room = _room(card)
    if room is not None and attempt.memory_mib is not None:
        if attempt.memory_mib > room + (card.releasing_mib or 0):
            return INSUFFICIENT_MEMORY
        return FITS if not is_refused else NOT_REACHED
    if (is_refused and node.is_gpu_refused) or (not is_refused and node.fitting):
        return INSUFFICIENT_MEMORY
    return NOT_REACHED


def _room(card: Card) -> int | None:
    """MiB that nobody holds now; None where it is not known."""
    if card.total_mib is None or card.allocated_mib is None:
        return None
    return card.total_mib - card.allocated_mib


def _refusal(node: JudgedNode, verdicts: list[str], devices: int) -> Refusal:
    memory, in_use = verdicts.count(INSUFFICIENT_MEMORY), verdicts.count(IN_USE)
    if memory or in_use:
        return _counted(memory, in_use, devices)
    return Refusal(bare=node.reason or GPU_REASON, cause=node.detail)


@lru_cache(maxsize=256)
def _counted(memory: int, in_use: int, devices: int) -> Refusal:
    """Nodes of one kind are refused with the same counts."""
    counts = {INSUFFICIENT_MEMORY: memory, IN_USE: in_use}
    return Refusal(counts={code: count for code, count in counts.items() if count}, devices=devices)


def _devices_judged(head: dict[str, Any], request: Request, nodes: list[_Told]) -> Iterator[DevicesJudged]:
    shown = [(place, node) for place, node in enumerate(nodes) if node.groups]
    sizes = np.array([len(node.groups) * _ROW_BYTES + len(node.name) + 24 for _, node in shown], dtype=np.int64)
    for part, cut in enumerate(runs(sizes)):
        yield DevicesJudged(**head, part=part, container=0, request=request, **_columns(shown[cut]))


def _columns(nodes: list[tuple[int, _Told]]) -> dict[str, Any]:
    """A row for each card. Flattened by ``chain`` and ``map``: this is a fifth of the time of reading."""
    rows = list(chain.from_iterable(node.verdicts for _, node in nodes))
    cards = list(chain.from_iterable(node.cards for _, node in nodes))
    card_totals = [card.total_mib for card in cards]
    verdicts = sorted(set(rows))
    totals = sorted(set(card_totals), key=lambda total: (total is None, total or 0))
    verdict_codes = {verdict: code for code, verdict in enumerate(verdicts)}
    kind_codes = {total: code for code, total in enumerate(totals)}
    not_said = [NOT_REPORTED] * len(rows)
    return {
        "verdicts": verdicts,
        "kinds": [DeviceKind(memory_mib=total) for total in totals],
        "nodes": [node.name for _, node in nodes],
        "node_index": [place for place, _ in nodes],
        "devices": [node.devices for _, node in nodes],
        "rows": [len(node.groups) for _, node in nodes],
        "verdict": list(map(verdict_codes.__getitem__, rows)),
        "uuid": list(chain.from_iterable(node.groups for _, node in nodes)),
        "kind": list(map(kind_codes.__getitem__, card_totals)),
        "numa": not_said,
        "memory_used_mib": [NOT_REPORTED if card.allocated_mib is None else card.allocated_mib for card in cards],
        "cores_used_percent": not_said,
        "slots_used": not_said,
    }


def _nodes_judged(head: dict[str, Any], nodes: list[_Told]) -> Iterator[NodesJudged]:
    refusals: dict[tuple[Any, ...], int] = {}
    table: list[Refusal] = []
    codes = []
    for node in nodes:
        if node.refusal is None:
            codes.append(-1)
            continue
        codes.append(refusals.setdefault(_content(node.refusal), len(table)))
        if codes[-1] == len(table):
            table.append(node.refusal)
    if not nodes:
        return
    sizes = np.array([len(node.name.encode()) + _NODE_BYTES for node in nodes], dtype=np.int64)
    refusal = np.array(codes, dtype=np.int64)
    for part, cut in enumerate(refusal_runs(sizes, table, refusal, MAX_VALUE_BYTES - HEAD_BYTES)):
        yield NodesJudged(**head, part=part, **_node_columns(nodes, table, codes, cut))


def _content(refusal: Refusal) -> tuple[Any, ...]:
    return refusal.bare, refusal.cause, refusal.devices, *refusal.counts.items()


def _node_columns(nodes: list[_Told], table: list[Refusal], codes: list[int], cut: slice) -> dict[str, Any]:
    shown = nodes[cut]
    used = sorted({code for code in codes[cut] if code >= 0})
    places = {code: place for place, code in enumerate(used)} | {-1: -1}
    verdicts = sorted({node.verdict for node in shown})
    return {
        "containers": [""],
        "verdicts": verdicts,
        "refusals": [table[code] for code in used],
        "nodes": [node.name for node in shown],
        "node_index": list(range(cut.start, cut.start + len(shown))),
        "verdict": [verdicts.index(node.verdict) for node in shown],
        "score": [node.score for node in shown],
        "refused_by": [0 if node.refusal else -1 for node in shown],
        "refusal": [places[code] for code in codes[cut]],
    }


def _concluded(
    head: dict[str, Any],
    attempt: Attempt,
    request: Request,
    nodes: list[_Told],
    node_count: int,
    records: tuple[list[DevicesJudged], list[NodesJudged]],
) -> AttemptConcluded:
    fit = attempt.fit
    counts = dict(fit.counts) if fit and not attempt.is_placed else {}
    names_refused = any(node.verdict == REFUSED for node in nodes)
    is_reasoned = names_refused and not (fit and fit.gang)
    devices, judged = records
    return AttemptConcluded(
        **head,
        ended_at=attempt.last,
        requests=[request],
        offered_nodes=max(node_count, len(nodes), *counts.values(), 0),
        judged_nodes=len(nodes),
        judged_devices=sum(len(node.groups) for node in nodes),
        device_records=len(devices),
        node_records=len(judged),
        chosen=attempt.chosen if attempt.is_placed else None,
        nominated=attempt.chosen if attempt.is_placed and attempt.is_pipelined else "",
        error="" if attempt.is_placed or is_reasoned or (counts and not (fit and fit.gang)) else _error(attempt),
        refused_nodes={} if names_refused else counts,
        scheduler_message="" if attempt.is_placed or not fit else fit.text,
        provenance=Provenance(
            source="kai-log", levels=sorted(attempt.levels), not_reported=_not_said(attempt, request, nodes)
        ),
    )


def _not_said(attempt: Attempt, request: Request, nodes: list[_Told]) -> list[str]:
    """What the level that was logged, or KAI itself, leaves open."""
    cards = [card for node in nodes for card in node.cards]
    is_counted = bool(attempt.fit and attempt.fit.counts and not attempt.is_placed)
    gaps = {
        "which nodes were looked at (level 6)": not nodes or (is_counted and not attempt.judged()),
        "the memory of the cards (level 8, node list)": any(_room(card) is None for card in cards),
        "the memory asked for": request.count > 0 and request.memory_mib is None and request.memory_percent is None,
        "the request (level 6)": not request.count and attempt.is_placed,
    }
    return [gap for gap, is_open in gaps.items() if is_open]


def _error(attempt: Attempt) -> str:
    return attempt.fit.text if attempt.fit else ""


def _findings(head: dict[str, Any], attempt: Attempt) -> Iterator[FindingReported]:
    if attempt.is_placed:
        for group in attempt.groups:
            yield from _releasing_counted(head, attempt, group)
    for change in attempt.changes:
        yield FindingReported(
            **head, finding=MEMORY_CHANGED, found_at=change.time, node=change.node, device=change.group,
            numbers=_change_numbers(change), evidence=change.lines,
        )  # fmt: skip


def _releasing_counted(head: dict[str, Any], attempt: Attempt, group: str) -> Iterator[FindingReported]:
    judged = attempt.judged().get(attempt.chosen)
    card = attempt.taken.get(group) or (judged.cards.get(group) if judged else None)
    if card is None or not card.releasing_mib:
        return
    room = _room(card)
    if room is not None and attempt.memory_mib is not None and attempt.memory_mib <= room:
        return
    if not attempt.is_pipelined and (room is None or attempt.memory_mib is None):
        return  # Whether it needed what is being released can't be told.
    numbers = {
        "memory_total_mib": card.total_mib, "memory_allocated_mib": card.allocated_mib,
        "memory_releasing_mib": card.releasing_mib, "memory_requested_mib": attempt.memory_mib,
        "memory_available_mib": room, "is_waiting": int(attempt.is_pipelined),
    }  # fmt: skip
    yield FindingReported(
        **head, finding=RELEASING_MEMORY_COUNTED, found_at=attempt.last, node=attempt.chosen, device=group,
        numbers={name: number for name, number in numbers.items() if number is not None},
        evidence=[line for line in (card.line, attempt.taking_line) if line],
    )  # fmt: skip


def _change_numbers(change: Change) -> dict[str, int]:
    said = {
        "memory_allocated_before_mib": change.before.allocated_mib,
        "memory_allocated_after_mib": change.after.allocated_mib,
        "memory_releasing_before_mib": change.before.releasing_mib,
        "memory_releasing_after_mib": change.after.releasing_mib,
    }
    return {name: number for name, number in said.items() if number is not None}


def is_complete(attempt: Attempt) -> bool:
    """Does the log say how it ended, and which nodes were looked at? Levels below 6 name no nodes."""
    return _is_over(attempt) and bool(attempt.judged() or attempt.is_told_by_tags)
