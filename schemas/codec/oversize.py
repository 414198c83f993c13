"""Shorter events in the place of events that are too large for their topic. Pure."""

from typing import Any, Final

from ..events import MAX_REQUESTS, AttemptConcluded, DetailDropped, DevicesJudged, Event
from .records import Rejected

_MAX_TEXT: Final = 10_000
_CUT: Final = " … (cut: the record was too large)"


def shorten(event: Event | Rejected) -> Event | None:
    """Shorten an event, and note in it what is left out; None for one of which nothing can be left out."""
    match event:
        case AttemptConcluded():
            return _shorten_conclusion(event)
        case DevicesJudged():
            return _drop_values(event)
        case _:
            return None


def _shorten_conclusion(event: AttemptConcluded) -> AttemptConcluded:
    requests = event.requests[:MAX_REQUESTS]
    return event.model_copy(
        update={
            "requests": requests,
            "requests_left_out": event.requests_left_out + len(event.requests) - len(requests),
            "constraints": None,
            "description": None,
            "error": _cut(event.error),
            "scheduler_message": _cut(event.scheduler_message),
        }
    )


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else text[:_MAX_TEXT] + _CUT


def _drop_values(event: DevicesJudged) -> DetailDropped:
    common: dict[str, Any] = {name: getattr(event, name) for name in ("cluster", "attempt_id", "pod", "scheduler")}
    return DetailDropped(
        **common,
        reader=event.reader,
        started_at=event.started_at,
        # Its own time and not that of now: sent a second time it is the same event.
        dropped_at=event.time,
        device_records=1,
        judged_devices=len(event.verdict),
        cause=f"record {event.id} was too large for its topic",
    )
