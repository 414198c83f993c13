"""From verdicts in matrices to the flat, node-by-node rows of a ContainerJudgement, and to typed refusals."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.fit.devices.device_matrix import DeviceMatrix, Ints
from engine.fit.judge.checks import verdict_codes
from engine.fit.judge.checks.reference_fit import ReferenceFit
from engine.fit.judge.decision import ContainerJudgement, NodeRefusal
from engine.hami.reason_codes import ReasonCode


@dataclass(slots=True)
class PartialJudgement:
    """The judgement of a part of the nodes: a `ContainerJudgement` with a row count per node instead of offsets."""

    nodes: Ints
    rows: Ints  # (m,) rows per node
    passed: NDArray[np.bool_]
    devices: Ints
    is_short: NDArray[np.bool_]  # (m,) refused as NodeInsufficientDevice, before any device was tried
    whole: NDArray[np.bool_]
    device: Ints
    kind: Ints
    numa: Ints
    verdict: NDArray[np.uint8]
    requested_memory_mib: Ints
    used_memory_mib: Ints
    used_cores: Ints
    used_slots: Ints


_PER_NODE = ("nodes", "rows", "passed", "devices", "is_short", "whole")
_PER_ROW = tuple(field.name for field in fields(PartialJudgement) if field.name not in _PER_NODE)


def part_of_matrix(
    matrix: DeviceMatrix,
    verdict: NDArray[np.uint8],
    passed: NDArray[np.bool_],
    is_short: NDArray[np.bool_],
    requested_memory: Ints,
) -> PartialJudgement:
    """A row for every device, in registration order. Matrices are (slots, n), is_short and passed (n,)."""
    # Transposed, so that the flat columns come node by node; a full matrix needs no mask.
    slots = np.broadcast_to(np.arange(len(matrix.rows))[:, None], matrix.rows.shape)
    is_full = bool(matrix.valid.all())
    valid = matrix.valid.T

    def rows(matrix: NDArray[Any]) -> NDArray[Any]:
        return matrix.T.flatten() if is_full else matrix.T[valid]

    return PartialJudgement(
        matrix.nodes,
        matrix.judged,
        passed,
        matrix.judged,
        is_short,
        matrix.judged == matrix.size,
        *(rows(matrix) for matrix in (slots, matrix.kind, matrix.numa, verdict, requested_memory)),
        *(rows(matrix) for matrix in _numbers(matrix)),
    )


def part_of_node_fits(
    matrix: DeviceMatrix, node_fits: Sequence[ReferenceFit], requested_memory: Ints
) -> PartialJudgement:
    """A row for each look at a device, sorted by device; node_fits[i] is about column i of the matrices."""
    looks = [sorted(node_fit.looks, key=lambda look: look[0]) for node_fit in node_fits]
    counts = np.array([len(rows) for rows in looks], np.int64)
    flat = [look for rows in looks for look in rows]
    device = np.fromiter((position for position, _ in flat), np.int64, len(flat))
    verdict = np.fromiter((code for _, code in flat), np.uint8, len(flat))
    at = (device, np.repeat(np.arange(len(node_fits)), counts))
    return PartialJudgement(
        matrix.nodes,
        counts,
        np.array([node_fit.passed for node_fit in node_fits], np.bool_),
        np.array(
            [
                judged if node_fit.out_of is None else node_fit.out_of
                for judged, node_fit in zip(matrix.judged.tolist(), node_fits, strict=True)
            ],
            np.int64,
        ),
        np.zeros(len(node_fits), np.bool_),
        (counts == matrix.size) & (matrix.judged == matrix.size),
        device,
        matrix.kind[at],
        matrix.numa[at],
        verdict,
        requested_memory[at],
        *(matrix[at] for matrix in _numbers(matrix)),
    )


def _numbers(matrix: DeviceMatrix) -> tuple[Ints, ...]:
    return matrix.used_memory, matrix.used_cores, matrix.used_slots


def join(parts: Sequence[PartialJudgement]) -> PartialJudgement:
    """All parts as one, with the nodes in ascending order."""
    if len(parts) == 1:
        return parts[0]
    nodes = np.concatenate([part.nodes for part in parts])
    counts = np.concatenate([part.rows for part in parts])
    order = np.argsort(nodes, kind="stable")
    row_order = np.argsort(np.repeat(nodes, counts), kind="stable")
    per_node = {name: np.concatenate([getattr(part, name) for part in parts])[order] for name in _PER_NODE}
    per_row = {name: np.concatenate([getattr(part, name) for part in parts])[row_order] for name in _PER_ROW}
    return PartialJudgement(**per_node, **per_row)


def judgement(container: int, part: PartialJudgement) -> ContainerJudgement:
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


def refusals_of(part: PartialJudgement) -> tuple[list[NodeRefusal], Ints, Ints]:
    """The distinct refusals of a part; the positions in `part.nodes` of the m refused nodes; their index, shape (m,).

    Thousands of nodes share a few refusals, so each refusal becomes one object and the nodes refer to it.
    """
    refused = np.flatnonzero(~part.passed)
    counts = _counts(part)[refused]
    keys = np.column_stack([counts, part.devices[refused], part.is_short[refused]])
    first, which = _distinct(keys)
    return [_refusal(keys[i]) for i in first.tolist()], refused, which


def _counts(part: PartialJudgement) -> Ints:
    """How often each node's rows carry each code, shape (m, codes)."""
    size = len(verdict_codes.VERDICTS)
    owners = np.repeat(np.arange(len(part.nodes)) * size, part.rows)
    flat = np.bincount(owners + part.verdict, minlength=len(part.nodes) * size)
    return flat.reshape(-1, size)


def _distinct(keys: Ints) -> tuple[Ints, Ints]:
    """The index of the first of each distinct row of `keys`, and for each row which of those it equals.

    Each row is packed into one integer first, since `np.unique(axis=0)` would compare rows element by element.
    """
    if not len(keys):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    packed, span = np.zeros(len(keys), np.int64), 1
    for column in keys.T:
        radix = int(column.max()) + 1
        if span * radix > 2**62:
            # No digits are left in 64 bits: number the distinct values so far and continue with those numbers.
            packed = np.unique(packed, return_inverse=True)[1]
            span = int(packed.max()) + 1
        packed, span = packed * radix + column, span * radix
    _, first, which = np.unique(packed, return_index=True, return_inverse=True)
    return first, which


def _refusal(key: Ints) -> NodeRefusal:
    *counts, devices, is_short = key.tolist()
    if is_short:
        return NodeRefusal((), devices, ReasonCode.NODE_INSUFFICIENT_DEVICE.value)
    named = enumerate(counts[verdict_codes.FIRST_REASON :], verdict_codes.FIRST_REASON)
    return NodeRefusal(tuple((verdict_codes.VERDICTS[code], count) for code, count in named if count), devices)
