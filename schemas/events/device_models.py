"""Devices as several events describe them: what many have in common, what is taken of one, what a pod holds."""

from pydantic import Field

from .base import Model
from .field_types import Count, Flag, Integer


class MigInstanceProfile(Model):
    """A size of instance that a MIG device can be split into, as its node registers it."""

    name: str = ""
    memory_mib: Integer = 0
    cores_percent: Integer = 0
    slices: Integer = 0
    placements: list[tuple[Integer, Integer]] = Field(default_factory=list)
    """Possible positions of an instance: first memory slice, and number of slices."""


class DeviceKind(Model):
    """Properties that many devices of a cluster have in common. None is a number that the source does not report."""

    model: str = ""
    """Model as the device's driver or plugin calls it; empty where it is not known."""
    vendor: str = ""
    """Vendor of the device, as in requests: ``NVIDIA``, ``DCU``, … Empty where it is not known."""
    mode: str = ""
    """Sharing mode of the device: ``hami-core``, ``mig``, ``mps``; empty where it is not known."""
    memory_mib: Integer | None = None
    cores_percent: Integer | None = None
    slots: Integer | None = None
    """Number of containers that may share the device."""
    mig_profiles: list[MigInstanceProfile] = Field(default_factory=list)


class DeviceAllocation(Model):
    """One device for one container. None is a number that the source does not say."""

    uuid: str
    container: str
    """The container's name."""
    init: Flag = False
    """True for an init container: it releases the device before the pod's other containers start."""
    model: str = ""
    memory_mib: Integer | None = None
    cores_percent: Integer | None = None
    """Cores in percent of one device."""
    slots: Count = 1


class PickedDevice(Model):
    """A device that was taken, as it stood before; null is a number that the source does not say."""

    container: Count
    """Position in the attempt's requests."""
    uuid: str
    model: str = ""
    memory_mib: Integer | None = None
    """Taken of it, as the two below."""
    cores_percent: Integer = 0
    memory_total_mib: Integer | None = None
    memory_used_mib: Integer | None = None
    """By others, as the other numbers of use."""
    cores_total_percent: Integer | None = None
    cores_used_percent: Integer | None = None
    slots_total: Integer | None = None
    slots_used: Integer | None = None
