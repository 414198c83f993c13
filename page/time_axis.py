"""Axis of time below a drawing: ticks at round times, which ``local-times.js`` moves to those of the reader's zone."""

import math
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from markupsafe import Markup

from page.formats import format_second, parse_time

MAX_STEPS: Final = 6
"""Steps from one end to the other: their labels fit the width of a telephone."""
_DAY: Final = 86_400
STEPS: Final = (
    *(1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200),
    *(_DAY * days for days in (1, 2, 7, 28, 91, 364)),
)
"""Seconds from one tick to the next; each up to a day divides it, so that ticks stand at round times."""
_EDGE: Final = 4
"""Percent of the width: nearer to an end, a label begins or ends at its tick."""
_AXIS: Final = Markup(
    '<svg class="ticks" height="20" aria-hidden="true" data-since="{}" data-until="{}" data-step="{}">{}</svg>'
)
_TICK: Final = Markup(
    '<g><line x1="{0:.2f}%" x2="{0:.2f}%" y2="4"/><text x="{0:.2f}%" y="16" text-anchor="{1}">{2}'
    "<title>{3} UTC</title></text></g>"
)


class Tick(NamedTuple):
    moment: datetime
    percent: float
    """Distance from the begin of the axis."""
    label: str


def draw_time_axis(begin: str | datetime, end: str | datetime) -> Markup:
    """Draw the ticks between two times, as wide as what is above them; nothing for a range that has none."""
    first, last = (parse_time(time) if isinstance(time, str) else time for time in (begin, end))
    if last <= first:
        return Markup("")
    step = choose_step(first, last)
    ticks = [
        _TICK.format(tick.percent, _choose_anchor(tick.percent), tick.label, format_second(tick.moment.isoformat()))
        for tick in list_ticks(first, last, step)
    ]
    return _AXIS.format(first.isoformat(), last.isoformat(), step, Markup("").join(ticks)) if ticks else Markup("")


def choose_step(begin: datetime, end: datetime) -> int:
    """Choose the shortest of ``STEPS`` that is not too many times in the range."""
    seconds = (end - begin).total_seconds()
    return next((step for step in STEPS if seconds / step <= MAX_STEPS), STEPS[-1])


def list_ticks(begin: datetime, end: datetime, step: int) -> Iterator[Tick]:
    """Iterate over the ticks: whole numbers of ``step`` seconds after the midnight before ``begin``."""
    midnight = begin.replace(hour=0, minute=0, second=0, microsecond=0)
    moment = midnight + timedelta(seconds=step * math.ceil((begin - midnight).total_seconds() / step))
    while moment <= end:
        yield Tick(moment, (moment - begin) / (end - begin) * 100, _label(moment, step))
        moment += timedelta(seconds=step)


def _label(moment: datetime, step: int) -> str:
    """Label a tick: its time, or at midnight its day."""
    is_midnight = (moment.hour, moment.minute, moment.second) == (0, 0, 0)
    return moment.strftime("%m-%d" if is_midnight else "%H:%M" if step >= 60 else "%H:%M:%S")


def _choose_anchor(percent: float) -> str:
    return "start" if percent < _EDGE else "end" if percent > 100 - _EDGE else "middle"
