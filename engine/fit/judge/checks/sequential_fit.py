"""Fit where a device's verdict depends on the devices taken before it, for all nodes at once.

It does under NUMA binding (at a change of the NUMA node, HAMi drops what was taken) and in a namespace with a quota
(every device taken leaves less). One step per position in the order of trying, each step over all nodes.
"""

from dataclasses import dataclass

import numpy as np

from engine.fit.devices.device_matrix import Bools, DeviceMatrix, Ints
from engine.fit.judge.checks import verdict_codes
from engine.fit.judge.checks.fit import Codes, FirstRefusals, Fit, restore_order
from engine.fit.judge.request.device_request import DeviceRequest


@dataclass(slots=True)
class QuotaColumns:
    """Amounts that count against a quota, per node of the batch, shape (n,): MiB, and percent of one device."""

    memory: Ints
    cores: Ints

    @classmethod
    def create_empty(cls, nodes: int) -> "QuotaColumns":
        return cls(np.zeros(nodes, np.int64), np.zeros(nodes, np.int64))

    def select(self, where: Bools) -> "QuotaColumns":
        return QuotaColumns(self.memory[where], self.cores[where])


class _FitState:
    """Amounts taken after some steps, per node, shape (n,). run: changes of the NUMA node so far."""

    def __init__(self, nodes: int) -> None:
        self.picks = np.zeros(nodes, np.int64)
        self.memory = np.zeros(nodes, np.int64)
        self.run = np.zeros(nodes, np.int64)
        self.numa = np.zeros(nodes, np.int64)
        self.done = np.zeros(nodes, np.bool_)


def fit_sequentially(
    matrix: DeviceMatrix, request: DeviceRequest, refusals: FirstRefusals, order: Ints, quota: QuotaColumns | None
) -> Fit:
    """Fit as `take_in_order`, or as `take_all` for a topology-aware pod, under NUMA binding and a quota.

    order: of trying, shape (slots, n). quota: what the namespace may still take; None where it has no quota.
    """
    # Row i of each matrix below is about the devices that are tried in step i.
    gate, early, late, valid, numa, memory = (
        np.take_along_axis(matrix, order, axis=0)
        for matrix in (refusals.gate, refusals.early, refusals.late, matrix.valid, matrix.numa, refusals.memory)
    )
    verdict = np.full(order.shape, verdict_codes.NOT_REACHED, np.uint8)
    run = np.zeros(order.shape, np.int64)
    state = _FitState(order.shape[1])
    for step in range(len(order)):
        open_here = valid[step] & ~state.done
        if request.numa_bind:
            _change_numa(state, open_here & (gate[step] == 0), numa[step])
        code = _compute_codes(state, request, early[step], late[step], memory[step], quota)
        np.copyto(verdict[step], code, where=open_here)
        run[step] = state.run
        _pick(state, request, open_here & (code == verdict_codes.PICKED), memory[step])
    # Shape (slots, n): what was taken before the last change of the NUMA node was dropped again.
    picked = (verdict == verdict_codes.PICKED) & (run == state.run)
    # HAMi's topology-aware policy gives no reason to the devices that it drops here.
    verdict[(verdict == verdict_codes.PICKED) & ~picked] = (
        verdict_codes.FITS if request.collects_all else verdict_codes.NUMA_NOT_FIT
    )
    passed = state.picks >= request.count
    verdict[picked & ~passed] = verdict_codes.ALLOCATED_INSUFFICIENT
    return Fit(restore_order(verdict, order), passed, restore_order(picked & passed, order))


def _change_numa(state: _FitState, eligible: Bools, numa: Ints) -> None:
    changed = eligible & ((state.run == 0) | (state.numa != numa))
    state.run += changed
    state.picks[changed] = 0
    state.memory[changed] = 0
    np.copyto(state.numa, numa, where=eligible)


def _compute_codes(
    state: _FitState, request: DeviceRequest, early: Codes, late: Codes, memory: Ints, quota: QuotaColumns | None
) -> Codes:
    code = late.copy()
    if quota is not None:
        over = (state.memory + memory > quota.memory) | ((state.picks + 1) * request.cores > quota.cores)
        np.putmask(code, over, verdict_codes.RESOURCE_QUOTA_NOT_FIT)
    np.copyto(code, early, where=early != 0)
    return code


def _pick(state: _FitState, request: DeviceRequest, taken: Bools, memory: Ints) -> None:
    state.picks += taken
    state.memory += taken * memory
    if not request.collects_all:
        state.done |= state.picks >= request.count
