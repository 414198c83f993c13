"""The states of nodes with shared devices as KAI looked at them, each computed once for the attempts of a session."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from ingest.readers.kai.devices import SharedDevice
from ingest.readers.node_states import LoggedState, build_logged_state
from runtime.bounded_cache import BoundedCache
from schemas.events import NOT_REPORTED, DeviceKind


class DeviceVerdictRow(NamedTuple):
    """The shared devices of a node in the order of its state."""

    groups: list[str]
    devices: list[SharedDevice]
    state: LoggedState


_MAX_KNOWN: Final = 10_000
"""After a restart the attempts share no mapping any more."""

_NONE: Final = DeviceVerdictRow([], [], LoggedState("", 0, {}))
"""The state of nodes without shared devices, which are most nodes of some clusters."""


class StateMemo:
    """Nodes that did not change between two attempts have one mapping of devices for both.

    It must not outlive a change of the devices: their numbers are completed in place.
    """

    def __init__(self) -> None:
        self._judged_devices: BoundedCache[int, tuple[Mapping[str, SharedDevice], DeviceVerdictRow]] = BoundedCache(
            _MAX_KNOWN
        )

    def get_judged(self, node: str, devices: Mapping[str, SharedDevice]) -> DeviceVerdictRow:
        if not devices:
            return _NONE
        if (entry := self._judged_devices.get(id(devices))) is None:
            # With the mapping itself, so that no other gets its id.
            entry = devices, _judge_devices(node, devices)
            self._judged_devices.put(id(devices), entry)
        return entry[1]


def _judge_devices(node: str, devices: Mapping[str, SharedDevice]) -> DeviceVerdictRow:
    groups = sorted(devices)
    ordered = [devices[group] for group in groups]
    # KAI prints no model, NUMA node, cores or slots of shared devices.
    kinds: dict[int | None, int] = {}
    kind = [kinds.setdefault(device.total_mib, len(kinds)) for device in ordered]
    used = [NOT_REPORTED if device.allocated_mib is None else device.allocated_mib for device in ordered]
    table = [_create_kind(total) for total in kinds]
    return DeviceVerdictRow(groups, ordered, build_logged_state(node, groups, table, kind=kind, memory_used_mib=used))


@lru_cache(maxsize=256)
def _create_kind(total_mib: int | None) -> DeviceKind:
    return DeviceKind(memory_mib=total_mib)
