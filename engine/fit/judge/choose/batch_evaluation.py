"""Evaluation of one pod against one batch of nodes, container after container.

A container sees what those before it took that hold their devices as long as the pod: app containers, and since HAMi
v2.11 sidecars. Init containers come before all of them, and see the devices as they are. A node that refuses a
container is left out of the evaluation of the later ones.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from engine.fit.devices.device_matrix import Bools, DeviceMatrix, Ints
from engine.fit.devices.node_entry import MIG_MODE
from engine.fit.judge.checks import verdict_codes
from engine.fit.judge.checks.fit import FirstRefusals, Fit, check_devices, check_gate, take_all, take_in_order
from engine.fit.judge.checks.reference_fit import Peaks, Pick, ReferenceFit
from engine.fit.judge.checks.sequential_fit import QuotaColumns, fit_sequentially
from engine.fit.judge.checks.topology import keep_best
from engine.fit.judge.choose.per_node import fit_by_vendor, fit_node_by_node
from engine.fit.judge.choose.scoring import build_first_order, derive_order, score_devices
from engine.fit.judge.judgement import ContainerJudgement, flatten_matrix, flatten_node_fits, join_judgements
from engine.fit.judge.request.device_request import DeviceRequest, build_device_request
from engine.fit.judge.request.pod_constraints import PodConstraints, give_back
from engine.fit.judge.request.pod_request import VendorRequest
from engine.fit.judge.vendors.fits import VENDOR_FITS
from engine.fit.judge.vendors.vendor_state import VendorState
from engine.hami.mig import Placement
from engine.hami.vendors import Family


class BatchEvaluation:
    """Nodes of one batch, n of them, that passed every container so far.

    Arrays per node have shape (n,); they shrink with every container that some nodes refuse.
    """

    def __init__(
        self, constraints: Mapping[str, PodConstraints], matrix: DeviceMatrix, *, keeps_order: bool = False
    ) -> None:
        """Begin with all nodes of the matrix.

        constraints: by vendor word. matrix: valid for the first of these vendors; changed by the evaluation.
        keeps_order: several app containers are judged, so the order of one is where the next begins.
        """
        self._by_vendor = constraints
        self._constraints = next(iter(constraints.values()))
        give_back(self._constraints, matrix)
        self._matrix = matrix.copy_use()
        # Once for all containers: health, cordon and type do not depend on what was taken.
        self._gate = check_gate(matrix, self._constraints.accepts_kind, self._constraints.vendor.family)
        self._taken_by_vendor = {vendor: QuotaColumns.create_empty(len(matrix.ids)) for vendor in constraints}
        self._placements: dict[int, list[Placement]] = {}
        self._app_order = build_first_order(matrix).copy() if keeps_order else None
        self._peaks = Peaks()
        self.state = VendorState()
        self.picks: list[list[Pick]] = []
        """Devices that the latest container got, per node that was evaluated one device at a time."""

    @property
    def is_over(self) -> bool:
        return not self._matrix.ids.size

    @property
    def passed(self) -> Ints:
        """Positions, among the offered nodes, of those that passed all containers so far; shape (n,)."""
        return self._matrix.nodes

    def judge(self, container: int, request: VendorRequest) -> ContainerJudgement:
        """Judge one container on the nodes that passed so far, and keep only the nodes that pass it too."""
        if request.vendor != self._constraints.vendor.word:
            self._switch_vendor(self._by_vendor[request.vendor])
        matrix = self._matrix
        family = self._constraints.vendor.family
        device_request = build_device_request(request, self._constraints.annotations, family)
        if self._app_order is not None and request.is_lasting:
            self._app_order = self._order(matrix, device_request, self._app_order)
        refusals = check_devices(matrix, device_request, self._gate, self._constraints.match_uuids(matrix))
        is_short = self._find_short(device_request)
        has_mig = self._constraints.columns.nodes["has_mig"][matrix.ids]
        in_turn = (
            self._constraints.one_by_one
            or family in VENDOR_FITS
            or (not request.is_lasting and self._constraints.quota_left.is_limited)
        )
        one_by_one = (has_mig | in_turn) & ~is_short
        parts = []
        if not one_by_one.all():
            parts.append(
                self._judge_together(
                    container, request, device_request, refusals, is_short, np.flatnonzero(~one_by_one)
                )
            )
        if one_by_one.any():
            parts.append(
                self._judge_one_by_one(container, request, device_request, refusals, np.flatnonzero(one_by_one))
            )
        judgement = join_judgements(parts)
        self._keep(judgement.passed)
        return judgement

    def _switch_vendor(self, constraints: PodConstraints) -> None:
        """Judge the devices of another vendor from here on."""
        self._constraints = constraints
        self._matrix = self._matrix.switch_vendor(constraints.columns, constraints.code)
        self._gate = check_gate(self._matrix, constraints.accepts_kind, constraints.vendor.family)

    @property
    def _taken(self) -> QuotaColumns:
        """Amounts that the pod's app containers took of the current vendor so far."""
        return self._taken_by_vendor[self._constraints.vendor.word]

    def _find_short(self, device_request: DeviceRequest) -> Bools:
        """Find the nodes with fewer devices than requested, shape (n,)."""
        short = device_request.count > self._matrix.judged
        # One MIG device may give several instances, so such a node is never short by its device count.
        if self._constraints.vendor.pod.mode and self._constraints.annotations.accepts_mode(MIG_MODE):
            short &= ~self._constraints.columns.nodes["has_mig"][self._matrix.ids]
        return short

    def _judge_together(
        self,
        container: int,
        request: VendorRequest,
        device_request: DeviceRequest,
        refusals: FirstRefusals,
        is_short: Bools,
        where: Ints,
    ) -> ContainerJudgement:
        matrix = self._matrix
        if where.size < matrix.ids.size:
            matrix, refusals, is_short = matrix.select(where), refusals.select(where), is_short[where]
        result = self._fit(
            matrix,
            device_request,
            refusals,
            self._compute_left(where),
            self._get_previous_order(where),
        )
        # HAMi compares the counts before it looks at any device (`NodeInsufficientDevice`).
        result.verdict[:, is_short] = verdict_codes.NOT_REACHED
        result.passed[is_short] = False
        judgement = flatten_matrix(container, matrix, result.verdict, result.passed, is_short, refusals.memory)
        if request.is_lasting and result.passed.any():
            self._take(device_request, result, refusals.memory, where)
        return judgement

    def _fit(
        self,
        matrix: DeviceMatrix,
        device_request: DeviceRequest,
        refusals: FirstRefusals,
        quota: QuotaColumns | None,
        before: Ints | None,
    ) -> Fit:
        in_turns = quota is not None or device_request.numa_bind
        if not in_turns and not device_request.collects_all:
            return take_in_order(
                matrix,
                device_request,
                refusals,
                lambda some: self._order(
                    matrix.select(some), device_request, before if before is None else before[:, some]
                ),
            )
        order = self._order(matrix, device_request, before)
        result = (
            fit_sequentially(matrix, device_request, refusals, order, quota)
            if in_turns
            else take_all(matrix, device_request, refusals)
        )
        if device_request.collects_all:
            keep_best(
                result,
                device_request,
                order,
                [entry.pairs for entry in self._constraints.columns.get_entries(matrix.ids.tolist())],
            )
        return result

    def _get_previous_order(self, where: Ints) -> Ints | None:
        """Get the order of the lasting container before; None before the first one, or where there is only one."""
        return None if self._app_order is None else self._app_order[:, where]

    def _order(self, matrix: DeviceMatrix, device_request: DeviceRequest, before: Ints | None) -> Ints:
        counts = self._constraints.counts_request[matrix.kind]
        scores = score_devices(matrix, device_request, self._constraints.annotations.weights, counts)
        return derive_order(matrix, scores, self._constraints.annotations, before)

    def _compute_left(self, where: Ints) -> QuotaColumns | None:
        quota_left = self._constraints.quota_left
        if not quota_left.is_limited:
            return None
        return QuotaColumns(
            quota_left.memory_mib - self._taken.memory[where], quota_left.cores - self._taken.cores[where]
        )

    def _take(self, device_request: DeviceRequest, result: Fit, memory: Ints, where: Ints) -> None:
        """Add what an app container took on the nodes that were judged together."""
        picked = result.picked & result.passed
        self._matrix.used_slots[:, where] += picked
        self._matrix.used_cores[:, where] += picked * device_request.cores
        self._matrix.used_memory[:, where] += picked * memory
        self._taken.memory[where] += (picked * memory).sum(axis=0)
        self._taken.cores[where] += picked.sum(axis=0) * device_request.cores

    def _judge_one_by_one(
        self,
        container: int,
        request: VendorRequest,
        device_request: DeviceRequest,
        refusals: FirstRefusals,
        where: Ints,
    ) -> ContainerJudgement:
        matrix = self._matrix.select(where)
        selected = refusals.select(where)
        order = self._order(matrix, device_request, self._get_previous_order(where))
        constraints = self._constraints
        peaks = self._peaks if not request.is_lasting and constraints.quota_left.is_limited else None
        if constraints.vendor.family in VENDOR_FITS:
            node_fits = fit_by_vendor(constraints, matrix, device_request, request, selected, order, self.state)
            self.state.add(constraints.vendor, matrix.ids, request, node_fits, constraints.annotations)
        else:
            left = self._compute_left(where)
            node_fits = fit_node_by_node(
                constraints, matrix, device_request, selected, order, left, self._placements, peaks
            )
        if peaks is not None:
            peaks.add(constraints.vendor.word, matrix.ids, node_fits)
        if request.is_lasting:
            self._take_node_fits(node_fits, where)
        self.picks = [done.picks for done in node_fits]
        return flatten_node_fits(container, matrix, node_fits, selected.memory)

    def _take_node_fits(self, node_fits: Sequence[ReferenceFit], where: Ints) -> None:
        """Add what an app container took on the nodes that were judged one device at a time."""
        for node, done in zip(where.tolist(), node_fits, strict=True):
            for pick in done.picks if done.passed else ():
                self._take_pick(node, pick)

    def _take_pick(self, node: int, pick: Pick) -> None:
        cell = (pick.device.position, node)
        self._matrix.used_slots[cell] += pick.slots
        if self._constraints.vendor.family is not Family.KUNLUN:  # HAMi counts the slot alone
            self._matrix.used_cores[cell] += pick.cores
            self._matrix.used_memory[cell] += pick.memory_mib
        self._taken.memory[node] += pick.memory_mib
        self._taken.cores[node] += pick.cores
        if pick.mig:
            self._placements.setdefault(int(self._matrix.rows[cell]), []).append(pick.mig.placement)

    def _keep(self, passed: Bools) -> None:
        if passed.all():
            return
        self._matrix = self._matrix.select(passed)
        self._gate = self._gate[:, passed]
        if self._app_order is not None:
            self._app_order = self._app_order[:, passed]
        self._taken_by_vendor = {vendor: quota.select(passed) for vendor, quota in self._taken_by_vendor.items()}
