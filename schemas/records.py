"""An event as a Kafka record, and back: JSON value plus CloudEvents 1.0 headers in binary mode.

Encoding writes what it is given, without validating it again: producers build events from checked values. Decoding
checks everything and never raises on bad input: what can't be understood comes back as ``Rejected``, with the place.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from schemas.events import EVENTS, Event

CONTENT_TYPE: Final = "application/json"
MAX_VALUE_BYTES: Final = 64 * 1024
"""What every CloudEvents intermediary must forward."""

E = TypeVar("E", bound=Event)

_TYPES: Final = {event.TYPE.encode(): event for event in EVENTS}
_OPTIONS: Final = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_UTC_Z


class Record(NamedTuple):
    key: bytes
    value: bytes
    headers: list[tuple[str, bytes]]


@dataclass(frozen=True, slots=True)
class Rejected:
    """Bytes that are no event of ours: ``cause`` says why, ``place`` where in the record."""

    cause: str
    place: str = ""

    def __str__(self) -> str:
        return f"{self.place}: {self.cause}" if self.place else self.cause


def encode(event: Event) -> Record:
    """The record that says ``event``. Columns may be numpy arrays, lists or ``orjson.Fragment`` (JSON made before)."""
    return Record(event.key.encode(), encode_value(event), headers_of(event))


def encode_value(value: Any) -> bytes:
    """Models, numpy columns and times as JSON bytes."""
    return orjson.dumps(value, default=_plain, option=_OPTIONS)


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.__dict__
    raise TypeError(f"{type(value).__name__} has no JSON form in the contract")


def headers_of(event: Event) -> list[tuple[str, bytes]]:
    return [
        ("ce_specversion", b"1.0"),
        ("ce_id", event.id.encode()),
        ("ce_type", event.TYPE.encode()),
        ("ce_source", event.source.encode()),
        ("ce_time", rfc3339(event.time).encode()),
        ("content-type", CONTENT_TYPE.encode()),
    ]


def rfc3339(moment: datetime) -> str:
    """UTC text to the microsecond, with the zone as ``Z``."""
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def decode(value: bytes | None, headers: Iterable[tuple[str, bytes]] | None) -> Event | Rejected:
    """The event that a record says, or why it says none."""
    kind = _TYPES.get(named := _header(headers, "ce_type"))
    if kind is None:
        return Rejected(f"no event type is called {named.decode(errors='replace')!r}", "header ce_type")
    if value is None:
        return Rejected("the record has no value", "value")
    return decode_value(kind, value)


def _header(headers: Iterable[tuple[str, bytes]] | None, name: str) -> bytes:
    return next((value for key, value in headers or () if key == name), b"") or b""


def decode_value(kind: type[E], value: bytes) -> E | Rejected:
    try:
        return kind.model_validate(orjson.loads(value))
    except orjson.JSONDecodeError as error:
        return Rejected(f"not JSON: {error}", "value")
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        return Rejected(first["msg"], ".".join(map(str, ("value", *first["loc"]))))
    except RecursionError:
        return Rejected("nested too deeply", "value")
