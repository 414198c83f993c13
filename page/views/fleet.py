"""Sums over the nodes of an answer of ``/nodes``, and bars of their devices, for page and terminal. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

Item = Mapping[str, Any]
Grouping = Literal["model", "pool", "namespace"]
GROUPINGS: Final[Mapping[Grouping, str]] = {"model": "models", "pool": "models", "namespace": "held"}
"""Field of a node that lists the amounts, by what they are grouped."""

BARS: Final = "▁▂▃▄▅▆▇█"
FREE: Final = "·"
UNHEALTHY: Final = "x"
CORDONED: Final = "-"
_NO_DEVICES: Final[Item] = {"model": None} | dict.fromkeys(
    (
        "devices", "free_devices", "memory_total_mib", "memory_held_mib", "memory_free_mib", "memory_in_pieces_mib",
        "memory_stranded_mib", "cores_total_percent", "cores_held_percent",
    ),
    0,
)  # fmt: skip
"""Amounts of a node without devices."""
_SHARES: Final = ("memory_percent", "cores_percent", "slots_percent")


def draw_bars(node: Item) -> str:
    """Draw a character for each device of a node: a bar as high as the fullest of its shares that pods hold."""
    return "".join(map(_draw_bar, node["fill"]))


def _draw_bar(device: Item) -> str:
    if device["healthy"] is False:
        return UNHEALTHY
    if device["cordoned"]:
        return CORDONED
    fullest = max(device[share] or 0 for share in _SHARES)
    return BARS[min(fullest * len(BARS) // 100, len(BARS) - 1)] if fullest else FREE


def add_nodes(nodes: Iterable[Item], grouping: Grouping) -> list[dict[str, Any]]:
    """Add up the amounts of all nodes by model, pool or namespace, with the number of nodes.

    An amount that one node does not know is None. Nodes without devices are counted for their pool, or for the model
    None; in sums by namespace for none.
    """
    sums: dict[str | None, dict[str, Any]] = {}
    for node in nodes:
        keys = set[str | None]()
        entries = node[GROUPINGS[grouping]]
        for entry in entries if entries or grouping == "namespace" else [_NO_DEVICES]:
            # An API of the version before lists no pools.
            key = node.get("pool", "") if grouping == "pool" else entry[grouping]
            total = sums.setdefault(key, {grouping: key, "nodes": 0})
            total["nodes"] += key not in keys
            keys.add(key)
            for name, amount in entry.items():
                if name not in GROUPINGS:
                    total[name] = _add(total.get(name, 0), amount)
    return [sums[name] for name in sorted(sums, key=lambda name: (name is None, name))]


def _add(total: int | None, amount: int | None) -> int | None:
    return None if total is None or amount is None else total + amount


def compute_share(held: int | None, total: int | None) -> int | None:
    """Compute a share in percent, rounded up: an amount that is held in part is not shown as free."""
    return -(-100 * held // total) if held is not None and total else None


def list_excluded(nodes: Iterable[Item]) -> list[dict[str, Any]]:
    """List the devices that no pod gets because they are unhealthy or cordoned, each with its node."""
    return [{"node": node["node"], **device} for node in nodes for device in node["excluded"]]


def list_useless(nodes: Sequence[Item]) -> list[tuple[str, list[str]]]:
    """List the nodes that can serve nobody for another reason than pods that hold their devices, with the reasons."""
    return [(node["node"], reasons) for node in nodes if (reasons := _list_reasons(node))]


def _list_reasons(node: Item) -> list[str]:
    if node["free_devices"] or node["memory_free_mib"]:
        return []
    reasons = ["not ready"] if node["ready"] not in (None, "True") else []
    reasons += ["cordoned"] if node["cordoned"] and node["devices"] else []
    reasons += [problem["code"] for problem in node["problems"]]
    count = len(node["excluded"])
    if node["devices"] and count == node["devices"]:
        reasons.append("all devices are unhealthy or cordoned")
    return reasons if node["devices"] or node["problems"] else []
