"""Values of answers in words: times and durations as kubectl writes them, statuses as the page does. Pure."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from page.views.translations import STATUS_WORDS

_UNITS: Final = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))
_SINCE: Final = re.compile(r"(\d{1,6})([dhm])")
_STATUSES: Final = {word: status for status, word in STATUS_WORDS.items()}


def parse_time(text: str) -> datetime:
    """Parse a time of the API. Raises ``ValueError``."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(UTC)


def parse_since(text: str, now: datetime) -> datetime | None:
    """Parse a beginning as the API does: ``10m``, ``2h``, ``7d`` before now, or RFC 3339; None for another text."""
    if match := _SINCE.fullmatch(text):
        return now - timedelta(seconds=int(match[1]) * dict(_UNITS)[match[2]])
    try:
        return parse_time(text)
    except ValueError:
        return None


def format_age(since: str | None, now: datetime) -> str:
    """Write how long ago that was: ``45s``, ``12m``, ``3h5m``, ``2d4h``; empty if the time is unknown."""
    return format_duration((now - parse_time(since)).total_seconds()) if since else ""


def format_duration(seconds: float) -> str:
    """Write the two largest units, the second only below ten of the first."""
    left = max(0, int(seconds))
    for index, (unit, length) in enumerate(_UNITS):
        if left >= length or unit == "s":
            amount, remainder = divmod(left, length)
            below = _UNITS[index + 1] if index + 1 < len(_UNITS) else None
            part = remainder // below[1] if below and amount < 10 else 0
            return f"{amount}{unit}" + (f"{part}{below[0]}" if below and part else "")
    return "0s"


def format_time(text: str | None) -> str:
    """Write the time to the second, in UTC; empty if it is unknown."""
    return parse_time(text).strftime("%Y-%m-%d %H:%M:%S") if text else ""


def to_status_word(status: str) -> str:
    """Convert a status of the API; an unknown status of a newer API stays as it is."""
    return STATUS_WORDS.get(status, status)


def to_status(word: str) -> str:
    """Convert our word to the API's status; the API refuses an unknown word."""
    return _STATUSES.get(word, word)
