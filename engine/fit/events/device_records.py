"""The verdict on every device of a decision, as `DevicesJudged` records."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from engine.fit.devices.node_entry import RegisteredKind
from engine.fit.events.record_columns import Ints, NodeNames, code_table, column_budget, widest
from engine.fit.judge.checks import verdict_codes
from engine.fit.judge.decision import ContainerJudgement, Decision
from schemas.codec.chunking import divide_sizes
from schemas.events import DevicesJudged, Request
from schemas.events.columns import measure_widest_character

_NO_POSITIONS: Final[Ints] = np.zeros(0, np.int64)
_LARGEST_COUNT: Final = 2**31
"""A number of rows that no attempt reaches."""


def device_records(
    common_fields: dict[str, Any], decision: Decision, names: NodeNames, requests: Sequence[Request], epoch: int
) -> Iterator[DevicesJudged]:
    """The records of all containers, each below the size limit of a record unless one node alone exceeds it."""
    part = 0
    for judged in decision.judgements:
        columns = _DeviceColumns(decision, judged, names.only(judged.nodes))
        once = common_fields | {
            "container": judged.container,
            "request": requests[judged.container],
            "partial": False,
            "epoch": epoch,
            "verdicts": columns.verdicts,
        }
        models = {kind.model: _LARGEST_COUNT for kind in decision.kinds}
        budget = column_budget(dict.fromkeys(DevicesJudged.model_fields) | once | {"models": models})
        for run in divide_sizes(columns.sizes, budget):
            # Built without validation: the columns are right by construction, and validating them took longer than
            # everything else about a record.
            yield DevicesJudged.model_construct(**once, part=part, **columns.cut(run))
            part += 1


class _DeviceColumns:
    """The columns of one judgement, ready to be cut into runs of nodes. sizes: bytes per node at most, shape (m,)."""

    def __init__(self, decision: Decision, judged: ContainerJudgement, names: NodeNames) -> None:
        self._judged, self._kinds, self._names = judged, decision.kinds, names
        self._revision = decision.revision[judged.nodes]
        self.verdicts, self._verdict = code_table(verdict_codes.VERDICTS, judged.verdict)
        self.sizes = self._sizes()

    def _sizes(self) -> Ints:
        """Texts count as they are, each number as wide as the widest of its column: an upper bound without encoding."""
        rows = np.diff(self._judged.offsets)
        row_bytes = measure_widest_character(self._verdict) + (
            0 if self._judged.whole.all() else widest(self._judged.device)
        )
        devices = self._judged.devices
        row_counts = 0 if np.array_equal(rows, devices) else widest(rows)
        node_bytes = widest(self._revision) + widest(devices) + row_counts
        # 1: the comma behind the name.
        sizes: Ints = self._names.sizes + 1 + node_bytes + rows * row_bytes
        return sizes

    def cut(self, run: slice) -> dict[str, Any]:
        """The fields of a record about the nodes in `run`."""
        offsets = self._judged.offsets
        rows = slice(int(offsets[run.start]), int(offsets[run.stop]))
        return {
            "models": self.count_models(rows),
            "nodes": self._names.names[run],
            "revision": self._revision[run],
            "devices": self._judged.devices[run],
            "rows": np.diff(offsets[run.start : run.stop + 1]),
            "verdict": self._verdict[rows],
            "device": _NO_POSITIONS if self._judged.whole[run].all() else self._judged.device[rows],
        }

    def count_models(self, rows: slice) -> dict[str, int]:
        counts = np.bincount(self._judged.kind[rows], minlength=len(self._kinds))
        return _by_model(self._kinds, counts)


def _by_model(kinds: Sequence[RegisteredKind], counts: Ints) -> dict[str, int]:
    models: dict[str, int] = {}
    for code in np.flatnonzero(counts).tolist():
        # Several kinds share a model (another mode, other totals); a device without one is not counted.
        if model := kinds[code].model:
            models[model] = models.get(model, 0) + int(counts[code])
    return models
