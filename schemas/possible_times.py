"""Possible times of attempts. Other times come from a wrong clock, and each would make an index of its day."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

_EARLIEST: Final = datetime(2014, 6, 6, tzinfo=UTC)
"""Kubernetes' first commit. Logs of years ago may be read."""
_MAX_AHEAD: Final = timedelta(days=1)
_DAY: Final = re.compile(r"-(\d{4}\.\d\d\.\d\d)\Z", re.ASCII)
IMPOSSIBLE_DAY: Final = "its time is more than a day ahead, or before Kubernetes: synchronize the clock of its source"


def describe_impossible(moment: datetime, now: datetime) -> str:
    """Describe the fault in the time of an attempt; empty for a possible one."""
    if moment - now > _MAX_AHEAD:
        return f"{moment:%Y-%m-%d %H:%M} is more than a day ahead: synchronize the clock of the source"
    if moment < _EARLIEST:
        return f"{moment:%Y-%m-%d %H:%M} is before Kubernetes was made: set the clock of the source"
    return ""


def is_possible(index: str, now: datetime) -> bool:
    """Tell whether an index is of a day or month that may have attempts; True for one that is named by neither."""
    match = _DAY.search(index)
    # As text: a day that does not exist, such as 9999.99.99, is out of range as well.
    return match is None or f"{_EARLIEST:%Y.%m.%d}" <= match[1] <= f"{now + _MAX_AHEAD:%Y.%m.%d}"
