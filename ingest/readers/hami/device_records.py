"""The records of an attempt's device rows, and the devices that it picked."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from ingest.readers.hami.attempt import NodeLine
from ingest.readers.hami.devices import DeviceInRegistration, RegisteredDevices
from ingest.readers.hami.states import PrintedNumbers, parse_printed
from ingest.readers.hami.tables import Keys, Rows, measure_json, parse_refusal
from ingest.readers.node_states import LoggedState
from schemas.codec.chunking import divide_sizes
from schemas.events import NOT_REPORTED, PICKED, REFUSED, DevicesJudged, PickedDevice, Request

_ROW_BYTES: Final = 40
"""Greatest size of a device's verdict, position and printed numbers in JSON."""
_NODE_BYTES: Final = 128


class _Piece(NamedTuple):
    """Devices of one container that stand together in a record: those of one state."""

    state: LoggedState
    device: Sequence[int]
    """The position of each row in the state."""
    verdicts: list[str]
    printed: list[PrintedNumbers]


class DeviceRecords:
    """Makes records of whole nodes, and ``partial`` records of the others: consumers count only the former."""

    def __init__(
        self,
        requests: Sequence[Request],
        nodes: Mapping[str, NodeLine],
        rows: Rows,
        complete_keys: Keys,
        states: Mapping[str, Sequence[LoggedState]],
    ) -> None:
        """Take an attempt's tables; ``complete_keys`` comes from ``tables.find_complete_rows``."""
        self._requests, self._nodes, self._rows, self._complete, self._states = (
            requests,
            nodes,
            rows,
            complete_keys,
            states,
        )

    def make(self, shared: Mapping[str, Any], record_bytes: int) -> Iterator[DevicesJudged]:
        """Make the records. ``shared``: the fields that all events of the attempt share."""
        part = 0
        for container in sorted({container for container, _ in self._rows}):
            for is_whole in (True, False):
                for fields in self._iterate_records(container, record_bytes, is_whole=is_whole):
                    yield DevicesJudged(**shared, part=part, partial=not is_whole, **fields)
                    part += 1

    def _iterate_records(self, container: int, record_bytes: int, *, is_whole: bool) -> Iterator[dict[str, Any]]:
        keys = sorted(key for key in self._rows if key[0] == container and (key in self._complete) == is_whole)
        pieces = [piece for key in keys for piece in self._iterate_pieces(key)]
        sizes = [len(piece.verdicts) * _ROW_BYTES + measure_json(piece.state.node) + _NODE_BYTES for piece in pieces]
        for run in divide_sizes(np.array(sizes, dtype=np.int64), record_bytes):
            yield self._record(container, pieces[run])

    def _iterate_pieces(self, key: tuple[int, str]) -> Iterator[_Piece]:
        rows = self._rows[key]
        for state in self._states[key[1]]:
            device = [index for index, uuid in enumerate(state.uuids) if uuid in rows]
            if device:
                lines = [rows[state.uuids[index]] for index in device]
                printed = [parse_printed(line.tail) for line in lines]
                yield _Piece(state, device, [line.verdict for line in lines], printed)

    def _record(self, container: int, pieces: Sequence[_Piece]) -> dict[str, Any]:
        verdicts = sorted({verdict for piece in pieces for verdict in piece.verdicts})
        codes = {verdict: code for code, verdict in enumerate(verdicts)}
        position, request = find_request(container, self._requests)
        # Positions ascend: the last one shows whether they are 0, 1, 2, …
        has_gaps = any(piece.device[-1] >= len(piece.device) for piece in pieces)
        return {
            "container": position,
            "request": request,
            "models": _count_models(pieces),
            "verdicts": verdicts,
            "nodes": [piece.state.node for piece in pieces],
            "revision": [piece.state.revision for piece in pieces],
            "devices": [self._count_devices(piece.state.node) for piece in pieces],
            "rows": [len(piece.verdicts) for piece in pieces],
            "verdict": [codes[verdict] for piece in pieces for verdict in piece.verdicts],
            "device": [index for piece in pieces for index in piece.device] if has_gaps else [],
        } | _collect_printed(pieces, request)

    def _count_devices(self, node: str) -> int:
        """Return the Y of ``X/Y Reason``; 0 if the log does not give it."""
        line = self._nodes.get(node)
        return parse_refusal(line).devices if line and line.verdict == REFUSED else 0


def list_picked_devices(
    requests: Sequence[Request], rows: Rows, chosen: str, registered: RegisteredDevices
) -> list[PickedDevice]:
    """List the devices that were taken on the chosen node, by container."""
    picked: list[PickedDevice] = []
    for container in sorted(container for container, node in rows if node == chosen):
        position, request = find_request(container, requests)
        uuids = (uuid for uuid, line in rows[container, chosen].items() if line.verdict == PICKED)
        picked += [_to_picked_device(position, request, uuid, registered) for uuid in uuids]
    return sorted(picked, key=lambda device: device.container)


def _to_picked_device(container: int, request: Request, uuid: str, registered: RegisteredDevices) -> PickedDevice:
    device = registered.get(uuid, DeviceInRegistration(""))
    # Nothing about use: HAMi prints it only of devices that it refuses.
    return PickedDevice(
        container=container, uuid=uuid, model=device.model,
        memory_mib=request.compute_memory(device.memory_mib), cores_percent=request.cores_percent,
        memory_total_mib=device.memory_mib, cores_total_percent=device.cores_percent, slots_total=device.slots,
    )  # fmt: skip


def find_request(container: int, requests: Sequence[Request]) -> tuple[int, Request]:
    """Find the container's position and request; an unknown container gets the position after all requests."""
    is_known = 0 <= container < len(requests)
    return (container, requests[container]) if is_known else (len(requests), Request(container=""))


def _collect_printed(pieces: Sequence[_Piece], request: Request) -> dict[str, list[int]]:
    """Collect the numbers that lines print of each device, by column; one that repeats the request is empty."""
    numbers = [number for piece in pieces for number in piece.printed]
    index, memory, cores = ([*column] for column in zip(*numbers, strict=True)) if numbers else ([], [], [])
    requested = {request.memory_mib, NOT_REPORTED, None}
    columns = {
        "printed_index": index,
        "memory_requested_mib": [] if request.memory_percent is None and requested.issuperset(memory) else memory,
        "cores_requested_percent": [] if {request.cores_percent, NOT_REPORTED}.issuperset(cores) else cores,
    }
    return {
        name: [] if all(number == NOT_REPORTED for number in column) else column for name, column in columns.items()
    }


def _count_models(pieces: Sequence[_Piece]) -> dict[str, int]:
    models: Counter[str] = Counter()
    for piece in pieces:
        kinds, kind = piece.state.columns["kinds"], piece.state.columns["kind"]
        for code, rows in Counter(kind[index] for index in piece.device).items():
            models[kinds[code].model] += rows
    return {model: rows for model, rows in sorted(models.items()) if model}
