"""The states of the nodes of an attempt: all devices that registrations and the attempt's lines name, before it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from engine.hami.reason_codes import ReasonCode
from ingest.readers.hami.attempt import UNKNOWN, DeviceLine, HamiAttempt
from ingest.readers.hami.devices import RegisteredDevice, RegisteredDevices
from ingest.readers.hami.tables import Rows
from ingest.readers.node_states import LoggedState, logged_state
from schemas.events import FITS, NOT_REPORTED, PICKED, DeviceKind

Layer = Mapping[str, DeviceLine]
"""The lines of one container about devices of one node, by UUID."""

_DEVICES_WITHOUT_NODE: Final = 100
"""At most in one state: a cluster has more of them than fit into a record."""

_NUMBERS: Final = (
    "device total memory", "device total core", "count", "device used memory", "device used core", "used",
    "device numa",
)  # fmt: skip
_NUMBER: Final = re.compile(rf" ({'|'.join(_NUMBERS)})=(\d{{1,9}})")
Numbers = tuple[int | None, ...]
"""In the order of ``_NUMBERS``: three totals, three of what is in use, the NUMA node; None where no line gives it."""
_PRINTED: Final = re.compile(r" (device index|device|request memory|request cores)=(\d{1,9})(?![\w.])")
PrintedNumbers = tuple[int, int, int]
"""The number that a line prints of its device, the memory (MiB) and the cores (percent) requested of it."""
_NO_NUMBERS: Final[Numbers] = (None,) * len(_NUMBERS)
_TOTALS: Final = 3
_COLUMNS: Final = (
    "kind", "index", "numa", "healthy", "cordoned", "memory_used_mib", "cores_used_percent", "slots_used",
)  # fmt: skip
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
    rows = []
    for uuid in uuids:
        _, model, memory, cores, slots, numa, index, is_healthy = registered.get(uuid, _UNREGISTERED)
        lines = [layer[uuid] for layer in layers if uuid in layer]
        numbers = _numbers(lines[0].rest) if len(lines) == 1 else _numbers_before(lines)
        total_memory, total_cores, total_slots, *used, printed_numa = numbers
        numa = printed_numa if numa is None else numa
        kind = (
            model,
            memory if total_memory is None else total_memory,
            cores if total_cores is None else total_cores,
            slots if total_slots is None else total_slots,
        )
        codes = [line.verdict for line in lines]
        # HAMi's verdict on the device is younger than its registration.
        is_healthy = ReasonCode.CARD_NOT_HEALTH not in codes if codes else is_healthy
        place = kinds.setdefault(kind, len(kinds))
        rows.append((place, index, numa, is_healthy, ReasonCode.CARD_CORDONED in codes, *used))
    columns = [[NOT_REPORTED if value is None else value for value in column] for column in zip(*rows, strict=True)]
    table = [DeviceKind(model=model, memory_mib=memory, cores_percent=cores, slots=slots)
             for model, memory, cores, slots in kinds]  # fmt: skip
    return logged_state(node, uuids, table, **dict(zip(_COLUMNS, columns, strict=True)))


# Attempts that follow each other repeat most lines about devices.
@lru_cache(maxsize=16_384)
def _numbers(rest: str) -> Numbers:
    # Reversed: of a number that occurs twice the first one counts.
    found = dict(reversed(_NUMBER.findall(rest)))
    return tuple(int(found[name]) if name in found else None for name in _NUMBERS)


@lru_cache(maxsize=16_384)
def printed_numbers(rest: str) -> PrintedNumbers:
    """What a line prints of its device; -1 for a number that it does not have. ``rest``: of the line."""
    found = {name: int(number) for name, number in reversed(_PRINTED.findall(rest))}
    index = found.get("device index", found.get("device", NOT_REPORTED))
    return index, found.get("request memory", NOT_REPORTED), found.get("request cores", NOT_REPORTED)


def _numbers_before(lines: Sequence[DeviceLine]) -> Numbers:
    """The numbers of one device before the first container took it; ``lines`` are about it, by container."""
    found = _NO_NUMBERS
    is_taken = False
    for line in lines:
        numbers = _numbers(line.rest)
        if is_taken:
            numbers = (*numbers[:_TOTALS], *_NO_NUMBERS[_TOTALS:-1], numbers[-1])
        found = tuple(later if known is None else known for known, later in zip(found, numbers, strict=True))
        is_taken |= line.verdict in (FITS, PICKED)
    return found
