"""Records of the topics as what the conditions look at. Pure."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import unquote

from pipeline.alerts.inputs import Arrived, Heard, Seen, SetAside
from schemas.codec.records import decode
from schemas.events import (
    AttemptConcluded,
    BindConcluded,
    DetailDropped,
    Event,
    FindingReported,
    MessageEmitted,
    NodeChecked,
    PodObserved,
)
from schemas.topics import DEAD_LETTERS, DECISIONS, NODES

_SCHEDULERS: Final = "/schedulers/"
_WANTED: Final = frozenset(
    kind.TYPE.encode()
    for kind in (
        AttemptConcluded,
        BindConcluded,
        DetailDropped,
        FindingReported,
        MessageEmitted,
        NodeChecked,
        PodObserved,
    )
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


_LATEST_MILLISECONDS: Final = 250_000_000_000_000
"""In the year 9892. A producer may say anything."""
_AHEAD: Final = timedelta(hours=1)


def time_of(record: Any) -> datetime:
    """When it came to Kafka."""
    return _EPOCH + timedelta(milliseconds=min(max(record.timestamp, 0), _LATEST_MILLISECONDS))


def seen_in(record: Any) -> list[Seen]:
    """What a record of aiokafka says; nothing where it says nothing of interest, or can't be understood (the worker
    sets that aside)."""
    at = time_of(record)
    if record.topic == DEAD_LETTERS.name:
        return [SetAside(_header(record.headers, "dead_letter_topic") or "unknown", at)]
    seen: list[Seen] = []
    source = _header(record.headers, "ce_source")
    if record.topic in (DECISIONS.name, NODES.name) and source.startswith(_SCHEDULERS):
        seen.append(Heard(unquote(source.removeprefix(_SCHEDULERS)), at))
    if _header(record.headers, "ce_type").encode() in _WANTED:
        seen += _of_event(decode(record.value, record.headers), record.topic, at)
    return seen


def _of_event(event: object, topic: str, at: datetime) -> list[Seen]:
    if isinstance(event, Event) and event.time - at > _AHEAD:
        return []  # a clock that is so wrong would keep the matter open for ever
    if isinstance(event, AttemptConcluded):
        # What was read from a log says nothing about a spool.
        late = (at - event.ended_at).total_seconds()
        return [] if event.provenance else [Arrived(event.scheduler, at, late)]
    if isinstance(event, FindingReported) and topic == DECISIONS.name:
        return []  # the worker passes it on to the topic of findings
    return [event] if isinstance(event, Event) else []  # type: ignore[list-item]


def _header(headers: Iterable[tuple[str, bytes]], name: str) -> str:
    return next((value.decode(errors="replace") for key, value in headers if key == name and value), "")
