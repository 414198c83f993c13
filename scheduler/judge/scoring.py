"""In which order a node's cards are tried, and how nodes compare (HAMi's `gpu_policy.go`, `node_policy.go`).

HAMi sorts a node's cards and takes them from the end of the list; what is computed here is the order of trying itself.
Its sort is stable for up to 12 cards and not above; ours is always stable, so equal cards are tried last first.
All scores are 32-bit floats with HAMi's order of operations: equal scores there are equal here.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scheduler.judge.device_matrix import Bools, Cards, Ints
from scheduler.judge.device_request import Ask, policy_words
from scheduler.judge.pod_annotations import Weights, Wishes

_TEN = np.float32(10)
_SORT_WORDS = ("binpack", "spread", "mutex", "numa")

Key = tuple[NDArray[Any], bool]
"""What to compare, shape (slots, n), and whether the larger is tried first."""


def device_scores(cards: Cards, ask: Ask, weights: Weights, is_bare_type: Bools) -> NDArray[np.float32]:
    """Score of each card, shape (slots, n): weighted used shares of slots, cores and memory, times ten.

    is_bare_type, shape (slots, n): the card's type is exactly "NVIDIA"; only there the request itself is added in.
    """
    asked: tuple[Ints | int, ...] = (1, ask.cores, ask.memory_of(cards.total_memory))
    used = (cards.used_slots, cards.used_cores, cards.used_memory)
    totals = (cards.total_slots, cards.total_cores, cards.total_memory)
    shares = [
        _share(np.where(is_bare_type, held + more, held), total)
        for held, more, total in zip(used, asked, totals, strict=True)
    ]
    known = (cards.total_slots != 0) & (cards.total_cores != 0) & (cards.total_memory != 0)
    with np.errstate(invalid="ignore"):  # shares of cards without any total; they score 0
        slot, core, memory = (
            np.float32(weight) * share
            for weight, share in zip((weights.slot, weights.core, weights.memory), shares, strict=True)
        )
        scores = _ten_times(slot + core + memory)
    scores[~known] = 0
    return scores


def _ten_times(shares: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(shares * _TEN, np.float32)


def _share(part: Ints, whole: Ints) -> NDArray[np.float32]:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(part.astype(np.float32) / whole.astype(np.float32), np.float32)


def trying_order(cards: Cards, scores: NDArray[np.float32], wishes: Wishes) -> Ints:
    """For each node the slots in the order they are tried, shape (slots, n)."""
    slots = len(cards.rows)
    order = np.broadcast_to(np.arange(slots)[::-1, None], cards.rows.shape)
    for values, is_descending in reversed(list(_keys(cards, scores, wishes))):
        along = np.take_along_axis(values, order, axis=0)
        step = np.argsort(-along if is_descending else along, axis=0, kind="stable")
        order = np.take_along_axis(order, step, axis=0)
    return order


def _keys(cards: Cards, scores: NDArray[np.float32], wishes: Wishes) -> Iterator[Key]:
    words = policy_words(wishes.device_policy)
    chain = [word for word in words if word in _SORT_WORDS]
    if "," in wishes.device_policy or words == ("numa",):
        yield from _chain_keys(cards, scores, chain or ["spread"], wishes.numa_bind)
    elif words == ("mutex",):
        yield (cards.used_slots, False)
        yield (cards.numa, True)
    elif wishes.numa_bind:
        is_binpack = words == ("binpack",)
        yield (cards.numa, not is_binpack)
        yield (scores, is_binpack)
    else:
        yield (scores, words == ("binpack",))
        yield (cards.numa, True)


def _chain_keys(cards: Cards, scores: NDArray[np.float32], chain: list[str], numa_bind: bool) -> Iterator[Key]:
    if numa_bind:
        yield (cards.numa, True)
    for word in chain:
        if word == "numa":
            yield (cards.numa, True)
        elif word == "mutex":
            yield (cards.used_slots, False)
        else:
            yield (scores, word == "binpack")
    yield (cards.index, True)


def node_scores(used: Sequence[Ints], totals: Sequence[Ints]) -> NDArray[np.float32]:
    """Score of each node, shape (n,), from the sums over all its devices of slots, cores and memory."""
    slot, core, memory = (_share(held, total) for held, total in zip(used, totals, strict=True))
    with np.errstate(invalid="ignore"):  # a node without any total has no number for a score, as with HAMi
        return _ten_times(slot + core + memory)
