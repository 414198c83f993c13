"""The states of the nodes of an attempt: all devices that registrations and the attempt's lines name, before it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from engine.hami.reason_codes import ReasonCode
from ingest.readers.hami.attempt import UNKNOWN, DeviceLine, HamiAttempt
from ingest.readers.hami.devices import DeviceInRegistration, RegisteredDevices
from ingest.readers.hami.tables import Rows
from ingest.readers.node_states import LoggedState, build_logged_state
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
"""Values of ``_NUMBERS``: three totals, three amounts in use, the NUMA node; None if no line has it."""
_PRINTED: Final = re.compile(r" (device index|device|request memory|request cores)=(\d{1,9})(?![\w.])")
PrintedNumbers = tuple[int, int, int]
"""The number that a line prints of its device, the memory (MiB) and the cores (percent) requested of it."""
_NO_NUMBERS: Final[Numbers] = (None,) * len(_NUMBERS)
_TOTALS: Final = 3
_COLUMNS: Final = (
    "kind", "index", "numa", "healthy", "cordoned", "memory_used_mib", "cores_used_percent", "slots_used",
)  # fmt: skip
_UNREGISTERED: Final = DeviceInRegistration("")


def derive_states(
    attempt: HamiAttempt, rows: Rows, registered: RegisteredDevices, by_node: Mapping[str, Sequence[str]]
) -> dict[str, list[LoggedState]]:
    """Derive the states by node; only unnamed nodes have several. ``by_node``: the UUIDs of each registered node."""
    layers: dict[str, list[Layer]] = {}
    for container, node in sorted(rows):
        lines = rows[container, node]
        # The container that took a device first may be another one: what is in use then includes what it took.
        if container == UNKNOWN and len(attempt.list_requesting()) > 1:
            lines = {uuid: line._replace(tail="") for uuid, line in lines.items()}
        layers.setdefault(node, []).append(lines)
    return {
        node: [_build_state(node, uuids, lines, registered) for uuids in _iterate_uuids(node, lines, by_node)]
        for node, lines in layers.items()
    }


def _iterate_uuids(node: str, layers: Sequence[Layer], by_node: Mapping[str, Sequence[str]]) -> Iterator[list[str]]:
    """Iterate over the devices of each state, in an order that does not depend on the order of the lines."""
    registered = by_node.get(node, ()) if node else ()
    others = sorted(set().union(*layers).difference(registered))
    if node:
        yield [*registered, *others]
        return
    for start in range(0, len(others), _DEVICES_WITHOUT_NODE):
        yield others[start : start + _DEVICES_WITHOUT_NODE]


def _build_state(node: str, uuids: list[str], layers: Sequence[Layer], registered: RegisteredDevices) -> LoggedState:
    kinds: dict[tuple[Any, ...], int] = {}
    rows = []
    for uuid in uuids:
        _, model, memory, cores, slots, numa, index, is_healthy = registered.get(uuid, _UNREGISTERED)
        lines = [layer[uuid] for layer in layers if uuid in layer]
        numbers = _parse_numbers(lines[0].tail) if len(lines) == 1 else _merge_numbers(lines)
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
        kind_code = kinds.setdefault(kind, len(kinds))
        rows.append((kind_code, index, numa, is_healthy, ReasonCode.CARD_CORDONED in codes, *used))
    columns = [[NOT_REPORTED if value is None else value for value in column] for column in zip(*rows, strict=True)]
    table = [DeviceKind(model=model, memory_mib=memory, cores_percent=cores, slots=slots)
             for model, memory, cores, slots in kinds]  # fmt: skip
    return build_logged_state(node, uuids, table, **dict(zip(_COLUMNS, columns, strict=True)))


# Attempts that follow each other repeat most lines about devices.
@lru_cache(maxsize=16_384)
def _parse_numbers(tail: str) -> Numbers:
    # Reversed: of a number that occurs twice the first one counts.
    numbers = dict(reversed(_NUMBER.findall(tail)))
    return tuple(int(numbers[name]) if name in numbers else None for name in _NUMBERS)


@lru_cache(maxsize=16_384)
def parse_printed(tail: str) -> PrintedNumbers:
    """Parse the numbers that a line prints of its device; -1 for a missing number."""
    numbers = {name: int(number) for name, number in reversed(_PRINTED.findall(tail))}
    index = numbers.get("device index", numbers.get("device", NOT_REPORTED))
    return index, numbers.get("request memory", NOT_REPORTED), numbers.get("request cores", NOT_REPORTED)


def _merge_numbers(lines: Sequence[DeviceLine]) -> Numbers:
    """Merge the numbers of one device from before the first container took it; ``lines``: by container."""
    merged = _NO_NUMBERS
    is_taken = False
    for line in lines:
        numbers = _parse_numbers(line.tail)
        if is_taken:
            numbers = (*numbers[:_TOTALS], *_NO_NUMBERS[_TOTALS:-1], numbers[-1])
        merged = tuple(later if earlier is None else earlier for earlier, later in zip(merged, numbers, strict=True))
        is_taken |= line.verdict in (FITS, PICKED)
    return merged
