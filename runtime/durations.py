"""Durations as Go writes and reads them (`5m0s`, `1h30m`, `500ms`): all settings, HAMi's flags and error texts use
that form.

The package durationpy is not used: it also accepts what Go refuses (`1d`, `1y`, `5m, 3s`), and drops the minutes' zero
seconds that Go prints.
"""

import re
from datetime import timedelta
from typing import Final

_UNITS: Final = {
    "h": timedelta(hours=1),
    "m": timedelta(minutes=1),
    "s": timedelta(seconds=1),
    "ms": timedelta(milliseconds=1),
    "us": timedelta(microseconds=1),
}
# ``ms`` before ``m``: the first alternative that matches wins. Nine digits keep the sum within what a timedelta holds.
_NUMBER: Final = re.compile(r"\d{1,9}(\.\d{1,9})?", re.ASCII)
_PART: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(h|ms|us|m|s)", re.ASCII)


def parse(text: str) -> timedelta:
    """Parse a duration. Negative durations are refused: no setting of ours takes one. Raises `ValueError` that says
    what to write."""
    parts = list(_PART.finditer(text))
    # ``finditer`` skips what it does not match; joined again, a skipped text shows.
    if not parts or "".join(part[0] for part in parts) != text:
        raise ValueError(f"{text!r} is not a duration, write one such as 5m, 90s or 1h30m")
    return sum((float(part[1]) * _UNITS[part[2]] for part in parts), timedelta())


def read(text: str) -> timedelta:
    """Read a duration, or a number of seconds without a unit, as settings have it. Raises `ValueError`."""
    return timedelta(seconds=float(text)) if _NUMBER.fullmatch(text) else parse(text)


def format_go(duration: timedelta) -> str:
    """Format the duration as Go prints it: `5m0s`, `28s`, `1h0m0s`, `1.5s`, `100ms`, `0s`."""
    micros = duration // timedelta(microseconds=1)
    # Go prints durations below a second in the largest unit that leaves a whole part, without ``0.`` seconds.
    if 0 < micros < 1_000_000:
        return f"{_format_decimal(micros, 1000)}ms" if micros >= 1000 else f"{micros}µs"
    minutes, remaining_micros = divmod(micros, 60_000_000)
    seconds = f"{_format_decimal(remaining_micros, 1_000_000)}s"
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes}m{seconds}"
    # Go prints the zero seconds too: ``5m0s``. HAMi's lock error quotes it, and tests compare the text.
    return f"{minutes}m{seconds}" if minutes else seconds


def _format_decimal(number: int, unit: int) -> str:
    units, remainder = divmod(number, unit)
    # Adding the unit keeps leading zeros: 1.05 s has the rest 050000.
    digits = str(unit + remainder)[1:].rstrip("0")
    return f"{units}.{digits}" if digits else str(units)
