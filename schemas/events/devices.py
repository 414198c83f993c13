"""The verdicts on devices: one container against the devices of a run of nodes."""

from collections.abc import Callable, Collection, Iterator
from itertools import repeat
from typing import Annotated, Any, ClassVar, Final, NamedTuple, Self

import numpy as np
from pydantic import Field, model_validator

from .base import NOT_REPORTED, TYPE_PREFIX, AttemptEvent, Request
from .columns import CodeText, Integers, check_codes, check_lengths, find_greatest, find_least, write_code_text
from .field_types import Count, Flag, Words
from .node_states import NodeStateChanged

NO_STATE = -1
"""Value of ``revision`` where the source has no state of the node."""

_PRINTED: Final = ("printed_index", "memory_requested_mib", "cores_requested_percent")
"""The columns of what a log prints with a device's verdict."""

StateOf = Callable[[str, int], NodeStateChanged | None]
"""The state of a node by its name and revision, of the scheduler and epoch that the verdicts name; None where it is not
known."""


class DeviceRow(NamedTuple):
    """One device as it stood before the attempt. None is a number that the source does not say, or a state that is not
    known; then ``uuid`` and ``model`` are empty too."""

    node: str
    uuid: str
    verdict: str
    model: str
    numa: int | None
    memory_total_mib: int | None
    memory_used_mib: int | None
    cores_total_percent: int | None
    cores_used_percent: int | None
    slots_total: int | None
    slots_used: int | None
    device_index: int | None = None
    """The device's number on its node, or else the one that the source prints of it."""
    memory_requested_mib: int | None = None
    """The request on this device, where the source names it for each device."""
    cores_requested_percent: int | None = None
    checks: dict[str, bool] = {}  # noqa: RUF012  a named tuple's default, which nobody changes
    """Checks of the device that the source reports, by name."""


