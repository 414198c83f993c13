"""Records decoded and counted, each distinct content once.

A pending pod is judged again and again on the same cluster. What its records say behind the attempt's own name is then
the same to the byte, and its counts are known: hashing bytes costs next to nothing beside reading them. Where pods have
come or gone meanwhile, the inventory is still the same: four fifths of a record of devices.
"""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final

import orjson
from pydantic import ValidationError
from xxhash import xxh3_128_digest

from schemas.codec import device_record_layout
from schemas.codec.identity_memo import Recent, column_bytes
from schemas.codec.records import Rejected, decode
from schemas.codec.simdjson_reader import read_columns
from schemas.events import (
    AttemptEvent,
    DeviceInventory,
    DevicesJudged,
    DeviceVerdicts,
    Event,
    NodesJudged,
    Words,
    check_rows,
)
from summaries.tally import CountedRecord, Inventory, Tally, count_parts, count_record

_KINDS: Final[dict[bytes, type[DevicesJudged] | type[NodesJudged]]] = {
    kind.TYPE.encode(): kind for kind in (DevicesJudged, NodesJudged)
}
_SEED: Final = secrets.randbits(64)
"""Nobody can prepare two records that look alike to this process."""
_OWN: Final = frozenset({"attempt_id", "pod", "scheduler", "started_at"})
"""What a record says in front of its tail, and nothing else."""


@dataclass(frozen=True, slots=True)
class _DecodedDevices:
    part: int
    nodes: Words
    tally: Tally
    inventory: str
    inventory_at: int
    """Behind where the tail begins."""


_Decoded = _DecodedDevices | NodesJudged


class RecordDecoder:
    """Remembers what records said, within about ``most_bytes``."""

    def __init__(self, most_bytes: int) -> None:
        self._tails: Recent[bytes, _Decoded] = Recent(most_bytes // 2)
        self._inventories: Recent[bytes, Inventory] = Recent(most_bytes // 2)

    def read(self, value: bytes | None, headers: Iterable[tuple[str, bytes]]) -> Event | CountedRecord | Rejected:
        """The event, device rows counted; ``Rejected`` where the record says none."""
        kind = next((_KINDS.get(said) for name, said in headers if name == "ce_type"), None)
        cut = device_record_layout.tail(value) if kind and value else -1
        if kind and value and cut > 0 and (head := _head(value[:cut])):
            return self._known_or_read(kind, value, cut, head) or _counted(decode(value, headers))
        return _counted(decode(value, headers))

    def _known_or_read(
        self, kind: type[DevicesJudged] | type[NodesJudged], value: bytes, cut: int, head: AttemptEvent
    ) -> Event | CountedRecord | Rejected | None:
        key = xxh3_128_digest(memoryview(value)[cut:], _SEED) + kind.TYPE[-20:].encode()
        if (found := self._tails.find(key)) is not None:
            return _told_by(head, found, cut)
        said: Event | CountedRecord | Rejected | None = None
        if kind is DevicesJudged and (at := device_record_layout.inventory(value, cut)) > 0:
            said = self._count(value, cut, at, head)
        # Only the strict reader refuses a name that stands there twice: then the tail could gainsay the head.
        if said is None and (event := read_columns(kind, value)):
            said = _counted(event)
        self._remember(key, said, cut)
        return said

    def _remember(self, key: bytes, said: Event | CountedRecord | Rejected | None, cut: int) -> None:
        if isinstance(said, CountedRecord):
            counted = _DecodedDevices(said.part, said.nodes, said.tally, said.inventory, said.inventory_at - cut)
            self._tails.remember(key, counted, said.tally.size)
        elif isinstance(said, NodesJudged):
            names = 70 * len(said.nodes)
            self._tails.remember(key, said, names + column_bytes(len(said.nodes), len(said.refusals)))

    def _count(self, value: bytes, cut: int, at: int, head: AttemptEvent) -> CountedRecord | None:
        """What is said of devices, each half read on its own; None where it is not said as we say it."""
        whole = memoryview(value)
        verdicts = read_columns(DeviceVerdicts, b"".join((b"{", whole[cut + 1 : at], b"}")), alone=True)
        inventory = self._inventory(whole[at:]) if verdicts else None
        if verdicts is None or inventory is None or not _agree(verdicts, inventory.devices):
            return None
        return count_parts(head, verdicts, inventory, at)

    def _inventory(self, said: memoryview) -> Inventory | None:
        """``said`` with the comma in front of it."""
        key = xxh3_128_digest(said, _SEED)
        if (known := self._inventories.find(key)) is not None:
            return known
        if (devices := read_columns(DeviceInventory, device_record_layout.as_object(said[1:]), alone=True)) is None:
            return None
        inventory = Inventory(devices, blake2b(said, digest_size=16).hexdigest())
        self._inventories.remember(key, inventory, 1_000 + 120 * len(devices.nodes) + 130 * len(devices.uuid))
        return inventory


def _agree(verdicts: DeviceVerdicts, devices: DeviceInventory) -> bool:
    try:
        check_rows(verdicts, devices)
    except ValueError:
        return False
    return True


def _told_by(head: AttemptEvent, known: _Decoded, cut: int) -> Event | CountedRecord:
    if isinstance(known, _DecodedDevices):
        return CountedRecord(
            head.attempt_id, head.pod, head.scheduler, head.started_at,
            known.part, known.nodes, known.tally, known.inventory, known.inventory_at + cut,
        )  # fmt: skip
    own: dict[str, Any] = {name: getattr(head, name) for name in _OWN}
    return known.model_copy(update=own)


def _counted(event: Event | Rejected) -> Event | CountedRecord | Rejected:
    return count_record(event) if isinstance(event, DevicesJudged) else event


@lru_cache(maxsize=64)
def _head(said: bytes) -> AttemptEvent | None:
    """Whose attempt it is; None where anything else stands in front of the tail."""
    try:
        plain = orjson.loads(said + b"}")
        return AttemptEvent.model_validate(plain) if plain.keys() == _OWN else None
    except (orjson.JSONDecodeError, ValidationError, AttributeError):
        return None
