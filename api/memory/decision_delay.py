"""How late an attempt is when it is in memory. Pure."""

from collections.abc import Callable
from typing import Final

from schemas.events import SCHEDULER, AttemptRepeated, AttemptSummarized

ObserveDelay = Callable[[str, float], None]
"""Takes the source of an attempt, and the seconds from its latest event to now."""
ARCHIVE_SECONDS: Final = 3600.0
"""Older attempts are not late where a log was read: it was read later than it was written. A scheduler's own are."""


def decision_delay(event: AttemptSummarized | AttemptRepeated, now: float) -> tuple[str, float] | None:
    """Who reported the attempt, and how many seconds ago its latest event was; None where that is no delay of ours.

    ``now`` is Unix time in seconds.
    """
    # The other parts of a summary came before this one, and count once.
    if isinstance(event, AttemptSummarized) and event.part + 1 < event.parts:
        return None
    source = event.reports[0].source if event.reports else ""
    # A version is the time of the latest event. Clocks differ: a delay is never negative.
    seconds = max(now - event.version / 1_000_000, 0.0)
    return None if source != SCHEDULER and seconds > ARCHIVE_SECONDS else (source, seconds)
