"""One container against the cards of all nodes at once.

Codes are 0 where a check is passed. Which check comes first is HAMi's order (`Fit` in device.go): health, cordon, type,
NUMA, UUID, slots, mutex, quota, memory, cores.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from scheduler.judge import verdict_codes
from scheduler.judge.device_matrix import Bools, Cards, Ints
from scheduler.judge.device_request import Ask

Codes = NDArray[np.uint8]
T = TypeVar("T", bound=np.generic)


@dataclass(slots=True)
class Checks:
    """The first refusal of each card by the checks that need no history; matrices (slots, n).

    gate: health, cordon, type. early: those and UUID, slots, mutex. late: memory and cores, 0 where early is not.
    memory: MiB asked of each card.
    """

    gate: Codes
    early: Codes
    late: Codes
    memory: Ints

    def only(self, where: Ints) -> "Checks":
        """The nodes at the indices `where`."""
        return Checks(self.gate[:, where], self.early[:, where], self.late[:, where], self.memory[:, where])


@dataclass(slots=True)
class Fit:
    """verdict (slots, n); passed (n,); picks (slots, n): taken."""

    verdict: Codes
    passed: Bools
    picked: Bools


def gate(cards: Cards, accepts_kind: Bools) -> Codes:
    """Health, cordon, type. accepts_kind: per kind of the columns, whether the pod takes its model and mode."""
    code = np.zeros(cards.rows.shape, np.uint8)
    np.putmask(code, ~accepts_kind[cards.kind], verdict_codes.CARD_TYPE_MISMATCH)
    np.putmask(code, cards.is_cordoned, verdict_codes.CARD_CORDONED)
    np.putmask(code, ~cards.is_healthy | (cards.unsound > 0), verdict_codes.CARD_NOT_HEALTH)
    return code


def check(cards: Cards, ask: Ask, gated: Codes, accepts_uuid: Bools | None) -> Checks:
    """All checks that look at one card alone. Assigned from the last to the first, so that the first one stays."""
    memory = ask.memory_of(cards.total_memory)
    late = np.zeros(gated.shape, np.uint8)
    if ask.cores == 0:
        exhausted = (cards.total_cores != 0) & (cards.used_cores == cards.total_cores)
        np.putmask(late, exhausted, verdict_codes.CARD_COMPUTE_UNITS_EXHAUSTED)
    if ask.wants_whole_card:
        shared = (cards.total_cores == 100) & (cards.used_slots > 0)
        np.putmask(late, shared, verdict_codes.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT)
    np.putmask(late, cards.total_cores - cards.used_cores < ask.cores, verdict_codes.CARD_INSUFFICIENT_CORE)
    np.putmask(late, cards.total_memory - cards.used_memory < memory, verdict_codes.CARD_INSUFFICIENT_MEMORY)
    early = np.zeros(gated.shape, np.uint8)
    if ask.is_mutex:
        np.putmask(early, cards.used_slots > 0, verdict_codes.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT)
    np.putmask(early, cards.total_slots <= cards.used_slots, verdict_codes.CARD_TIME_SLICING_EXHAUSTED)
    if accepts_uuid is not None:
        np.putmask(early, ~accepts_uuid, verdict_codes.CARD_UUID_MISMATCH)
    np.copyto(early, gated, where=gated != 0)
    return Checks(gated, early, late, memory)


def fit(cards: Cards, ask: Ask, checks: Checks, order_of: Callable[[Ints], Ints]) -> Fit:
    """Take cards in turn until there are enough; nothing depends on what was taken before.

    order_of: the order of trying (slots, k) on the k nodes at the given indices; asked for only where cards suffice,
    since where they don't, every card is looked at whatever the order.
    """
    found = collect(cards, ask, checks)
    enough = np.flatnonzero(found.passed)
    if enough.size:
        turns = order_of(enough)
        would_do = found.picked[:, enough]
        first = np.where(would_do, np.uint8(0), found.verdict[:, enough])
        found.picked[:, enough], found.verdict[:, enough] = _take(would_do, first, turns, ask.count)
    return found


def collect(cards: Cards, ask: Ask, checks: Checks) -> Fit:
    """Take all cards that would do, where they are enough."""
    first = np.where(checks.early != 0, checks.early, checks.late)
    would_do = (first == 0) & cards.valid
    passed = would_do.sum(axis=0) >= ask.count
    verdict = np.where(would_do, np.uint8(verdict_codes.ALLOCATED_CARDS_INSUFFICIENT_REQUEST), first)
    return Fit(verdict, passed, would_do & passed)


def _take(would_do: Bools, first: Codes, turns: Ints, count: int) -> tuple[Bools, Codes]:
    by_turn = np.take_along_axis(would_do, turns, axis=0)
    rank = np.cumsum(by_turn, axis=0)
    taken = by_turn & (rank <= count)
    verdict = np.take_along_axis(first, turns, axis=0)
    verdict[taken] = verdict_codes.PICKED
    verdict[(rank >= count) & ~taken] = verdict_codes.NOT_REACHED
    return back(taken, turns), back(verdict, turns)


def back(by_turn: NDArray[T], turns: Ints) -> NDArray[T]:
    """From the order of trying to the order of slots."""
    by_slot = np.empty_like(by_turn)
    np.put_along_axis(by_slot, turns, by_turn, axis=0)
    return by_slot
