"""Plots as SVG: bars over time with a part for each series, and bars side by side; each has its numbers as a title."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final, NamedTuple

from markupsafe import Markup

from page.colours import choose_colour, choose_colours
from page.formats import escape_hidden, format_amount, parse_time
from page.time_axis import draw_time_axis

WIDTH: Final = 900
HEIGHT: Final = 220

_PART: Final = Markup('<rect class="p{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"><title>{}</title></rect>')
_LINK: Final = Markup('<a href="{}" tabindex="-1">{}</a>')
_SCALED: Final = Markup(
    '<div class="scaled"><p class="scale" aria-hidden="true"><span>{}</span><span>{}</span><span>0</span></p>'
    "<div>{}{}</div></div>"
)
_BAR: Final = Markup(
    '<tr><th scope="row">{}</th><td><svg viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">'
    '<rect class="p{}" width="{:.2f}" height="1"/></svg></td><td class="n">{}</td></tr>'
)


class Series(NamedTuple):
    key: str
    """Name that decides the colour; empty for what has no name, whose title says what it is."""
    values: Sequence[float]
    title: str = ""
    """Name for people; empty for the key."""
    addresses: Sequence[str] = ()
    """Page behind each bar; empty for none."""


def find_highest_bar(series: Sequence[Series]) -> float:
    """Return the greatest sum over all series; 0 without any."""
    return max((sum(values) for values in zip(*(layer.values for layer in series), strict=True)), default=0)


def draw_bars_over_time(
    title: str,
    times: Sequence[str],
    series: Sequence[Series],
    interval_seconds: int,
    write_value: Callable[[float], str] = format_amount,
    *,
    has_halves: bool = False,
) -> Markup:
    """Draw a bar for each time, with a part for each series, between a scale of values and an axis of time.

    The first series is at the bottom. ``times``: begins of the bars. ``has_halves``: of counts no value is half of one.
    """
    highest = find_highest_bar(series)
    width = WIDTH / max(len(times), 1)
    parts, colours = [], choose_colours([layer.key for layer in series])
    for index, time in enumerate(times if highest else ()):
        bottom = float(HEIGHT)
        for layer, colour in zip(series, colours, strict=True):
            height = layer.values[index] / highest * HEIGHT
            bottom -= height
            if height:
                part = _PART.format(
                    colour,
                    index * width,
                    bottom,
                    max(width - 1, 1),
                    height,
                    f"{time} {escape_hidden(layer.title or layer.key)}: {write_value(layer.values[index])}",
                )
                parts.append(_LINK.format(layer.addresses[index], part) if layer.addresses else part)
    drawing = _wrap_drawing(title, parts, "group" if any(layer.addresses for layer in series) else "img")
    half = write_value(highest / 2) if has_halves or highest % 2 == 0 else ""
    end = parse_time(times[-1]) + timedelta(seconds=interval_seconds) if times else None
    axis = draw_time_axis(times[0], end) if end else ""
    return _SCALED.format(write_value(highest), half, drawing, axis)


def draw_bars_side_by_side(title: str, bars: Sequence[tuple[str, float]], unit: str = "") -> Markup:
    """Draw a table with a bar for each name: its texts keep their size if the page is narrow."""
    highest = max((value for _, value in bars), default=0) or 1
    rows = [
        _BAR.format(escape_hidden(name)[:80], choose_colour(name), value / highest * 100, format_amount(value, unit))
        for name, value in bars
    ]
    return Markup('<table class="bars" aria-label="{}">').format(title) + Markup("").join(rows) + Markup("</table>")


def _wrap_drawing(title: str, parts: Sequence[Markup], role: str) -> Markup:
    head = Markup(
        '<svg class="plot" viewBox="0 0 {} {}" preserveAspectRatio="none" role="{}" aria-label="{}"><title>{}</title>'
    )
    return head.format(WIDTH, HEIGHT, role, title, title) + Markup("").join(parts) + Markup("</svg>")
