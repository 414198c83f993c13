"""An event as a Kafka record, and back: JSON value plus CloudEvents 1.0 headers in binary mode.

Encoding writes what it is given, without validating it again: producers build events from checked values. Decoding
checks everything and never raises on bad input: what it can't decode comes back as ``Rejected``, with the place.
"""

from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
import orjson
from pydantic import BaseModel, ValidationError

from ..events import EVENTS, Event
from ..events.base import Model

CONTENT_TYPE: Final = "application/json"
MAX_VALUE_BYTES: Final = 64 * 1024
"""Size that every CloudEvents intermediary must forward."""

MAX_DECODED_BYTES: Final = 2 * 1024 * 1024
"""A longer value is rejected before it is parsed: what JSON makes of it may take thirty times as much memory."""
UNREADABLE: Final = "schedulerlog_unreadable"
"""The header of a record that stands for a batch of records that could not be read; its value is the cause."""

E = TypeVar("E", bound=Event)
M = TypeVar("M", bound=BaseModel)

# By bytes, as headers come: no decoding per record.
_TYPES: Final = {event.TYPE.encode(): event for event in EVENTS}
# What all records of a type have, encoded once.
_OF_TYPE: Final = {
    event.TYPE: (
        ("ce_specversion", b"1.0"),
        ("ce_type", event.TYPE.encode()),
        ("content-type", CONTENT_TYPE.encode()),
    )
    for event in EVENTS
}
# Numpy columns are written without a Python object per number; times end in Z as ``Moment`` and other readers expect.
_OPTIONS: Final = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_UTC_Z


class EncodedRecord(NamedTuple):
    """A record on its way to a topic."""

    key: bytes
    value: bytes
    headers: list[tuple[str, bytes]]
    topic: str = ""
    partition: int | None = None
    """Partition of the record; None: the partition that follows from the key."""


class Rejected(NamedTuple):
    """Bytes that are not one of our events: ``cause`` says why, ``place`` where in the record."""

    cause: str
    place: str = ""

    def __str__(self) -> str:
        return f"{self.place}: {self.cause}" if self.place else self.cause


class UnencodableError(ValueError):
    """A producer built an event that has no JSON or UTF-8 form; encoding it again will fail again."""


def encode(event: Event, topic: str = "", partition: int | None = None) -> EncodedRecord:
    """Encode ``event`` as a Kafka record. Columns may be numpy arrays, lists or ``orjson.Fragment`` (JSON made before).

    Raises ``UnencodableError`` for what validated events never hold: half of a surrogate pair in a text, or a column
    that is no array of numbers.
    """
    key = event.key
    try:
        return EncodedRecord(key.encode(), encode_value(event), _build_headers(event, key), topic, partition)
    except UnicodeEncodeError as error:
        raise UnencodableError(
            f"{event.TYPE}: {error.object!r:.200} has no UTF-8 form; decode the input strictly"
        ) from None


def encode_value(value: Any) -> bytes:
    """Encode models, numpy columns and times as JSON. Raises ``UnencodableError``."""
    try:
        return orjson.dumps(value, default=_to_plain, option=_OPTIONS)
    except orjson.JSONEncodeError as error:
        raise UnencodableError(f"{type(value).__name__} has no JSON form: {error}") from None


def _to_plain(value: Any) -> Any:
    # orjson then writes the columns itself; pydantic's JSON serializer has no form for numpy arrays.
    if isinstance(value, Model):
        return value.to_json_fields()
    if isinstance(value, BaseModel):
        return value.__dict__
    if isinstance(value, np.ndarray):  # orjson itself takes only contiguous ones
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no JSON form in the contract")


def _build_headers(event: Event, key: str) -> list[tuple[str, bytes]]:
    return [
        *_OF_TYPE[event.TYPE],
        ("ce_id", event.id.encode()),
        ("ce_source", event.source.encode()),
        ("ce_time", format_rfc3339(event.time).encode()),
        # What it is about, as its source spells it: the key without the cluster, which the source names.
        ("ce_subject", key.removeprefix(f"{event.cluster}/").encode()),
    ]


# The records of an attempt, and the states before it, share a few moments.
@lru_cache(maxsize=64)
def format_rfc3339(moment: datetime) -> str:
    """Format a time as UTC text to the microsecond, with the zone as ``Z``."""
    # Always six digits: OpenSearch and people sort such texts as they sort times.
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def decode(value: bytes | None, headers: Iterable[tuple[str, bytes]] | None) -> Event | Rejected:
    """Decode the event of a record, or return the reason why it has none."""
    kind = find_event_type(headers)
    if isinstance(kind, Rejected):
        return kind
    if value is None:
        return Rejected("the record has no value", "value")
    return decode_value(kind, value)


def find_event_type(headers: Iterable[tuple[str, bytes]] | None) -> type[Event] | Rejected:
    """Look up the type of event in the headers of a record."""
    kind = _TYPES.get(named := _find_header(headers, "ce_type"))
    if kind is None and (cause := _find_header(headers, UNREADABLE)):
        return Rejected(cause[:500].decode(errors="replace"))
    return kind or Rejected(f"no event type is called {named[:100].decode(errors='replace')!r}", "header ce_type")


def _find_header(headers: Iterable[tuple[str, bytes]] | None, name: str) -> bytes:
    # Kafka allows a header without a value.
    return next((value for key, value in headers or () if key == name), b"") or b""


def decode_value(kind: type[E], value: bytes) -> E | Rejected:
    if len(value) > MAX_DECODED_BYTES:
        return Rejected(f"{len(value)} bytes are more than a record of the contract has", "value")
    try:
        plain = orjson.loads(value)
    except orjson.JSONDecodeError as error:
        return Rejected(f"not JSON: {error}", "value")
    return read(kind, plain, "value")


def read(kind: type[M], plain: Any, position: str) -> M | Rejected:
    """Validate parsed JSON as a model, or return the reason for its refusal; ``position`` names where the JSON was."""
    try:
        return kind.model_validate(plain)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        # The input is left out: a rejected record may be megabytes, and its bytes go to the dead letters anyway.
        return Rejected(f"{first['msg']:.500}", ".".join(str(part)[:100] for part in (position, *first["loc"])))
