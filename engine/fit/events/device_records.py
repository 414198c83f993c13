"""Verdicts on the devices of a decision, as `DevicesJudged` records, and the devices that were taken. Pure."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from engine.fit.devices.node_entry import RegisteredKind
from engine.fit.events.record_columns import (
    INT64_MAX,
    Ints,
    NodeNames,
    build_code_table,
    compute_budget,
    measure_widest,
)
from engine.fit.judge.checks import verdict_codes
from engine.fit.judge.decision import Decision
from engine.fit.judge.judgement import ContainerJudgement
from schemas.codec.chunking import divide_sizes
from schemas.events import DevicesJudged, PickedDevice, Request
from schemas.events.columns import measure_widest_character

_NO_POSITIONS: Final[Ints] = np.zeros(0, np.int64)
_LARGEST_COUNT: Final = 2**31
"""Number of rows that no attempt reaches."""


def build_device_records(
    common_fields: dict[str, Any], decision: Decision, names: NodeNames, requests: Sequence[Request], epoch: int
) -> Iterator[DevicesJudged]:
    """Build the records of all containers, each below the size limit of a record unless one node alone exceeds it."""
    part = 0
    for judgement in decision.judgements:
        cutter = _JudgementCutter(decision, judgement, names.select(judgement.nodes))
        once = common_fields | {
            "container": judgement.container,
            "request": requests[judgement.container],
            "partial": False,
            "epoch": epoch,
            "verdicts": cutter.verdicts,
        }
        models = {kind.model: _LARGEST_COUNT for kind in decision.kinds}
        budget = compute_budget(dict.fromkeys(DevicesJudged.model_fields) | once | {"models": models})
        for run in divide_sizes(cutter.sizes, budget):
            # Built without validation: the columns are right by construction, and validating them took longer than
            # everything else about a record.
            yield DevicesJudged.model_construct(**once, part=part, **cutter.cut(run))
            part += 1


class _JudgementCutter:
    """Cutter of one judgement into runs of nodes. sizes: bytes per node at most, shape (m,)."""

    def __init__(self, decision: Decision, judgement: ContainerJudgement, names: NodeNames) -> None:
        self._judgement, self._kinds, self._names = judgement, decision.kinds, names
        self._revision = decision.revision[judgement.nodes]
        self.verdicts, self._verdict = build_code_table(verdict_codes.VERDICTS, judgement.verdict)
        self.sizes = self._compute_sizes()

    def _compute_sizes(self) -> Ints:
        """Compute an upper bound of the bytes per node without encoding.

        Texts count as they are, each number as wide as the widest of its column.
        """
        rows = self._judgement.rows
        row_bytes = measure_widest_character(self._verdict) + (
            0 if self._judgement.is_complete.all() else measure_widest(self._judgement.device)
        )
        devices = self._judgement.devices
        row_counts = 0 if np.array_equal(rows, devices) else measure_widest(rows)
        node_bytes = measure_widest(self._revision) + measure_widest(devices) + row_counts
        # 1: the comma behind the name.
        sizes: Ints = self._names.sizes + 1 + node_bytes + rows * row_bytes
        return sizes

    def cut(self, run: slice) -> dict[str, Any]:
        """Cut the fields of a record about the nodes in `run`."""
        offsets = self._judgement.offsets
        rows = slice(int(offsets[run.start]), int(offsets[run.stop]))
        return {
            "models": self.count_models(rows),
            "nodes": self._names.names[run],
            "revision": self._revision[run],
            "devices": self._judgement.devices[run],
            "rows": self._judgement.rows[run],
            "verdict": self._verdict[rows],
            "device": _NO_POSITIONS if self._judgement.is_complete[run].all() else self._judgement.device[rows],
        }

    def count_models(self, rows: slice) -> dict[str, int]:
        counts = np.bincount(self._judgement.kind[rows], minlength=len(self._kinds))
        return _count_by_model(self._kinds, counts)


def _count_by_model(kinds: Sequence[RegisteredKind], counts: Ints) -> dict[str, int]:
    models: dict[str, int] = {}
    for code in np.flatnonzero(counts).tolist():
        # Several kinds share a model (another mode, other totals); a device without one is not counted.
        if model := kinds[code].model:
            models[model] = models.get(model, 0) + int(counts[code])
    return models


def list_picked_devices(decision: Decision, requests: Sequence[Request]) -> list[PickedDevice]:
    """List the devices by container, in the order of the node's registration, with the numbers behind the verdict."""
    chosen = np.flatnonzero(decision.node_verdict == verdict_codes.NODE_PICKED)
    return [
        device
        for node in chosen.tolist()
        for judgement in sorted(decision.judgements, key=lambda judgement: judgement.container)
        for device in _list_container_devices(decision, judgement, requests[judgement.container], node)
    ]


def _list_container_devices(
    decision: Decision, judgement: ContainerJudgement, request: Request, node: int
) -> Iterator[PickedDevice]:
    fragment, position = decision.get_fragment(node), int(np.searchsorted(judgement.nodes, node))
    if fragment is None:
        return
    rows = range(int(judgement.offsets[position]), int(judgement.offsets[position + 1]))
    for row in (row for row in rows if judgement.verdict[row] == verdict_codes.PICKED):
        kind = decision.kinds[int(judgement.kind[row])]
        yield PickedDevice.model_construct(
            container=judgement.container,
            uuid=fragment.uuids[int(judgement.device[row])],
            model=kind.model,
            memory_mib=request.compute_memory(kind.memory_mib),
            cores_percent=request.cores_percent,
            memory_total_mib=min(kind.memory_mib, INT64_MAX),
            memory_used_mib=int(judgement.used_memory_mib[row]),
            cores_total_percent=min(kind.cores, INT64_MAX),
            cores_used_percent=int(judgement.used_cores[row]),
            slots_total=min(kind.slots, INT64_MAX),
            slots_used=int(judgement.used_slots[row]),
        )
