"""Taking cards in turns: where a card's verdict depends on the cards taken before it, over all nodes at once.

That is so for NUMA binding (a change of NUMA node drops what was taken) and for a namespace with a quota (every card
taken leaves less). One step per position in the order of trying, each over all nodes.
"""

from dataclasses import dataclass

import numpy as np

from scheduler.judge import verdict_codes
from scheduler.judge.device_matrix import Bools, Cards, Ints
from scheduler.judge.device_request import Ask
from scheduler.judge.fit import Checks, Codes, Fit, back


@dataclass(slots=True)
class Left:
    """What a quota leaves per node of the batch, shape (n,): MiB and percent of cards."""

    memory: Ints
    cores: Ints

    @classmethod
    def nothing(cls, nodes: int) -> "Left":
        return cls(np.zeros(nodes, np.int64), np.zeros(nodes, np.int64))

    def only(self, where: Bools) -> "Left":
        return Left(self.memory[where], self.cores[where])


class _Turns:
    """The state after some turns; per node (n,). `run` counts changes of the NUMA node."""

    def __init__(self, nodes: int) -> None:
        self.picks = np.zeros(nodes, np.int64)
        self.memory = np.zeros(nodes, np.int64)
        self.run = np.zeros(nodes, np.int64)
        self.numa = np.zeros(nodes, np.int64)
        self.done = np.zeros(nodes, np.bool_)


def fit_in_turns(cards: Cards, ask: Ask, checks: Checks, order: Ints, left: Left | None) -> Fit:
    """Like `fit.fit`, or like `fit.collect` for a pod that collects all, with NUMA binding and quota."""

    gate, early, late, valid, numa, memory = (
        np.take_along_axis(matrix, order, axis=0)
        for matrix in (checks.gate, checks.early, checks.late, cards.valid, cards.numa, checks.memory)
    )
    verdict = np.full(order.shape, verdict_codes.NOT_REACHED, np.uint8)
    run = np.zeros(order.shape, np.int64)
    state = _Turns(order.shape[1])
    for turn in range(len(order)):
        open_here = valid[turn] & ~state.done
        if ask.numa_bind:
            _change_numa(state, open_here & (gate[turn] == 0), numa[turn])
        code = _code(state, ask, early[turn], late[turn], memory[turn], left)
        np.copyto(verdict[turn], code, where=open_here)
        run[turn] = state.run
        _pick(state, ask, open_here & (code == verdict_codes.PICKED), memory[turn])
    picked = (verdict == verdict_codes.PICKED) & (run == state.run)
    # HAMi counts nothing for what its topology-aware walk drops here.
    verdict[(verdict == verdict_codes.PICKED) & ~picked] = (
        verdict_codes.FITS if ask.collects_all else verdict_codes.NUMA_NOT_FIT
    )
    passed = state.picks >= ask.count
    verdict[picked & ~passed] = verdict_codes.ALLOCATED_CARDS_INSUFFICIENT_REQUEST
    return Fit(back(verdict, order), passed, back(picked & passed, order))


def _change_numa(state: _Turns, eligible: Bools, numa: Ints) -> None:
    changed = eligible & ((state.run == 0) | (state.numa != numa))
    state.run += changed
    state.picks[changed] = 0
    state.memory[changed] = 0
    np.copyto(state.numa, numa, where=eligible)


def _code(state: _Turns, ask: Ask, early: Codes, late: Codes, memory: Ints, left: Left | None) -> Codes:
    code = late.copy()
    if left is not None:
        over = (state.memory + memory > left.memory) | ((state.picks + 1) * ask.cores > left.cores)
        np.putmask(code, over, verdict_codes.RESOURCE_QUOTA_NOT_FIT)
    np.copyto(code, early, where=early != 0)
    return code


def _pick(state: _Turns, ask: Ask, taken: Bools, memory: Ints) -> None:
    state.picks += taken
    state.memory += taken * memory
    if not ask.collects_all:
        state.done |= state.picks >= ask.count
