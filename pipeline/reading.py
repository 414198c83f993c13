"""Records decoded and counted, each distinct content once.

A pending pod is judged again and again on the same cluster. What its records say behind the attempt's own name is then
the same to the byte, and its counts are known: hashing bytes costs next to nothing beside reading them.
"""

import secrets
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import orjson
from pydantic import ValidationError
from xxhash import xxh3_128_digest

from schemas.buffers import read_columns
from schemas.events import AttemptEvent, DevicesJudged, Event, NodesJudged, Words
from schemas.records import Rejected, decode
from summaries.tally import Tallied, Tally, tallied

_KINDS: Final[dict[bytes, type[DevicesJudged] | type[NodesJudged]]] = {
    kind.TYPE.encode(): kind for kind in (DevicesJudged, NodesJudged)
}
_TAIL: Final = b',"part":'
_MOST_HEAD_BYTES: Final = 2_048
_SEED: Final = secrets.randbits(64)
"""Nobody can prepare two records that look alike to this process."""
_OWN: Final = frozenset({"attempt_id", "pod", "scheduler", "started"})
"""What a record says in front of its tail, and nothing else."""


@dataclass(frozen=True, slots=True)
class _Counted:
    part: int
    nodes: Words
    tally: Tally


_Known = _Counted | NodesJudged


class Reading:
    """Remembers what records said, within about ``most_bytes``."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._known: OrderedDict[bytes, tuple[_Known, int]] = OrderedDict()
        self._bytes = 0

    def read(self, value: bytes | None, headers: Iterable[tuple[str, bytes]]) -> Event | Tallied | Rejected:
        """The event, device rows counted; ``Rejected`` where the record says none."""
        kind = next((_KINDS.get(said) for name, said in headers if name == "ce_type"), None)
        cut = value.find(_TAIL, 0, _MOST_HEAD_BYTES) if kind and value else -1
        if kind and value and cut > 0 and (head := _head(value[:cut])):
            return self._known_or_read(kind, value, cut, head) or _counted(decode(value, headers))
        return _counted(decode(value, headers))

    def _known_or_read(
        self, kind: type[DevicesJudged] | type[NodesJudged], value: bytes, cut: int, head: AttemptEvent
    ) -> Event | Tallied | Rejected | None:
        key = xxh3_128_digest(memoryview(value)[cut:], _SEED) + kind.TYPE[-20:].encode()
        if (found := self._known.get(key)) is not None:
            self._known.move_to_end(key)
            return _told_by(head, found[0])
        # Only the strict reader refuses a name that stands there twice: then the tail could gainsay the head.
        event = read_columns(kind, value)
        if event is None:
            return None
        said = _counted(event)
        if isinstance(said, Tallied):
            self._remember(key, _Counted(said.part, said.nodes, said.tally), 1_000 + 150 * len(said.nodes))
        elif isinstance(said, NodesJudged):
            self._remember(key, said, 1_000 + 120 * len(said.nodes) + 400 * len(said.refusals))
        return said

    def _remember(self, key: bytes, known: _Known, size: int) -> None:
        self._known[key] = known, size
        self._bytes += size
        while self._bytes > self._most:
            self._bytes -= self._known.popitem(last=False)[1][1]


def _told_by(head: AttemptEvent, known: _Known) -> Event | Tallied:
    if isinstance(known, _Counted):
        return Tallied(
            head.attempt_id, head.pod, head.scheduler, head.started, known.part, known.nodes, known.tally
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
