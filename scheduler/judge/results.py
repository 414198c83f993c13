"""From verdicts in matrices to the flat, node-by-node rows of a ContainerJudgement, and to typed refusals."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hami.reason_codes import ReasonCode
from scheduler.judge import verdict_codes
from scheduler.judge.decision import ContainerJudgement, Refusal
from scheduler.judge.device_matrix import Cards, Ints
from scheduler.judge.reference_fit import Walk


@dataclass(slots=True)
class Part:
    """A run of judged nodes; like ContainerJudgement, with a row count per node instead of offsets."""

    nodes: Ints
    rows: Ints  # (m,) rows per node
    passed: NDArray[np.bool_]
    devices: Ints
    is_short: NDArray[np.bool_]  # (m,) refused as NodeInsufficientDevice, before any card was looked at
    whole: NDArray[np.bool_]
    device: Ints
    kind: Ints
    numa: Ints
    verdict: NDArray[np.uint8]
    asked_memory_mib: Ints
    used_memory_mib: Ints
    used_cores: Ints
    used_slots: Ints


_PER_NODE = ("nodes", "rows", "passed", "devices", "is_short", "whole")
_PER_ROW = tuple(field.name for field in fields(Part) if field.name not in _PER_NODE)


def flat_part(
    cards: Cards, verdict: NDArray[np.uint8], passed: NDArray[np.bool_], is_short: NDArray[np.bool_], asked: Ints
) -> Part:
    """Every device once, in registration order. Matrices are (slots, n)."""
    slots = np.broadcast_to(np.arange(len(cards.rows))[:, None], cards.rows.shape)
    is_full = bool(cards.valid.all())
    valid = cards.valid.T

    def rows(matrix: NDArray[Any]) -> NDArray[Any]:
        return matrix.T.flatten() if is_full else matrix.T[valid]

    return Part(
        cards.nodes,
        cards.judged,
        passed,
        cards.judged,
        is_short,
        cards.judged == cards.size,
        *(rows(matrix) for matrix in (slots, cards.kind, cards.numa, verdict, asked)),
        *(rows(matrix) for matrix in _numbers(cards)),
    )


def looked_part(cards: Cards, walks: Sequence[Walk], asked: Ints) -> Part:
    """A row for each look at a card, sorted by device; walks[i] is about column i of the matrices."""
    looks = [sorted(walk.looks, key=lambda look: look[0]) for walk in walks]
    counts = np.array([len(rows) for rows in looks], np.int64)
    flat = [look for rows in looks for look in rows]
    device = np.fromiter((position for position, _ in flat), np.int64, len(flat))
    verdict = np.fromiter((code for _, code in flat), np.uint8, len(flat))
    at = (device, np.repeat(np.arange(len(walks)), counts))
    return Part(
        cards.nodes,
        counts,
        np.array([walk.passed for walk in walks], np.bool_),
        cards.judged,
        np.zeros(len(walks), np.bool_),
        (counts == cards.size) & (cards.judged == cards.size),
        device,
        cards.kind[at],
        cards.numa[at],
        verdict,
        asked[at],
        *(matrix[at] for matrix in _numbers(cards)),
    )


def _numbers(cards: Cards) -> tuple[Ints, ...]:
    return cards.used_memory, cards.used_cores, cards.used_slots


def join(parts: Sequence[Part]) -> Part:
    """One part of all, nodes in ascending order."""
    if len(parts) == 1:
        return parts[0]
    nodes = np.concatenate([part.nodes for part in parts])
    counts = np.concatenate([part.rows for part in parts])
    order = np.argsort(nodes, kind="stable")
    row_order = np.argsort(np.repeat(nodes, counts), kind="stable")
    per_node = {name: np.concatenate([getattr(part, name) for part in parts])[order] for name in _PER_NODE}
    per_row = {name: np.concatenate([getattr(part, name) for part in parts])[row_order] for name in _PER_ROW}
    return Part(**per_node, **per_row)


def judgement(container: int, part: Part) -> ContainerJudgement:
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(part.rows)])
    per_row = {name: getattr(part, name) for name in _PER_ROW}
    return ContainerJudgement(
        container=container,
        nodes=part.nodes,
        offsets=offsets,
        passed=part.passed,
        devices=part.devices,
        whole=part.whole,
        **per_row,
    )


def refusals_of(part: Part) -> tuple[list[Refusal], Ints, Ints]:
    """The distinct refusals of a part, and per refused node its position in part.nodes and index into them.

    Verdicts are counted per node and code at once: one integer per node holds a small count for every code.
    """
    refused = np.flatnonzero(~part.passed)
    counts = _counts(part)[refused]
    keys = np.column_stack([counts, part.devices[refused], part.is_short[refused]])
    first, which = _distinct(keys)
    return [_refusal(keys[i]) for i in first.tolist()], refused, which


def _counts(part: Part) -> Ints:
    """How often each node's rows carry each code, shape (m, codes)."""
    size = len(verdict_codes.VERDICTS)
    owners = np.repeat(np.arange(len(part.nodes)) * size, part.rows)
    flat = np.bincount(owners + part.verdict, minlength=len(part.nodes) * size)
    return flat.reshape(-1, size)


def _distinct(keys: Ints) -> tuple[Ints, Ints]:
    """Index of the first of each distinct row of `keys`, and for each row which of those it equals."""
    if not len(keys):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    packed, span = np.zeros(len(keys), np.int64), 1
    for column in keys.T:
        radix = int(column.max()) + 1
        if span * radix > 2**62:
            packed = np.unique(packed, return_inverse=True)[1]
            span = int(packed.max()) + 1
        packed, span = packed * radix + column, span * radix
    _, first, which = np.unique(packed, return_index=True, return_inverse=True)
    return first, which


def _refusal(key: Ints) -> Refusal:
    *counts, devices, is_short = key.tolist()
    if is_short:
        return Refusal((), devices, ReasonCode.NODE_INSUFFICIENT_DEVICE.value)
    named = enumerate(counts[verdict_codes.FIRST_REASON :], verdict_codes.FIRST_REASON)
    return Refusal(tuple((verdict_codes.VERDICTS[code], count) for code, count in named if count), devices)
