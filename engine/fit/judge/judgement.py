"""Judgement of one container: from verdicts in matrices to flat rows, node by node, and to typed refusals.

`BatchEvaluation` makes a judgement of each part of the nodes, `decide` joins the parts, `Decision` holds the result.
`engine.fit.events` cuts it into `DevicesJudged` records.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.fit.devices.device_matrix import DeviceMatrix, Ints
from engine.fit.judge.checks import verdict_codes
from engine.fit.judge.checks.reference_fit import ReferenceFit
from engine.hami.reason_codes import ReasonCode
from engine.summaries.text import write_reasons


class NodeRefusal(NamedTuple):
    """Refusal of a node: counts (reason code, X) out of Y devices, or one bare code without counts.

    bare: NodeInsufficientDevice, "node unregistered" or NodeOfAnotherScheduler; then counts is empty and devices is the
    node's device count.
    """

    counts: tuple[tuple[str, int], ...]
    devices: int
    bare: str = ""

    @property
    def text(self) -> str:
        """HAMi's reason string, `X/Y Code, ...` or the bare code."""
        return self.bare or write_reasons(dict(self.counts), self.devices)


@dataclass(frozen=True, eq=False)
class ContainerJudgement:
    """Verdicts on one container against the nodes that passed all containers before it.

    m nodes, r rows; the rows of `nodes[i]` are `[offsets[i]:offsets[i + 1]]`. A row is a device, in the order in which
    the node registers its devices. Only where `is_complete[i]` is False (MIG devices) may a device have several rows,
    one for each time it was tried; then `device` names the device of a row. The refusals among a node's rows add up to
    exactly its typed refusal. Numbers are those at the moment of the decision, before this container's own picks.
    """

    container: int  # index into Decision.containers
    nodes: Ints  # (m,) indices into Decision.node_names, ascending
    rows: Ints  # (m,) rows per node
    passed: NDArray[np.bool_]  # (m,)
    devices: Ints  # (m,) the Y of X/Y
    is_short: NDArray[np.bool_]  # (m,) refused as NodeInsufficientDevice, before any device was tried
    is_complete: NDArray[np.bool_]  # (m,) the rows are the fragment's devices, each once, in its order
    device: Ints  # (r,) position among the node's own devices
    kind: Ints  # (r,) index into Decision.kinds
    numa: Ints  # (r,)
    verdict: NDArray[np.uint8]  # (r,) index into verdict_codes.VERDICTS
    requested_memory_mib: Ints  # (r,) a percentage is resolved per device
    used_memory_mib: Ints
    used_cores: Ints
    used_slots: Ints

    @cached_property
    def offsets(self) -> Ints:
        """Bounds of the rows of each node, shape (m + 1,)."""
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.rows)])


_PER_NODE = ("nodes", "rows", "passed", "devices", "is_short", "is_complete")
_PER_ROW = tuple(field.name for field in fields(ContainerJudgement) if field.name not in ("container", *_PER_NODE))


def flatten_matrix(
    container: int,
    matrix: DeviceMatrix,
    verdict: NDArray[np.uint8],
    passed: NDArray[np.bool_],
    is_short: NDArray[np.bool_],
    requested_memory: Ints,
) -> ContainerJudgement:
    """Flatten matrices to a row for every device, in registration order.

    Matrices are (slots, n), is_short and passed (n,).
    """
    # Transposed, so that the flat columns come node by node; a full matrix needs no mask.
    slots = np.broadcast_to(np.arange(len(matrix.rows))[:, None], matrix.rows.shape)
    is_full = bool(matrix.valid.all())
    valid = matrix.valid.T

    def select_rows(matrix: NDArray[Any]) -> NDArray[Any]:
        return matrix.T.flatten() if is_full else matrix.T[valid]

    return ContainerJudgement(
        container,
        matrix.nodes,
        matrix.judged,
        passed,
        matrix.judged,
        is_short,
        matrix.judged == matrix.size,
        *(select_rows(matrix) for matrix in (slots, matrix.kind, matrix.numa, verdict, requested_memory)),
        *(select_rows(matrix) for matrix in _list_used(matrix)),
    )


def flatten_node_fits(
    container: int, matrix: DeviceMatrix, node_fits: Sequence[ReferenceFit], requested_memory: Ints
) -> ContainerJudgement:
    """Flatten fits to a row for each look at a device, sorted by device.

    node_fits[i] is about column i of the matrices.
    """
    looks = [sorted(node_fit.looks, key=lambda look: look[0]) for node_fit in node_fits]
    counts = np.array([len(rows) for rows in looks], np.int64)
    flat = [look for rows in looks for look in rows]
    device = np.fromiter((position for position, _ in flat), np.int64, len(flat))
    verdict = np.fromiter((code for _, code in flat), np.uint8, len(flat))
    cells = (device, np.repeat(np.arange(len(node_fits)), counts))
    return ContainerJudgement(
        container,
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
        matrix.kind[cells],
        matrix.numa[cells],
        verdict,
        requested_memory[cells],
        *(matrix[cells] for matrix in _list_used(matrix)),
    )


def _list_used(matrix: DeviceMatrix) -> tuple[Ints, ...]:
    return matrix.used_memory, matrix.used_cores, matrix.used_slots


def join_judgements(parts: Sequence[ContainerJudgement]) -> ContainerJudgement:
    """Join judgements of one container, with the nodes in ascending order."""
    if len(parts) == 1:
        return parts[0]
    nodes = np.concatenate([part.nodes for part in parts])
    counts = np.concatenate([part.rows for part in parts])
    order = np.argsort(nodes, kind="stable")
    row_order = np.argsort(np.repeat(nodes, counts), kind="stable")
    per_node = {name: np.concatenate([getattr(part, name) for part in parts])[order] for name in _PER_NODE}
    per_row = {name: np.concatenate([getattr(part, name) for part in parts])[row_order] for name in _PER_ROW}
    return ContainerJudgement(parts[0].container, **per_node, **per_row)


def list_refusals(judgement: ContainerJudgement) -> tuple[list[NodeRefusal], Ints, Ints]:
    """List the distinct refusals, the positions in `nodes` of the m refused nodes, and the refusal of each, shape (m,).

    Thousands of nodes share a few refusals, so each refusal becomes one object and the nodes refer to it.
    """
    refused = np.flatnonzero(~judgement.passed)
    counts = _count_codes(judgement)[refused]
    keys = np.column_stack([counts, judgement.devices[refused], judgement.is_short[refused]])
    first, which = _find_distinct(keys)
    return [_build_refusal(keys[i]) for i in first.tolist()], refused, which


def _count_codes(judgement: ContainerJudgement) -> Ints:
    """Count how often each node's rows carry each code, shape (m, codes)."""
    size = len(verdict_codes.VERDICTS)
    owners = np.repeat(np.arange(len(judgement.nodes)) * size, judgement.rows)
    flat = np.bincount(owners + judgement.verdict, minlength=len(judgement.nodes) * size)
    return flat.reshape(-1, size)


def _find_distinct(keys: Ints) -> tuple[Ints, Ints]:
    """Find the index of the first of each distinct row of `keys`, and for each row which of those it equals.

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


def _build_refusal(key: Ints) -> NodeRefusal:
    *counts, devices, is_short = key.tolist()
    if is_short:
        return NodeRefusal((), devices, ReasonCode.NODE_INSUFFICIENT_DEVICE.value)
    named = enumerate(counts[verdict_codes.FIRST_REASON :], verdict_codes.FIRST_REASON)
    return NodeRefusal(tuple((verdict_codes.VERDICTS[code], count) for code, count in named if count), devices)
