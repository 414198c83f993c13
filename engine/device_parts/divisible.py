"""A device of a node with the parts of it that pods hold, and the request of a pod for parts of devices."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from engine.hami.reason_codes import ReasonCode
from engine.snapshot.quantity import NANO, QuantityError, read_nano

WHOLE_DEVICE: Final = 100
"""Compute of a device, in percent."""
_MIB: Final = 2**20


class DevicePart(NamedTuple):
    """Part of a device that a pod holds, as its annotation has it."""

    device: str
    """Name of the device on its node."""
    cores_percent: int = 0
    memory_mib: int | None = None
    memory_percent: int | None = None
    """Percent of the device's memory, in place of MiB."""
    container: str = ""


class HeldPart(NamedTuple):
    """Part of a device that a pod holds."""

    namespace: str
    pod: str
    cores_percent: int
    memory_mib: int


@dataclass(frozen=True, slots=True)
class DivisibleDevice:
    """A device, and what pods hold of it."""

    node: str
    name: str
    """Unique on its node: the UUID, or the kind with the minor number (``gpu-0``)."""
    id: str
    """Unique in the cluster."""
    kind: str = "gpu"
    index: int = 0
    model: str = ""
    memory_mib: int | None = None
    slots: int | None = None
    """Number of pods that may share it; None for any number."""
    numa: int = 0
    is_healthy: bool = True
    shares: tuple[HeldPart, ...] = ()

    @property
    def held_cores(self) -> int:
        """Compute that pods hold, in percent."""
        return sum(share.cores_percent for share in self.shares)

    @property
    def free_cores(self) -> int:
        """Compute that no pod holds, in percent."""
        return max(WHOLE_DEVICE - self.held_cores, 0)

    @property
    def free_memory_mib(self) -> int:
        """Memory that no pod holds."""
        return max((self.memory_mib or 0) - sum(share.memory_mib for share in self.shares), 0)


def accept_all(_device: DivisibleDevice) -> ReasonCode | None:
    """Find no mismatch: the pod takes devices of every model."""
    return None


@dataclass(frozen=True, slots=True)
class PartRequest:
    """Request for a part of each of ``count`` devices of one node."""

    kind: str
    count: int
    cores_percent: int = 0
    memory_mib: int = 0
    memory_percent: int | None = None
    """Percent of each device's memory, in place of MiB."""
    is_health_checked: bool = True
    is_alone_when_whole: bool = False
    """True if a pod that asks for all compute of a device gets only one that nobody holds, and a device without free
    compute takes no pod at all."""
    find_mismatch: Callable[[DivisibleDevice], ReasonCode | None] = accept_all

    @property
    def asks_memory(self) -> bool:
        """True if it asks for memory."""
        return bool(self.memory_mib or self.memory_percent)

    def measure_memory(self, device: DivisibleDevice) -> int:
        """Measure the memory that it asks of a device, in MiB."""
        if self.memory_percent is None:
            return self.memory_mib
        return (device.memory_mib or 0) * self.memory_percent // WHOLE_DEVICE

    def is_beyond(self, device: DivisibleDevice) -> bool:
        """Tell whether the device has less memory than is asked, also if nobody holds any of it."""
        return self.measure_memory(device) > (device.memory_mib or 0)

    def find_reason(self, device: DivisibleDevice) -> ReasonCode | None:
        """Find the reason for which a device does not meet the request; None for one that does."""
        if self.is_health_checked and not device.is_healthy:
            return ReasonCode.CARD_NOT_HEALTH
        if mismatch := self.find_mismatch(device):
            return mismatch
        if device.slots is not None and len(device.shares) >= device.slots:
            return ReasonCode.CARD_TIME_SLICING_EXHAUSTED
        if self.measure_memory(device) > device.free_memory_mib:
            return ReasonCode.CARD_INSUFFICIENT_MEMORY
        if self.cores_percent > WHOLE_DEVICE - device.held_cores:
            return ReasonCode.CARD_INSUFFICIENT_CORE
        if self.is_alone_when_whole and self.cores_percent == WHOLE_DEVICE and device.shares:
            return ReasonCode.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT
        if self.is_alone_when_whole and device.held_cores >= WHOLE_DEVICE:
            return ReasonCode.CARD_COMPUTE_UNITS_EXHAUSTED
        return None


def read_amount(value: Any) -> int | None:
    """Read a quantity in whole units; None for none or a malformed one."""
    try:
        return None if value is None else read_nano(value) // NANO
    except QuantityError:
        return None


def read_mib(value: Any) -> int | None:
    """Read a quantity of bytes in MiB; None for none or a malformed one."""
    amount = read_amount(value)
    return None if amount is None else amount // _MIB
