"""Records, decoded into events, with their device rows counted; equal content is decoded once.

A pending pod is judged again and again on the same cluster. Its next record then equals the last one to the byte, but
for the header that names the attempt, and hashing bytes costs next to nothing beside reading them. Where pods have
started or ended meanwhile, the inventory is still the same: four fifths of a record of devices.
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
from schemas.codec.identity_memo import ByteBoundedLru, column_bytes
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

_EVENT_TYPES: Final[dict[bytes, type[DevicesJudged] | type[NodesJudged]]] = {
    event_type.TYPE.encode(): event_type for event_type in (DevicesJudged, NodesJudged)
}
# xxh3 resists no attacker who knows the seed: with a random one, two records of equal hash can't be prepared.
_SEED: Final = secrets.randbits(64)
_HEADER_FIELDS: Final = frozenset({"attempt_id", "pod", "scheduler", "started_at"})
"""The fields of a record's header: those before its tail. They name the attempt."""


@dataclass(frozen=True, slots=True)
class _DecodedDevices:
    part: int
    nodes: Words
    tally: Tally
    inventory: str
    inventory_at: int
    """Bytes from the beginning of the tail."""


_Decoded = _DecodedDevices | NodesJudged


class RecordDecoder:
    """Decodes records. Caches the tails and inventories that were used last, within about ``max_bytes``."""

    def __init__(self, max_bytes: int) -> None:
        self._tails: ByteBoundedLru[bytes, _Decoded] = ByteBoundedLru(max_bytes // 2)
        self._inventories: ByteBoundedLru[bytes, Inventory] = ByteBoundedLru(max_bytes // 2)

    def decode(self, value: bytes | None, headers: Iterable[tuple[str, bytes]]) -> Event | CountedRecord | Rejected:
        """The event of a record, device rows counted; ``Rejected`` where it holds none."""
        event_type = next((_EVENT_TYPES.get(text) for name, text in headers if name == "ce_type"), None)
        cut = device_record_layout.tail(value) if event_type and value else -1
        if event_type and value and cut > 0 and (header := _header(value[:cut])):
            return self._decode_tail(event_type, value, cut, header) or _counted(decode(value, headers))
        return _counted(decode(value, headers))

    def _decode_tail(
        self, event_type: type[DevicesJudged] | type[NodesJudged], value: bytes, cut: int, header: AttemptEvent
    ) -> Event | CountedRecord | Rejected | None:
        """The event, from the cache or read now; None where the strict reader has to decide."""
        # With the type: the same bytes mean something else in a record of another type.
        key = xxh3_128_digest(memoryview(value)[cut:], _SEED) + event_type.TYPE[-20:].encode()
        if (cached := self._tails.find(key)) is not None:
            return _of_attempt(header, cached, cut)
        event: Event | CountedRecord | Rejected | None = None
        if event_type is DevicesJudged and (inventory_at := device_record_layout.inventory(value, cut)) > 0:
            event = self._count(value, cut, inventory_at, header)
        # The record as a whole: a tail that names another attempt than its header must not go unnoticed. `read_columns`
        # leaves a repeated name to the strict reader, which rejects it.
        if event is None and (whole := read_columns(event_type, value)):
            event = _counted(whole)
        self._cache_tail(key, event, cut)
        return event

    def _cache_tail(self, key: bytes, event: Event | CountedRecord | Rejected | None, cut: int) -> None:
        if isinstance(event, CountedRecord):
            devices = _DecodedDevices(event.part, event.nodes, event.tally, event.inventory, event.inventory_at - cut)
            self._tails.remember(key, devices, event.tally.size)
        elif isinstance(event, NodesJudged):
            name_bytes = 70 * len(event.nodes)
            self._tails.remember(key, event, name_bytes + column_bytes(len(event.nodes), len(event.refusals)))

    def _count(self, value: bytes, cut: int, inventory_at: int, header: AttemptEvent) -> CountedRecord | None:
        """The counts of a record whose verdicts and inventory are read on their own; None where that can't be done."""
        whole = memoryview(value)
        verdicts_json = b"".join((b"{", whole[cut + 1 : inventory_at], b"}"))
        verdicts = read_columns(DeviceVerdicts, verdicts_json, alone=True)
        inventory = self._inventory(whole[inventory_at:]) if verdicts else None
        if verdicts is None or inventory is None or not _agree(verdicts, inventory.devices):
            return None
        return count_parts(header, verdicts, inventory, inventory_at)

    def _inventory(self, text: memoryview) -> Inventory | None:
        """The inventory in ``text``, which begins with the comma before it; None where it holds more or less."""
        key = xxh3_128_digest(text, _SEED)
        if (cached := self._inventories.find(key)) is not None:
            return cached
        if (devices := read_columns(DeviceInventory, device_record_layout.as_object(text[1:]), alone=True)) is None:
            return None
        # The name becomes a document's id, so it has to be the same in every process: no seed.
        inventory = Inventory(devices, blake2b(text, digest_size=16).hexdigest())
        self._inventories.remember(key, inventory, 1_000 + 120 * len(devices.nodes) + 130 * len(devices.uuid))
        return inventory


def _agree(verdicts: DeviceVerdicts, devices: DeviceInventory) -> bool:
    try:
        check_rows(verdicts, devices)
    except ValueError:
        return False
    return True


def _of_attempt(header: AttemptEvent, decoded: _Decoded, cut: int) -> Event | CountedRecord:
    """The event of the attempt that ``header`` names, with content that was decoded before."""
    if isinstance(decoded, _DecodedDevices):
        return CountedRecord(
            header.attempt_id, header.pod, header.scheduler, header.started_at,
            decoded.part, decoded.nodes, decoded.tally, decoded.inventory, decoded.inventory_at + cut,
        )  # fmt: skip
    own: dict[str, Any] = {name: getattr(header, name) for name in _HEADER_FIELDS}
    return decoded.model_copy(update=own)


def _counted(event: Event | Rejected) -> Event | CountedRecord | Rejected:
    return count_record(event) if isinstance(event, DevicesJudged) else event


# The records of an attempt come together and share their header.
@lru_cache(maxsize=64)
def _header(text: bytes) -> AttemptEvent | None:
    """The attempt that the bytes before the tail name; None where they hold anything else."""
    try:
        fields = orjson.loads(text + b"}")
        return AttemptEvent.model_validate(fields) if fields.keys() == _HEADER_FIELDS else None
    # AttributeError: JSON that is not an object has no `keys`. Whatever is wrong, the strict reader names it.
    except (orjson.JSONDecodeError, ValidationError, AttributeError):
        return None
