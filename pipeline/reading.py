"""Records decoded and counted, each distinct content once.

A pending pod is judged again and again on the same cluster. What its records say behind the attempt's own name is then
the same to the byte, and its counts are known: hashing bytes costs next to nothing beside reading them. Where pods have
come or gone meanwhile, the inventory is still the same: four fifths of a record of devices.
"""

import secrets
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final, Generic, TypeVar

import orjson
from pydantic import ValidationError
from xxhash import xxh3_128_digest

from schemas import halves
from schemas.buffers import read_columns
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
from schemas.records import Rejected, decode
from summaries.tally import Inventory, Tallied, Tally, tallied, tallied_of

_KINDS: Final[dict[bytes, type[DevicesJudged] | type[NodesJudged]]] = {
    kind.TYPE.encode(): kind for kind in (DevicesJudged, NodesJudged)
}
_SEED: Final = secrets.randbits(64)
"""Nobody can prepare two records that look alike to this process."""
_OWN: Final = frozenset({"attempt_id", "pod", "scheduler", "started"})
"""What a record says in front of its tail, and nothing else."""


@dataclass(frozen=True, slots=True)
class _Counted:
    part: int
    nodes: Words
    tally: Tally
    inventory: str


_Known = _Counted | NodesJudged
T = TypeVar("T")


class _Latest(Generic[T]):
    """What was used last, by the hash of the bytes that said it, within about ``most_bytes``."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._known: OrderedDict[bytes, tuple[T, int]] = OrderedDict()
        self._bytes = 0

    def find(self, key: bytes) -> T | None:
        if (found := self._known.get(key)) is None:
            return None
        self._known.move_to_end(key)
        return found[0]

    def remember(self, key: bytes, known: T, size: int) -> None:
        self._known[key] = known, size
        self._bytes += size
        while self._bytes > self._most:
            self._bytes -= self._known.popitem(last=False)[1][1]


class Reading:
    """Remembers what records said, within about ``most_bytes``."""

    def __init__(self, most_bytes: int) -> None:
        self._tails: _Latest[_Known] = _Latest(most_bytes // 2)
        self._inventories: _Latest[Inventory] = _Latest(most_bytes // 2)

    def read(self, value: bytes | None, headers: Iterable[tuple[str, bytes]]) -> Event | Tallied | Rejected:
        """The event, device rows counted; ``Rejected`` where the record says none."""
        kind = next((_KINDS.get(said) for name, said in headers if name == "ce_type"), None)
        cut = halves.tail(value) if kind and value else -1
        if kind and value and cut > 0 and (head := _head(value[:cut])):
            return self._known_or_read(kind, value, cut, head) or _counted(decode(value, headers))
        return _counted(decode(value, headers))

    def _known_or_read(
        self, kind: type[DevicesJudged] | type[NodesJudged], value: bytes, cut: int, head: AttemptEvent
    ) -> Event | Tallied | Rejected | None:
        parts = _parts(kind, value, cut)
        hashes = [xxh3_128_digest(each, _SEED) for each in parts]
        key = b"".join(hashes) + kind.TYPE[-20:].encode()
        if (found := self._tails.find(key)) is not None:
            return _told_by(head, found)
        said: Event | Tallied | Rejected | None = None
        if len(parts) == 2:
            said = self._count(parts[0], parts[1], hashes[1], head)
        # Only the strict reader refuses a name that stands there twice: then the tail could gainsay the head.
        if said is None and (event := read_columns(kind, value)):
            said = _counted(event)
        self._remember(key, said)
        return said

    def _remember(self, key: bytes, said: Event | Tallied | Rejected | None) -> None:
        if isinstance(said, Tallied):
            self._tails.remember(
                key, _Counted(said.part, said.nodes, said.tally, said.inventory), 1_000 + 150 * len(said.nodes)
            )
        elif isinstance(said, NodesJudged):
            self._tails.remember(key, said, 1_000 + 120 * len(said.nodes) + 400 * len(said.refusals))

    def _count(self, said: memoryview, devices: memoryview, key: bytes, head: AttemptEvent) -> Tallied | None:
        """What is said of devices, each half read on its own; None where it is not said as we say it."""
        verdicts = read_columns(DeviceVerdicts, b"".join((b"{", said[1:], b"}")), alone=True)
        inventory = self._inventory(devices, key) if verdicts else None
        if verdicts is None or inventory is None or not _agree(verdicts, inventory.devices):
            return None
        return tallied_of(head, verdicts, inventory)

    def _inventory(self, said: memoryview, key: bytes) -> Inventory | None:
        if (known := self._inventories.find(key)) is not None:
            return known
        if (devices := read_columns(DeviceInventory, halves.as_object(said[1:]), alone=True)) is None:
            return None
        inventory = Inventory(devices, blake2b(said, digest_size=16).hexdigest())
        self._inventories.remember(key, inventory, 1_000 + 120 * len(devices.nodes) + 130 * len(devices.uuid))
        return inventory


def _parts(kind: type[DevicesJudged] | type[NodesJudged], value: bytes, cut: int) -> list[memoryview]:
    """What stands from ``cut`` on; of devices the verdicts and the inventory, each with the comma in front of it."""
    ends = halves.inventory(value, cut) if kind is DevicesJudged else -1
    whole = memoryview(value)
    return [whole[cut:]] if ends < 0 else [whole[cut:ends], whole[ends:]]


def _agree(verdicts: DeviceVerdicts, devices: DeviceInventory) -> bool:
    try:
        check_rows(verdicts, devices)
    except ValueError:
        return False
    return True


def _told_by(head: AttemptEvent, known: _Known) -> Event | Tallied:
    if isinstance(known, _Counted):
        return Tallied(
            head.attempt_id, head.pod, head.scheduler, head.started,
            known.part, known.nodes, known.tally, known.inventory,
        )  # fmt: skip
    own: dict[str, Any] = {name: getattr(head, name) for name in _OWN}
    return known.model_copy(update=own)


def _counted(event: Event | Rejected) -> Event | Tallied | Rejected:
    return tallied(event) if isinstance(event, DevicesJudged) else event


@lru_cache(maxsize=64)
def _head(said: bytes) -> AttemptEvent | None:
    """Whose attempt it is; None where anything else stands in front of the tail."""
    try:
        plain = orjson.loads(said + b"}")
        return AttemptEvent.model_validate(plain) if plain.keys() == _OWN else None
    except (orjson.JSONDecodeError, ValidationError, AttributeError):
        return None
