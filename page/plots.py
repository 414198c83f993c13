"""Plots as SVG: bars over time with a part for each series, and bars side by side; each has its numbers as a title."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from markupsafe import Markup

from page.formats import amount, visible

WIDTH: Final = 900
HEIGHT: Final = 220
COLOURS: Final = 12
"""As many as the style sheet has."""

_PART: Final = Markup('<rect class="p{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"><title>{}</title></rect>')
_BAR: Final = Markup(
    '<tr><th scope="row">{}</th><td><svg viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">'
    '<rect class="p{}" width="{:.2f}" height="1"/></svg></td><td class="n">{}</td></tr>'
)


class Series(NamedTuple):
    key: str
    values: Sequence[float]


def highest_bar(series: Sequence[Series]) -> float:
    """Of the sums over all series, the greatest; 0 without any."""
    return max((sum(values) for values in zip(*(layer.values for layer in series), strict=True)), default=0)


def bars_over_time(title: str, times: Sequence[str], series: Sequence[Series]) -> Markup:
    """A bar for each time, with a part for each series; the first series at the bottom."""
    highest = highest_bar(series) or 1
    width = WIDTH / max(len(times), 1)
    parts = []
    for place, time in enumerate(times if series else ()):
        bottom = float(HEIGHT)
        for number, layer in enumerate(series):
            height = layer.values[place] / highest * HEIGHT
            bottom -= height
            if height:
                parts.append(
                    _PART.format(
                        number % COLOURS,
                        place * width,
                        bottom,
                        max(width - 1, 1),
                        height,
                        f"{time} {visible(layer.key)}: {layer.values[place]:g}",
                    )
                )
    return _drawing(title, parts)


def bars_side_by_side(title: str, bars: Sequence[tuple[str, float]], unit: str = "") -> Markup:
    """A table with a bar for each name: its texts keep their size where the page is narrow."""
    highest = max((value for _, value in bars), default=0) or 1
    rows = [
        _BAR.format(visible(name)[:80], place % COLOURS, value / highest * 100, amount(value, unit))
        for place, (name, value) in enumerate(bars)
    ]
    return Markup('<table class="bars" aria-label="{}">').format(title) + Markup("").join(rows) + Markup("</table>")


def _drawing(title: str, parts: Sequence[Markup]) -> Markup:
    head = Markup(
        '<svg class="plot" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" aria-label="{}"><title>{}</title>'
    )
    return head.format(WIDTH, HEIGHT, title, title) + Markup("").join(parts) + Markup("</svg>")
