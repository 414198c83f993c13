"""Order in which a node's devices are tried, and comparison of nodes (HAMi's `gpu_policy.go`, `node_policy.go`).

HAMi sorts a node's devices and takes them from the end of the list; these functions return the order of trying itself.
Go's sort is stable up to 12 elements only; ours is always stable, so among equal devices the last is tried first. All
scores are 32-bit floats with HAMi's order of operations: scores that are equal there are equal here.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.fit.devices.device_matrix import Bools, DeviceMatrix, Ints
from engine.fit.judge.request.device_request import DeviceRequest, split_policy
from engine.fit.judge.request.pod_annotations import PodAnnotations, ScoringWeights

_TEN = np.float32(10)
_SORT_WORDS = ("binpack", "spread", "numa")
"""The words of a comma chain that score nodes; its others (mutex, topology-aware) only choose among the devices."""

SCORE_TERMS: Final = ("slots", "cores", "memory")
"""Terms of a node's score: ten times the used share of each, over all its devices."""
VENDOR_TERM: Final = "vendor"
"""Term of the devices' vendors, such as Ascend for devices of one network; a term where it is not 0."""

Key = tuple[NDArray[Any], bool]
"""Values to compare, shape (slots, n), and whether the larger one is tried first."""


def score_devices(
    matrix: DeviceMatrix, request: DeviceRequest, weights: ScoringWeights, counts_request: Bools
) -> NDArray[np.float32]:
    """Score each device, shape (slots, n): weighted used shares of slots, cores and memory, times ten.

    counts_request, shape (slots, n): the request itself is added to what is used. HAMi up to v2.10 does so only where
    `device.Type == "NVIDIA"` (gpu_policy.go), which holds in its unit tests and for no real model.
    """
    requested: tuple[Ints | int, ...] = (1, request.scored_cores, request.resolve_scored_memory(matrix.total_memory))
    used = (matrix.used_slots, matrix.used_cores, matrix.used_memory)
    totals = (matrix.total_slots, matrix.total_cores, matrix.total_memory)
    shares = [
        _divide(np.where(counts_request, held + more, held), total)
        for held, more, total in zip(used, requested, totals, strict=True)
    ]
    has_totals = (matrix.total_slots != 0) & (matrix.total_cores != 0) & (matrix.total_memory != 0)
    with np.errstate(invalid="ignore"):  # 0/0 where a device has a total of 0; such a device scores 0 below
        slot, core, memory = (
            np.float32(weight) * share
            for weight, share in zip((weights.slot, weights.core, weights.memory), shares, strict=True)
        )
        scores = _multiply_by_ten(slot + core + memory)
    scores[~has_totals] = 0
    return scores


def _multiply_by_ten(shares: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(shares * _TEN, np.float32)


def _divide(amount: Ints, total: Ints) -> NDArray[np.float32]:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(amount.astype(np.float32) / total.astype(np.float32), np.float32)


def build_first_order(matrix: DeviceMatrix) -> Ints:
    """Build the order of a list that was not sorted: the last registered device first; shape (slots, n).

    HAMi takes devices from the end of its list.
    """
    return np.broadcast_to(np.arange(len(matrix.rows))[::-1, None], matrix.rows.shape)


def derive_order(
    matrix: DeviceMatrix, scores: NDArray[np.float32], annotations: PodAnnotations, before: Ints | None = None
) -> Ints:
    """Derive for each node the slots in the order in which they are tried, shape (slots, n).

    before: the order for the app container before; HAMi sorts the same list again, so equal devices keep that order.
    """
    order = build_first_order(matrix) if before is None else before
    # Sorted by the least important key first: a stable sort by the next key keeps that order among equals.
    for values, is_descending in reversed(list(_list_keys(matrix, scores, annotations))):
        along = np.take_along_axis(values, order, axis=0)
        step = np.argsort(-along if is_descending else along, axis=0, kind="stable")
        order = np.take_along_axis(order, step, axis=0)
    return order


def _list_keys(matrix: DeviceMatrix, scores: NDArray[np.float32], annotations: PodAnnotations) -> Iterator[Key]:
    # A single word counts only as it stands: HAMi sorts " binpack" as spread.
    word = annotations.device_policy
    chain = [word for word in split_policy(word) if word in _SORT_WORDS]
    # HAMi treats a bare `numa` as a chain, and a chain without a sort word as `spread`.
    if "," in word or word == "numa":
        yield from _list_chain_keys(matrix, scores, chain or ["spread"], annotations.sorts_by_numa)
    # HAMi's list descends in use, so that its end, where it begins, has the free devices.
    elif word == "mutex":
        yield (matrix.used_slots, False)
        yield (matrix.numa, True)
    elif annotations.sorts_by_numa:
        # HAMi's list: for spread NUMA ascends and scores descend, for binpack the reverse; tried from its end.
        is_binpack = word == "binpack"
        yield (matrix.numa, not is_binpack)
        yield (scores, is_binpack)
    else:
        yield (scores, word == "binpack")
        yield (matrix.numa, True)


def _list_chain_keys(
    matrix: DeviceMatrix, scores: NDArray[np.float32], chain: list[str], numa_bind: bool
) -> Iterator[Key]:
    if numa_bind:
        yield (matrix.numa, True)
    for word in chain:
        if word == "numa":
            yield (matrix.numa, True)
        else:
            yield (scores, word == "binpack")
    # HAMi's list ascends by index among equals, so from its end the largest index comes first.
    yield (matrix.index, True)


class NodeScores(NamedTuple):
    """Scores of nodes, shape (n,). terms: by name, the summands of the score, which is rounded to 32 bits."""

    scores: NDArray[np.float32]
    terms: Mapping[str, NDArray[np.float32]]


def score_nodes(used: Sequence[Ints], totals: Sequence[Ints]) -> NodeScores:
    """Score nodes by the sums over all their devices of slots, cores and memory, in this order."""
    shares = [_divide(held, total) for held, total in zip(used, totals, strict=True)]
    slot, core, memory = shares
    # As with HAMi, a node whose slots, cores or memory add up to 0 scores 0.
    has_totals = np.logical_and.reduce([total != 0 for total in totals])
    with np.errstate(invalid="ignore"):  # 0/0 on such a node
        # Multiplied once, after the sum, as HAMi does: the terms together may differ in the last digit.
        scores = np.where(has_totals, _multiply_by_ten(slot + core + memory), np.float32(0))
        terms = [np.where(has_totals, _multiply_by_ten(share), np.float32(0)) for share in shares]
    return NodeScores(scores, dict(zip(SCORE_TERMS, terms, strict=True)))
