"""The verdict on every device of a decision, as `DevicesJudged` records."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from scheduler.devices.node_entry import RegisteredKind
from scheduler.judge import verdict_codes
from scheduler.judge.decision import ContainerJudgement, Decision
from scheduler.publish.record_columns import (
    NAME_JSON,
    UUIDS_JSON,
    Ints,
    code_table,
    column_budget,
    json_array,
    json_text,
    widest,
)
from schemas import events
from schemas.codec.chunking import runs
from schemas.events import DevicesJudged, Request

INT64_MAX: Final = 2**63 - 1

_NUMBERS: Final = {
    "numa": "numa",
    "memory_used_mib": "used_memory_mib",
    "cores_used_percent": "used_cores",
    "slots_used": "used_slots",
}
"""Field of `DevicesJudged` -> field of `ContainerJudgement`."""


def device_records(
    common_fields: dict[str, Any], decision: Decision, requests: Sequence[Request]
) -> Iterator[DevicesJudged]:
    """The records of all containers, each below the size limit of a record unless one node alone exceeds it."""
    part = 0
    for judged in decision.judgements:
        columns = _DeviceColumns(decision, judged)
        once = common_fields | {
            "container": judged.container,
            "request": requests[judged.container],
            "verdicts": columns.verdicts,
            "kinds": columns.kinds,
        }
        budget = column_budget(dict.fromkeys(DevicesJudged.model_fields) | once)
        for run in runs(columns.sizes, budget):
            # Built without validation: the columns are right by construction, and validating them took longer than
            # everything else about a record.
            yield DevicesJudged.model_construct(**once, part=part, **columns.cut(run))
            part += 1


class _DeviceColumns:
    """The columns of one judgement, ready to be cut into runs of nodes. sizes: bytes per node at most, shape (m,)."""

    def __init__(self, decision: Decision, judged: ContainerJudgement) -> None:
        self._judged = judged
        # Only registered nodes are judged, so no fragment is missing; the filter shows that to the type checker.
        self._fragments = list(filter(None, map(decision.fragments.__getitem__, judged.nodes.tolist())))
        self.verdicts, self._verdict = code_table(verdict_codes.VERDICTS, judged.verdict)
        kinds, self._kind = code_table(decision.kinds, judged.kind)
        self.kinds = [_kind(kind) for kind in kinds]
        self._numbers = {name: getattr(judged, source) for name, source in _NUMBERS.items()}
        self._names = list(map(NAME_JSON, self._fragments))
        self._uuids = list(map(UUIDS_JSON, self._fragments))
        for position in np.flatnonzero(~judged.whole).tolist():
            self._uuids[position] = self._uuids_of_rows(position)
        self.sizes = self._sizes()

    def _uuids_of_rows(self, position: int) -> bytes:
        """The UUIDs of a node's rows, where those are not simply all its devices in their order."""
        start, stop = self._judged.offsets[position : position + 2].tolist()
        uuids = self._fragments[position].uuids
        return b",".join([json_text(uuids[device]) for device in self._judged.device[start:stop].tolist()])

    def _sizes(self) -> Ints:
        """Texts count as they are, each number as wide as the widest of its column: an upper bound without encoding."""
        rows = np.diff(self._judged.offsets)
        row_bytes = sum(map(widest, (self._verdict, self._kind, *self._numbers.values())))
        node_bytes = widest(self._judged.nodes) + widest(self._judged.devices) + widest(rows)
        texts = np.fromiter(map(len, self._uuids), np.int64) + np.fromiter(map(len, self._names), np.int64)
        # 2: the commas behind the name and behind the UUIDs.
        sizes: Ints = texts + 2 + node_bytes + rows * row_bytes
        return sizes

    def cut(self, run: slice) -> dict[str, Any]:
        """The fields of a record about the nodes in `run`."""
        offsets = self._judged.offsets
        rows = slice(int(offsets[run.start]), int(offsets[run.stop]))
        return {
            "nodes": json_array(self._names[run]),
            "node_index": self._judged.nodes[run],
            "devices": self._judged.devices[run],
            "rows": np.diff(offsets[run.start : run.stop + 1]),
            "verdict": self._verdict[rows],
            # A node without rows has no text here, and an empty part would leave two commas in a row.
            "uuid": json_array([uuids for uuids in self._uuids[run] if uuids]),
            "kind": self._kind[rows],
        } | {name: column[rows] for name, column in self._numbers.items()}


def _kind(kind: RegisteredKind) -> events.DeviceKind:
    # A registration may hold any whole number; the contract's numbers have 64 bits.
    numbers = (min(max(number, -INT64_MAX), INT64_MAX) for number in (kind.memory_mib, kind.cores, kind.slots))
    memory, cores, slots = numbers
    return events.DeviceKind.model_construct(model=kind.model, memory_mib=memory, cores_percent=cores, slots=slots)
