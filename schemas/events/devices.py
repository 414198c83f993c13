"""The verdicts on devices: one container against the devices of a run of nodes."""

from collections.abc import Iterator
from typing import ClassVar, Final, NamedTuple, Self

import numpy as np
from pydantic import model_validator

from schemas.events.base import (
    NOT_REPORTED,
    TYPE_PREFIX,
    AttemptEvent,
    Count,
    DeviceKind,
    Flag,
    Model,
    Request,
    Words,
)
from schemas.events.columns import Codes, Integers, check_codes, check_lengths


class DeviceRow(NamedTuple):
    """One device as it stood when it was judged. None is a number that the source does not say."""

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


_NUMBERS_USED: Final = ("memory_used_mib", "cores_used_percent", "slots_used")


class DeviceVerdicts(Model):
    """The verdict of each device, a row each, and the numbers that change while pods come and go.

    In the record it precedes the inventory, which says which device each row is about.
    """

    part: Count
    """Counts the records of this type within the attempt, from 0."""
    container: Count
    """The container's position in the attempt's requests."""
    request: Request
    """What the container asked for."""
    partial: Flag = False
    """True where the source does not report every device of these nodes, or not which node a device is on (a node
    without a name): then nothing is counted from the rows."""
    verdicts: Words
    """The table behind ``verdict``: ``picked``, ``fits``, ``not reached``, or a reason code as HAMi spells it."""
    verdict: Codes
    """Index into ``verdicts``."""
    memory_used_mib: Integers
    """Booked before this attempt, as the two below."""
    cores_used_percent: Integers
    slots_used: Integers
    node_index: Integers
    """The node's position among all nodes of the attempt."""

    @model_validator(mode="after")
    def _rows_agree(self) -> Self:
        check_lengths({name: getattr(self, name) for name in _NUMBERS_USED}, len(self.verdict))
        check_codes({"verdict": (self.verdict, len(self.verdicts))})
        if self.verdict.size and self.verdict.min() < 0:
            raise ValueError("every row has a verdict")
        if self.node_index.size and self.node_index.min() < 0:
            raise ValueError("node_index is a position, never negative")
        return self


class DeviceInventory(Model):
    """The devices of a run of nodes: what stays the same from one attempt to the next."""

    kinds: list[DeviceKind]
    """The table behind ``kind``: each distinct kind of device once."""
    nodes: Words
    """Names."""
    devices: Integers
    """How many devices of the asked vendor the node has: the Y of ``X/Y Reason``."""
    rows: Integers
    """How many of the rows belong to the node."""
    uuid: Words
    """The device, as its vendor names it."""
    kind: Codes
    """Index into ``kinds``."""
    numa: Integers
    """The NUMA node that the device sits on."""

    @model_validator(mode="after")
    def _devices_agree(self) -> Self:
        check_lengths({"devices": self.devices, "rows": self.rows}, len(self.nodes))
        if self.rows.size and (self.rows.min() < 0 or self.devices.min() < 0):
            raise ValueError("rows and devices are counts, never negative")
        # Checked before they are added up: a sum of huge counts wraps around.
        if self.rows.size and self.rows.max() > len(self.uuid):
            raise ValueError(f"a node has {self.rows.max()} rows where {len(self.uuid)} are there in all")
        check_lengths({"uuid": self.uuid, "kind": self.kind, "numa": self.numa}, int(self.rows.sum()))
        check_codes({"kind": (self.kind, len(self.kinds))})
        if self.kind.size and self.kind.min() < 0:
            raise ValueError("every row has a kind")
        return self


def check_rows(verdicts: DeviceVerdicts, inventory: DeviceInventory) -> None:
    """Raise ``ValueError`` unless the verdicts are about as many nodes and devices as the inventory has."""
    check_lengths({"node_index": verdicts.node_index}, len(inventory.nodes))
    check_lengths({"verdict": verdicts.verdict}, len(inventory.uuid))


class DevicesJudged(DeviceInventory, DeviceVerdicts, AttemptEvent):
    """One container against the devices of a run of nodes.

    Two lengths: ``nodes``, ``node_index``, ``devices`` and ``rows`` have an entry per node; ``verdict``, ``uuid``,
    ``kind`` and the numbers an entry per row. The first ``rows[0]`` rows belong to ``nodes[0]``, and so on. A row is a
    device; only a device split into MIG instances may have several, one for each time it was checked. A number of -1
    is one that the source does not report.
    """

    TYPE: ClassVar[str] = TYPE_PREFIX + "devices.judged.v1"

    @model_validator(mode="after")
    def _halves_agree(self) -> Self:
        check_rows(self, self)
        return self

    @property
    def id(self) -> str:
        return f"{self.attempt_id}/devices/{self.part}"

    def each_device(self) -> Iterator[DeviceRow]:
        """The rows as objects, in the order of the record, for readers that prefer objects to columns."""
        # ``tolist`` once per column: reading single numpy elements costs many times as much.
        owners = np.repeat(np.arange(len(self.nodes)), self.rows).tolist()
        names = ("verdict", "kind", "numa", *_NUMBERS_USED)
        columns = (getattr(self, name).tolist() for name in names)
        for node, uuid, verdict, code, *numbers in zip(owners, self.uuid, *columns, strict=True):
            kind = self.kinds[code]
            numa, memory, cores, slots = (None if number == NOT_REPORTED else number for number in numbers)
            yield DeviceRow(
                self.nodes[node], uuid, self.verdicts[verdict], kind.model, numa,
                kind.memory_mib, memory, kind.cores_percent, cores, kind.slots, slots,
            )  # fmt: skip
