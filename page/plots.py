"""Plots as SVG: bars over time with a part for each series, and bars side by side; each has its numbers as a title."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from markupsafe import Markup

from page.formats import visible

WIDTH: Final = 900
HEIGHT: Final = 220
ROW: Final = 26
LABEL: Final = 300
COLOURS: Final = 12
"""As many as the style sheet has."""

_PART: Final = Markup('<rect class="p{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"><title>{}</title></rect>')
_BAR: Final = Markup(
    '<text x="{}" y="{}" text-anchor="end">{}</text>'
    '<rect class="p{}" x="{}" y="{}" width="{:.1f}" height="16"/><text x="{:.1f}" y="{}">{}</text>'
)


class Series(NamedTuple):
    key: str
    values: Sequence[float]


def bars_over_time(title: str, times: Sequence[str], series: Sequence[Series]) -> Markup:
    """A bar for each time, with a part for each series; the first series at the bottom."""
    totals = [sum(values) for values in zip(*(each.values for each in series), strict=True)] if series else []
    highest = max(totals, default=0) or 1
    width = WIDTH / max(len(times), 1)
    parts = []
    for place, time in enumerate(times if series else ()):
        bottom = float(HEIGHT)
        for number, each in enumerate(series):
            height = each.values[place] / highest * HEIGHT
            bottom -= height
            if height:
                parts.append(
                    _PART.format(
                        number % COLOURS,
                        place * width,
                        bottom,
                        max(width - 1, 1),
                        height,
                        f"{time} {visible(each.key)}: {each.values[place]:g}",
                    )
                )
    return _drawing(title, HEIGHT, parts)


def bars_side_by_side(title: str, bars: Sequence[tuple[str, float]], unit: str = "") -> Markup:
    """A bar for each name, the names to the left of them."""
    highest = max((value for _, value in bars), default=0) or 1
    parts = []
    for place, (name, value) in enumerate(bars):
        length = value / highest * (WIDTH - LABEL - 120)
        parts.append(
            _BAR.format(
                LABEL - 8,
                place * ROW + 17,
                visible(name)[:44],
                place % COLOURS,
                LABEL,
                place * ROW + 4,
                max(length, 1),
                LABEL + max(length, 1) + 6,
                place * ROW + 17,
                f"{value:g} {unit}".strip(),
            )
        )
    return _drawing(title, ROW * max(len(bars), 1), parts)


def _drawing(title: str, height: int, parts: Sequence[Markup]) -> Markup:
    head = Markup('<svg class="plot" viewBox="0 0 {} {}" role="img" aria-label="{}"><title>{}</title>')
    return head.format(WIDTH, height, title, title) + Markup("").join(parts) + Markup("</svg>")
