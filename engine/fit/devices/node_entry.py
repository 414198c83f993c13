"""Registered node: its block of device rows, and everything about it that does not fit into columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import repeat
from typing import Any, Final, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from engine.fit.devices.pod_usage import DeviceUse, PodUse
from engine.hami.mig import MigProfile, Placement
from engine.hami.node_registration import NodeDevices
from engine.hami.registration import DEFAULT_MODE, Device, Registration, encode_extra
from engine.hami.vendor_annotations import ASCEND_NODE_SOFT, METAX_LOSSES, METAX_SCORES

MIG_MODE: Final = "mig"
NODE_MARKS: Final = (ASCEND_NODE_SOFT, METAX_LOSSES, METAX_SCORES)
PairScores = Mapping[str, Mapping[str, int]]
"""`{uuid: {uuid: score}}`, higher is better; pairs that are not named score 0."""
_NONE: Final[Mapping[str, int]] = {}
_LARGEST_SCORE: Final = 2**40  # thousands of pairs still add up within 64 bits


def build_pair_matrix(uuids: Sequence[str], scores: PairScores) -> NDArray[np.int64]:
    """Build the scores of each device with each other one, and with itself, shape (devices, devices).

    HAMi counts what the annotation says of a device and itself where a pod gets two instances of a MIG device.
    """
    rows = [list(map(scores.get(uuid, _NONE).get, uuids, repeat(0))) for uuid in uuids]
    try:
        pairs = np.array(rows, np.int64)
    except OverflowError:
        # JSON holds integers of any length, numpy only 64 bits.
        pairs = np.array([[max(-_LARGEST_SCORE, min(score, _LARGEST_SCORE)) for score in row] for row in rows])
    return np.clip(pairs, -_LARGEST_SCORE, _LARGEST_SCORE)


class NodeFragment(NamedTuple):
    """Name and device UUIDs of a registered node. uuids_json: as a JSON array, encoded once when the node registers.

    A node that registers again gets a new fragment; decisions keep the old one.
    """

    name: str
    uuids: tuple[str, ...]
    uuids_json: bytes


class RegisteredKind(NamedTuple):
    """Properties that a device shares with many others; type filters depend on them. Units as in `Device`.

    vendor: its word; empty for none.
    """

    model: str
    vendor: str
    mode: str
    memory_mib: int
    cores: int
    slots: int
    mig_profiles: tuple[MigProfile, ...]

    @classmethod
    def classify(cls, device: Device, vendor: str) -> "RegisteredKind":
        return cls(
            device.model, vendor, device.mode, device.memory_mib, device.cores, device.slots, device.mig_profiles
        )


@dataclass(slots=True)
class NodeEntry:
    """Registered node. start: first row of its block. rows: rows by UUID. held: MIG placements in use by row."""

    id: int
    start: int
    devices: NodeDevices
    fragment: NodeFragment
    rows: dict[str, list[int]]
    held: dict[int, list[Placement]] = field(default_factory=dict)
    classes: dict[int, list[str]] = field(default_factory=dict)
    """Metax' classes of the pods on each row, where pods have one."""
    marks: Mapping[str, str] = field(default_factory=dict)
    """Annotations of the node that single vendors' rules read."""
    _pairs: NDArray[np.int64] | None = None
    _cuts: bytes = b""
    _peculiar: bytes = b""
    _peculiar_devices: tuple[tuple[int, dict[str, Any]], ...] | None = None

    @property
    def size(self) -> int:
        return len(self.fragment.uuids)

    @property
    def pairs(self) -> NDArray[np.int64] | None:
        """Score of each pair of its devices, shape (size, size); None where the node reports none."""
        # Made at the first topology-aware pod: others never need it.
        if self._pairs is None and self.devices.pair_scores:
            self._pairs = build_pair_matrix(self.fragment.uuids, self.devices.pair_scores)
        return self._pairs

    @property
    def block(self) -> range:
        """Range of its device rows."""
        return range(self.start, self.start + self.size)

    @property
    def rows_slice(self) -> slice:
        """Slice of its device rows, as an index into a column."""
        return slice(self.start, self.start + self.size)

    @property
    def cuts(self) -> bytes:
        """Digest of the MIG profiles of its devices: equal for nodes whose profiles are equal."""
        # Made once a registration: `per_node` compares nodes by it in every call.
        if not self._cuts:
            profiles = [(device.mode == MIG_MODE, device.mig_profiles) for device in self.devices.registration.devices]
            self._cuts = blake2b(repr(profiles).encode(), digest_size=16).digest()
        return self._cuts

    @property
    def peculiar(self) -> bytes:
        """Digest of the fields of its devices that only single vendors' rules read."""
        if not self._peculiar:
            devices = self.devices.registration.devices
            fields = [(device.index, device.model, device.extra) for device in devices]
            self._peculiar = blake2b(repr(fields).encode(), digest_size=16).digest()
        return self._peculiar

    @property
    def peculiar_devices(self) -> tuple[tuple[int, dict[str, Any]], ...]:
        """Devices with fields that only single vendors' rules read: position, and these fields as JSON."""
        if self._peculiar_devices is None:
            devices = enumerate(self.devices.registration.devices)
            self._peculiar_devices = tuple(
                (position, encode_extra(device)) for position, device in devices if device.extra
            )
        return self._peculiar_devices

    def update_classes(self, row: int, app_class: str, sign: int) -> None:
        """Add a pod's class to a device (sign 1) or remove it (sign -1)."""
        if not app_class:
            return
        classes = self.classes.setdefault(row, [])
        if sign > 0:
            classes.append(app_class)
        elif app_class in classes:
            classes.remove(app_class)

    def is_mig(self, row: int) -> bool:
        return self.devices.registration.devices[row - self.start].mode == MIG_MODE

    def get_profiles(self, row: int) -> tuple[MigProfile, ...]:
        return self.devices.registration.devices[row - self.start].mig_profiles

    def find_unsound_rows(self, use: PodUse) -> list[int]:
        """Find the rows of which a pod makes it unknown what they have left; a row may occur more than once."""
        rows = [
            row
            for uuid, share in use.by_uuid.items()
            for row in self.rows.get(uuid, ())
            if self._is_unsound(row, share)
        ]
        # An instance on a device that the node does not have may be on any of its MIG devices.
        if any(share.instances and uuid not in self.rows for uuid, share in use.by_uuid.items()):
            rows += [row for row in self.block if self.is_mig(row)]
        return rows

    def _is_unsound(self, row: int, share: DeviceUse) -> bool:
        """Tell whether a pod's share contradicts the device's mode.

        HAMi's rule: a share of a MIG device has its instance, and a device of another mode has none. Of another mode
        than `hami-core`, the share takes up the first instance.
        """
        mode = self.get_device(row).mode
        if mode == MIG_MODE:
            return not share.instances
        return len(share.instances) > (share.slots > 0 and mode != DEFAULT_MODE)

    def get_device(self, row: int) -> Device:
        """Get the device of one of its rows, as the node registered it."""
        return self.devices.registration.devices[row - self.start]

    def update_instances(self, row: int, share: DeviceUse, sign: int) -> None:
        """Add a share's MIG instances to a device (sign 1) or remove them (sign -1)."""
        held = self.held.setdefault(row, []) if share.instances else []
        for _, placement in share.instances:
            if sign > 0:
                held.append(placement)
            elif placement in held:
                held.remove(placement)


def build_fragment(name: str, registration: Registration) -> NodeFragment:
    """Build the fragment of a node that registers now."""
    uuids = tuple(device.uuid for device in registration.devices)
    # A copy: orjson's own bytes keep a buffer of a KiB.
    return NodeFragment(name, uuids, bytes(memoryview(orjson.dumps(uuids))))


def select_marks(annotations: Mapping[str, object]) -> dict[str, str]:
    """Select the annotations of a node that single vendors' rules read."""
    return {key: value for key in NODE_MARKS if isinstance(value := annotations.get(key), str)}
