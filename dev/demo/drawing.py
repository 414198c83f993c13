"""The cluster of the demo as a drawing of text: a line of bars for each node, a bar for each device. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import zip_longest
from typing import Any, Final

from engine.cases.node_answers import CaseNodes
from engine.snapshot.case_objects import collect_objects
from page.views.fleet import CORDONED, FREE, UNHEALTHY, draw_bars
from schemas.json_types import Json

_COLUMN: Final = 38
"""Width of the left of two columns of nodes."""


def draw_cluster(objects: Sequence[Json]) -> Iterator[str]:
    """Draw the nodes in two columns below a legend; ``objects`` are those of a cluster file."""
    nodes = CaseNodes(collect_objects(objects), datetime.now(UTC))
    listed = [node.model_dump(mode="json", by_alias=True) for node in nodes.list_nodes().items]
    listed.sort(key=lambda node: (len(node["node"]), node["node"]))
    free, total = (sum(node[amount] for node in listed) for amount in ("free_devices", "devices"))
    yield f"{len(listed)} nodes, {free} of {total} registered devices are free. A bar shows how full a device is"
    yield f"(of memory, cores or slots, the fullest); {FREE} free, {UNHEALTHY} unhealthy, {CORDONED} cordoned."
    yield ""
    rows = [_draw_node(node) for node in listed]
    middle = (len(rows) + 1) // 2
    for left, right in zip_longest(rows[:middle], rows[middle:], fillvalue=""):
        yield f"  {left:<{_COLUMN}}{right}".rstrip()


def _draw_node(node: Mapping[str, Any]) -> str:
    model = ", ".join(_shorten_model(entry["model"]) for entry in node["models"] if entry["model"])
    bars = draw_bars(node)
    return f"{node['node']:<7} {model:<5} {bars}" if bars else f"{node['node']:<7} not registered"


def _shorten_model(model: str) -> str:
    """Shorten ``NVIDIA H100 80GB HBM3`` to ``H100``."""
    return next((word for word in model.split() if any(map(str.isdigit, word))), model)
