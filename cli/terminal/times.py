"""Times and durations as kubectl writes them. Pure."""

from datetime import UTC, datetime
from typing import Final

_UNITS: Final = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


def read_time(text: str) -> datetime:
    """A time of the API. Raises ``ValueError``."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(UTC)


def age(since: str | None, now: datetime) -> str:
    """How long ago that was: ``45s``, ``12m``, ``3h5m``, ``2d4h``; empty where the time is not known."""
    return duration((now - read_time(since)).total_seconds()) if since else ""


def duration(seconds: float) -> str:
    """The two largest units of it, the second one only below ten of the first."""
    left = max(0, int(seconds))
    for index, (unit, length) in enumerate(_UNITS):
        if left >= length or unit == "s":
            whole, rest = divmod(left, length)
            below = _UNITS[index + 1] if index + 1 < len(_UNITS) else None
            part = rest // below[1] if below and whole < 10 else 0
            return f"{whole}{unit}" + (f"{part}{below[0]}" if below and part else "")
    return "0s"


def clock(text: str | None) -> str:
    """The time to the second, in UTC; empty where it is not known."""
    return read_time(text).strftime("%Y-%m-%d %H:%M:%S") if text else ""
