"""Devices of a fleet as cells: what pods hold of each, and those that no pod gets; nodes grouped by model or pool."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from markupsafe import Markup, escape

from page.views.amounts import to_natural_order

MAX_DRAWN: Final = 64
"""Devices of one node that are drawn."""
WIDTH: Final = 13
HEIGHT: Final = 22
_INSIDE: Final = HEIGHT - 2


class FilledNodes(NamedTuple):
    """Nodes of one pool, or with devices of the same models."""

    name: str
    """The pool, or the models with commas between them; empty without a pool, or where no registration names them."""
    nodes: list[Mapping[str, Any]]
    devices: int
    free: int


def group_nodes(nodes: Iterable[Mapping[str, Any]], grouping: str) -> list[FilledNodes]:
    """Group the nodes that have devices by their pools, or by the models of the devices."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for node in nodes:
        if node["fill"]:
            models = ", ".join(entry["model"] for entry in node["models"] if entry["model"])
            groups.setdefault(node["pool"] if grouping == "pool" else models, []).append(node)
    return [
        FilledNodes(
            name,
            sorted(members, key=lambda node: to_natural_order(node["node"])),
            sum(node["devices"] for node in members),
            sum(node["free_devices"] for node in members),
        )
        for name, members in sorted(groups.items())
    ]


def draw_devices(node: Mapping[str, Any], words: Mapping[str, str]) -> Markup:
    """Draw a cell for each device of a node: memory held at its left, cores at its right, from the bottom.

    A device of which only slots are known has one bar. ``words``: texts for the shares and states of a device.
    """
    devices: Sequence[Mapping[str, Any]] = node["fill"][:MAX_DRAWN]
    cells = "".join(_draw(number, device, _describe(number, device, words)) for number, device in enumerate(devices))
    label = escape(f"{node['node']}: {node['free_devices']}/{node['devices']}")
    width = len(devices) * WIDTH
    drawing = f'<svg class="fill" width="{width}" height="{HEIGHT}" role="img" aria-label="{label}">{cells}</svg>'
    # Markup that escapes each field would take twice the time of the whole page, which has hundreds of cells.
    return Markup(drawing)  # noqa: S704 - its two texts are escaped, and everything else in it is a number


def _draw(number: int, device: Mapping[str, Any], text: str) -> str:
    is_unhealthy, x = device["healthy"] is False, number * WIDTH + 1
    shares = _list_shares(device)
    width = (WIDTH - 2) / len(shares)
    bars = "".join(
        f'<rect class="held" x="{x + index * width:g}" y="{1 + _INSIDE - height:d}" width="{width:g}" '
        f'height="{height:d}"/>'
        for index, share in enumerate(shares.values())
        if (height := min(-(-share * _INSIDE // 100), _INSIDE)) and not is_unhealthy
    )
    state = " unhealthy" if is_unhealthy else " cordoned" if device["cordoned"] else ""
    hatching = ' fill="url(#hatched)"' if is_unhealthy else ""
    return f'<g><rect class="device{state}" x="{x}"{hatching}/>{bars}<title>{escape(text)}</title></g>'


def _describe(number: int, device: Mapping[str, Any], words: Mapping[str, str]) -> str:
    parts = [f"{words[name]} {share} %" for name, share in _list_shares(device).items()]
    states = ["unhealthy"] if device["healthy"] is False else []
    states += ["cordoned"] if device["cordoned"] else []
    return f"{number} {device['model']}".rstrip() + f": {', '.join([*(words[state] for state in states), *parts])}"


def _list_shares(device: Mapping[str, Any]) -> dict[str, int]:
    """List the shares of a device that its cell shows, in percent by name."""
    shares = {name: device[f"{name}_percent"] for name in ("memory", "cores")}
    return {name: share for name, share in shares.items() if share is not None} or {
        "slots": device["slots_percent"] or 0
    }