class DevicesJudged(AttemptEvent):
    """One container against the devices of a run of nodes.

    ``nodes``, ``revision``, ``devices`` and ``rows`` have an entry per node, ``verdict`` one per row: the first
    ``rows[0]`` rows belong to ``nodes[0]``, and so on. A row is a device, in the order of the node's state; where it is
    otherwise (devices of another vendor are left out, a device split into MIG instances was checked several times),
    ``device`` has an entry per row as well. What each device is, and what was in use of it, stands in the state that
    ``node``, ``epoch`` and ``revision`` name (``NodeStateChanged``).
    """

    TYPE: ClassVar[str] = TYPE_PREFIX + "devices.judged.v1"

    part: Count
    """Counts the records of this type within the attempt, from 0."""
    container: Count
    """The container's position in the attempt's requests."""
    request: Request
    """Request of the container."""
    partial: Flag = False
    """True where the source does not report every device of these nodes, or not which node a device is on (a node
    without a name): then nothing is counted from the rows."""
    epoch: Count = 0
    """Epoch of the revisions: the start of the scheduler process that counted them."""
    models: dict[str, Count] = Field(default_factory=dict)
    """Device model to number of rows; rows of a model that is not known are left out."""
    verdicts: Words
    """The table behind ``verdict``: ``picked``, ``fits``, ``not reached``, or a reason code as HAMi spells it."""
    nodes: Words
    """Names."""
    revision: Integers
    """The revision of the node's state; -1 where the source has none."""
    devices: Integers
    """Number of devices of the requested vendor on the node: the Y of ``X/Y Reason``."""
    rows: Integers
    """Number of rows of the node; empty in JSON where it equals ``devices`` for each node."""
    verdict: CodeText
    """Index into ``verdicts``."""
    device: Annotated[Integers, Field(default_factory=list, validate_default=True)]
    """The row's device, as its position in the node's state; empty where each node's rows are its devices in order."""
    # Only of a log that prints them: the scheduler's own records have states with the number and one request for all.
    printed_index: Integers = Field(default_factory=list, validate_default=True)
    """The number that a log prints with the row's device: in HAMi's its place in the order in which devices were tried;
    -1 where it prints none. Empty where it prints none of any row."""
    memory_requested_mib: Integers = Field(default_factory=list, validate_default=True)
    """Memory requested of the row's device; -1 where the source does not report it. Empty where ``request`` gives
    it."""
    cores_requested_percent: Integers = Field(default_factory=list, validate_default=True)
    """Cores requested of the row's device, in percent; -1 where the source does not report it. Empty where ``request``
    gives it."""
    checks: list[dict[str, Flag]] = Field(default_factory=list)
    """The table behind ``check``: what the scheduler checked of a device, by name, and whether it held. KAI's:
    ``fits``, ``in_use``, ``enough_resources`` (memory that is being released counts), ``enough_idle`` (it does not),
    ``not_all_released``, ``allocatable``, ``will_be_releasing``, ``whole_device``, ``filtered`` (it is in the list of
    those that fit), ``selected``."""
    check: CodeText = Field(default_factory=list, validate_default=True)
    """Index into ``checks``; -1 where the source says none of the row. Empty where it says none of any row."""

    @model_validator(mode="after")
    def _columns_agree(self) -> Self:
        if not self.rows.size:
            # The model is frozen for those who use it, and it is not in use yet.
            self.__dict__["rows"] = self.devices
        check_lengths({"revision": self.revision, "devices": self.devices, "rows": self.rows}, len(self.nodes))
        if find_least(self.rows) < 0 or find_least(self.devices) < 0:
            raise ValueError("rows and devices are counts, never negative")
        # Checked before they are added up: a sum of huge counts wraps around.
        if (highest := find_greatest(self.rows)) > len(self.verdict):
            raise ValueError(f"a node has {highest} rows where {len(self.verdict)} are there in all")
        check_lengths({"verdict": self.verdict}, int(self.rows.sum()))
        check_codes({"verdict": (self.verdict, len(self.verdicts))})
        if find_least(self.verdict) < 0:
            raise ValueError("every row has a verdict")
        if sum(self.models.values()) > len(self.verdict):
            raise ValueError(f"models count {sum(self.models.values())} rows where {len(self.verdict)} are there")
        if self.device.size:
            check_lengths({"device": self.device}, len(self.verdict))
            if find_least(self.device) < 0:
                raise ValueError("device is a position, never negative")
        if len(self.check):
            check_lengths({"check": self.check}, len(self.verdict))
            check_codes({"check": (self.check, len(self.checks))})
        for name in _PRINTED:
            if len(column := getattr(self, name)):
                check_lengths({name: column}, len(self.verdict))
        if find_least(self.revision) < NO_STATE:
            raise ValueError("a revision is a count, or -1 for none")
        return self

    @property
    def id(self) -> str:
        return f"{self.attempt_id}/devices/{self.part}"

    def to_json_fields(self) -> dict[str, Any]:
        written: dict[str, Any] = {"verdict": write_code_text(self.verdict), "check": write_code_text(self.check)}
        if np.array_equal(self.rows, self.devices):
            written["rows"] = []
        return self.__dict__ | written

    def iterate_devices(self, state_of: StateOf, nodes: Collection[str] | None = None) -> Iterator[DeviceRow]:
        """Yield the rows as objects, in the order of the record, for readers that prefer objects to columns.

        ``nodes``: only those of these nodes; None for all.
        """
        start = 0
        for node, revision, rows in zip(self.nodes, self.revision.tolist(), self.rows.tolist(), strict=True):
            if nodes is None or node in nodes:
                state = state_of(node, revision) if revision != NO_STATE else None
                yield from self._count_rows(node, state, slice(start, start + rows))
            start += rows

    def _count_rows(self, node: str, state: NodeStateChanged | None, rows: slice) -> Iterator[DeviceRow]:
        known_devices = _list_devices(node, state) if state else []
        positions = self.device[rows].tolist() if self.device.size else range(rows.stop - rows.start)
        columns = [getattr(self, name) for name in _PRINTED]
        printed = zip(
            *(column[rows].tolist() if len(column) else repeat(NOT_REPORTED) for column in columns), strict=False
        )
        checks = self.check[rows].tolist() if len(self.check) else repeat(NOT_REPORTED)
        for code, device, numbers, check in zip(self.verdict[rows].tolist(), positions, printed, checks, strict=False):
            # A state that contradicts the verdicts has fewer devices: the verdict is shown all the same.
            device_row = known_devices[device] if device < len(known_devices) else _build_unknown(node)
            index, memory, cores = map(_read_reported, numbers)
            yield device_row._replace(
                verdict=self.verdicts[code],
                device_index=index if device_row.device_index is None else device_row.device_index,
                memory_requested_mib=memory,
                cores_requested_percent=cores,
                checks=self.checks[check] if check >= 0 else {},
            )


def _list_devices(node: str, state: NodeStateChanged) -> list[DeviceRow]:
    """List the devices in the order of the state, each without a verdict."""
    # As lists at once: a number by itself takes ten times as long out of an array.
    columns = (state.index, state.numa, state.memory_used_mib, state.cores_used_percent, state.slots_used)
    rows = []
    for uuid, code, *numbers in zip(
        state.uuid, state.kind.tolist(), *(column.tolist() for column in columns), strict=True
    ):
        kind, (index, numa, memory, cores, slots) = state.kinds[code], map(_read_reported, numbers)
        sizes = (kind.memory_mib, memory, kind.cores_percent, cores, kind.slots, slots)
        rows.append(DeviceRow(node, uuid, "", kind.model, numa, *sizes, index))
    return rows


def _build_unknown(node: str) -> DeviceRow:
    return DeviceRow(node, "", "", "", None, None, None, None, None, None, None)


def _read_reported(number: int) -> int | None:
    return None if number == NOT_REPORTED else number
