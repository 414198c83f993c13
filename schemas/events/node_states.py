"""The state of a node's devices: what verdicts on them refer to by node and revision."""

from datetime import datetime
from typing import Annotated, ClassVar, NamedTuple, Self

from pydantic import FailFast, Field, model_validator

from ..ids import count_microseconds
from .base import TYPE_PREFIX, Model
from .columns import Codes, Integers, check_codes, check_lengths
from .device_models import DeviceKind
from .field_types import Count, Flag, Words
from .observations import NodeEvent


class MigSpan(Model):
    """A span of memory slices of a MIG device: ``size`` slices from ``start`` on."""

    start: Count
    size: Count


class MigUse(Model):
    """The instances on one MIG device."""

    device: Count
    """Position in the columns."""
    spans: list[MigSpan] = Field(default_factory=list)
    """Positions of its instances."""
    unknown: Count = 0
    """Number of allocations on it whose instance is not known; with one of them nothing more fits on the device."""


class VendorFields(Model):
    """Fields of a device that only the rules of its own vendor read."""

    device: Count
    """Position in the columns."""
    registered: dict[str, str | int | float | dict[str, str]] = Field(default_factory=dict)
    """Fields that its node registers next to the columns, by the vendor's names (``NetworkID``, ``LinkZone``)."""
    classes: Words = Field(default_factory=list)
    """Metax' classes of the pods on it."""


class NodeStateChanged(NodeEvent):
    """All devices of a node as its scheduler counted them at one time; each column has an entry per device.

    Verdicts refer to it by ``node``, ``epoch`` and ``revision``, and it is written before the first of them. It is
    written again, unchanged, at least once a day, so that retention deletes no state that a retained verdict refers to.
    A node without devices is one that offers none any more. A number of -1 is one that the source does not report.
    """

    TYPE: ClassVar[str] = TYPE_PREFIX + "node.state.changed.v1"

    node: str
    """The node's name; empty for devices of which the source does not report the node."""
    epoch: Count
    """Epoch of the revisions: the start of the scheduler process, in microseconds since 1970, and greater than that of
    the process before. 0 for a log reader, whose revisions are derived from the content."""
    revision: Count
    """Counts the changes of this node within the epoch."""
    kinds: list[DeviceKind]
    """The table behind ``kind``: each distinct kind of device once."""
    uuid: Words
    """The device, as its vendor names it, in the order in which the node registers them."""
    kind: Codes
    """Index into ``kinds``."""
    index: Integers
    """The device's number on its node."""
    numa: Integers
    """The NUMA node that the device sits on."""
    healthy: Annotated[list[Flag], FailFast()]
    cordoned: Annotated[list[Flag], FailFast()]
    """True where an operator excluded the device."""
    memory_used_mib: Integers
    cores_used_percent: Integers
    slots_used: Integers
    mig: list[MigUse] = Field(default_factory=list)
    """Use of the MIG devices that hold instances."""
    pair_scores: Integers = Field(default_factory=list, validate_default=True)
    """Scores of the connection between two devices, as the node reports them: a row per device, one row after the
    other; empty where the node reports none."""
    vendor_fields: list[VendorFields] = Field(default_factory=list)
    """The devices for which a single vendor's rules read more than the columns hold."""
    annotations: dict[str, str] = Field(default_factory=dict)
    """Annotations of the node that the rules of single vendors read."""
    withheld_cause: str = ""
    """Reason why the scheduler leaves the node's devices to another one, such as ``pods of hami hold devices there``;
    the state then has no devices. Empty for every other node."""

    @model_validator(mode="after")
    def _devices_agree(self) -> Self:
        columns = (
            "kind", "index", "numa", "healthy", "cordoned", "memory_used_mib", "cores_used_percent", "slots_used",
        )  # fmt: skip
        check_lengths({name: getattr(self, name) for name in columns}, len(self.uuid))
        check_codes({"kind": (self.kind, len(self.kinds))})
        if self.kind.size and self.kind.min() < 0:
            raise ValueError("every device has a kind")
        if any(use.device >= len(self.uuid) for use in self.mig):
            raise ValueError(f"mig names a device beyond the {len(self.uuid)} of the node")
        if any(field.device >= len(self.uuid) for field in self.vendor_fields):
            raise ValueError(f"vendor_fields names a device beyond the {len(self.uuid)} of the node")
        if self.pair_scores.size:
            check_lengths({"pair_scores": self.pair_scores}, len(self.uuid) ** 2)
        return self

    @property
    def id(self) -> str:
        # Without the time: written again, it is the same state.
        return build_state_id(self.cluster, self.scheduler, self.node, self.epoch, self.revision)


class StateRank(NamedTuple):
    """Rank of a state among those of its node: the greatest is the present one."""

    epoch: int
    written_at: datetime
    revision: int


def rank_state(state: NodeStateChanged, recorded_at: datetime) -> StateRank:
    """Rank a state; ``recorded_at``: the broker's time of its record.

    The scheduler itself precedes readers of logs, whose epoch is 0. The clock of a writer may have been ahead: a state
    counts as written when the broker took it, at the latest.
    """
    epoch = min(state.epoch, count_microseconds(recorded_at))
    return StateRank(epoch, min(state.observed_at, recorded_at), state.revision)


def build_state_id(cluster: str, scheduler: str, node: str, epoch: int, revision: int) -> str:
    """Build the id of the state that a verdict refers to."""
    return f"{cluster}/{scheduler}/{node}/state/{epoch}/{revision}"
