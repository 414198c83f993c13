"""One registered node: its block of device rows, and what does not fit into columns."""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

import orjson

from scheduler.devices.fragment import NodeFragment
from scheduler.devices.mig import MigProfile, Placement
from scheduler.devices.registration import Device, NodeDevices, Registration
from scheduler.devices.usage import DeviceUse

MIG_MODE: Final = "mig"


class DeviceKind(NamedTuple):
    """What cards share with many others, and what type filters ask of them. Units as in `Device`."""

    model: str
    mode: str
    memory_mib: int
    cores: int
    slots: int

    @classmethod
    def of(cls, device: Device) -> "DeviceKind":
        return cls(device.model, device.mode, device.memory_mib, device.cores, device.slots)


@dataclass(slots=True)
class NodeEntry:
    """`start`: its first device row. `rows`: by UUID. `held`: per row of a MIG card, what stands on it."""

    id: int
    start: int
    devices: NodeDevices
    fragment: NodeFragment
    rows: dict[str, list[int]]
    held: dict[int, list[Placement]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return len(self.fragment.uuids)

    def is_mig(self, row: int) -> bool:
        return self.devices.registration.devices[row - self.start].mode == MIG_MODE

    def profiles(self, row: int) -> tuple[MigProfile, ...]:
        return self.devices.registration.devices[row - self.start].mig_profiles

    def unsound(self, row: int, share: DeviceUse) -> bool:
        """Whether a share makes it unknown what a card has left: an instance it can't have, or on a MIG card none."""
        if not self.is_mig(row):
            return bool(share.instances)
        possible = {(profile.name, place) for profile in self.profiles(row) for place in profile.placements}
        return not share.instances or not possible.issuperset(share.instances)

    def place(self, row: int, share: DeviceUse, sign: int) -> None:
        """Put a share's MIG instances on a card (sign 1) or take them off it (sign -1)."""
        held = self.held.setdefault(row, []) if share.instances else []
        for _, placement in share.instances:
            if sign > 0:
                held.append(placement)
            elif placement in held:
                held.remove(placement)


def fragment_of(name: str, registration: Registration) -> NodeFragment:
    uuids = tuple(device.uuid for device in registration.devices)
    return NodeFragment(name, orjson.dumps(name), orjson.dumps(uuids)[1:-1], uuids)
