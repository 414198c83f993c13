"""The states of the nodes of an attempt: all devices that registrations and the attempt's lines name, before it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from hami.reason_codes import ReasonCode
from ingest.hami.attempt import UNKNOWN, DeviceLine, HamiAttempt
from ingest.hami.devices import RegisteredDevice, RegisteredDevices
from ingest.hami.tables import Rows
from ingest.node_states import LoggedState, logged_state
from schemas.events import FITS, NOT_REPORTED, PICKED, DeviceKind

Layer = Mapping[str, DeviceLine]
"""The lines of one container about devices of one node, by UUID."""

_DEVICES_WITHOUT_NODE: Final = 100
"""At most in one state: a cluster has more of them than fit into a record."""

_NUMBER: Final = re.compile(
    r" (device total memory|device used memory|device total core|device used core|count|used)=(\d{1,9})"
)
_TOTALS: Final = ("device total memory", "device total core", "count")
_USED: Final = {
    "memory_used_mib": "device used memory", "cores_used_percent": "device used core", "slots_used": "used",
}  # fmt: skip
_UNREGISTERED: Final = RegisteredDevice("")


def states_of(
    attempt: HamiAttempt, rows: Rows, registered: RegisteredDevices, by_node: Mapping[str, Sequence[str]]
) -> dict[str, list[LoggedState]]:
    """By node; several only of the devices whose node is not known. ``by_node``: the UUIDs of each registered node."""
    layers: dict[str, list[Layer]] = {}
    for container, node in sorted(rows):
        lines = rows[container, node]
        # The container that took a device first may be another one: what is in use then includes what it took.
        if container == UNKNOWN and len(attempt.requesting()) > 1:
            lines = {uuid: line._replace(rest="") for uuid, line in lines.items()}
        layers.setdefault(node, []).append(lines)
    return {
        node: [_state(node, uuids, lines, registered) for uuids in _uuids(node, lines, by_node)]
        for node, lines in layers.items()
    }


def _uuids(node: str, layers: Sequence[Layer], by_node: Mapping[str, Sequence[str]]) -> Iterator[list[str]]:
    """The devices of each state, in an order that does not depend on the order of the lines."""
    known = by_node.get(node, ()) if node else ()
    others = sorted(set().union(*layers).difference(known))
    if node:
        yield [*known, *others]
        return
    for start in range(0, len(others), _DEVICES_WITHOUT_NODE):
        yield others[start : start + _DEVICES_WITHOUT_NODE]


def _state(node: str, uuids: list[str], layers: Sequence[Layer], registered: RegisteredDevices) -> LoggedState:
    kinds: dict[tuple[Any, ...], int] = {}
    names = ("kind", "index", "numa", "healthy", "cordoned", *_USED)
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for uuid in uuids:
        device = registered.get(uuid, _UNREGISTERED)
        lines = [line for layer in layers if (line := layer.get(uuid))]
        numbers = _numbers_before(lines)
        totals = zip(_TOTALS, (device.memory_mib, device.cores_percent, device.slots), strict=True)
        kind = (device.model, *(numbers.get(name, total) for name, total in totals))
        columns["kind"].append(kinds.setdefault(kind, len(kinds)))
        columns["index"].append(NOT_REPORTED if device.index is None else device.index)
        columns["numa"].append(NOT_REPORTED if device.numa is None else device.numa)
        codes = {line.verdict for line in lines}
        # HAMi's verdict on the device is younger than its registration.
        columns["healthy"].append(ReasonCode.CARD_NOT_HEALTH not in codes if codes else device.is_healthy)
        columns["cordoned"].append(ReasonCode.CARD_CORDONED in codes)
        for name, spelling in _USED.items():
            columns[name].append(numbers.get(spelling, NOT_REPORTED))
    table = [DeviceKind(model=model, memory_mib=memory, cores_percent=cores, slots=slots)
             for model, memory, cores, slots in kinds]  # fmt: skip
    return logged_state(node, uuids, table, **columns)


def _numbers_before(lines: Sequence[DeviceLine]) -> dict[str, int]:
    """The numbers in the lines about one device, in the order of the containers, before the first of them took it."""
    found: dict[str, int] = {}
    is_taken = False
    for line in lines:
        for name, digits in _NUMBER.findall(line.rest):
            if not is_taken or name in _TOTALS:
                found.setdefault(name, int(digits))
        is_taken |= line.verdict in (FITS, PICKED)
    return found
