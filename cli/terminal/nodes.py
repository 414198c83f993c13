"""``schedulerlog nodes`` and ``node NODE``: devices, what is free of them and who holds them, now or at a time."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

from cli.client.problems import Problem
from cli.client.requests import build_node_path
from cli.terminal.answers import print_document, require_answer
from cli.terminal.exit_codes import USAGE
from cli.terminal.options import Asking, with_api_options
from cli.terminal.screen import Screen, complain, format_count
from cli.terminal.simulation import read_input
from cli.terminal.values import format_time
from page.views.fleet import (
    CORDONED,
    FREE,
    UNHEALTHY,
    add_nodes,
    compute_share,
    draw_bars,
    list_excluded,
    list_useless,
)
from schemas.json_types import Json

_PAGE: Final = 200
_LEGEND: Final = (
    f"USE has a bar a device, as high as what pods hold of its memory, cores or slots; {FREE} free, {UNHEALTHY} "
    f"unhealthy, {CORDONED} cordoned."
)
MAX_NODES: Final = 10_000
"""Nodes of all pages together."""


@with_api_options
def nodes(
    asking: Asking,
    grouping: Annotated[
        Literal["node", "model", "pool", "namespace"],
        typer.Option("--by", help="Sums of all nodes by model, pool or namespace."),
    ] = "node",
    pool: Annotated[str, typer.Option(metavar="NAME", help="Only nodes of this pool.")] = "",
    cluster: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="`kubectl get nodes,pods -A -o yaml`; no API is asked."),
    ] = None,
) -> None:
    """List the nodes with what is free of their devices, what is wrong with them, and sums by model, pool or namespace.

    \b
    Examples:
      schedulerlog nodes
      schedulerlog nodes -o wide
      schedulerlog nodes --by namespace
      schedulerlog nodes --by pool
      schedulerlog nodes --pool a100
      schedulerlog nodes --cluster cluster.yaml
    """
    answer = require_answer(_list_here(cluster, pool)) if cluster else _fetch_nodes(asking, pool)
    if grouping == "node":
        if not print_document(asking.output, answer):
            _show_list(Screen(), answer["items"], is_wide=asking.output == "wide")
        return
    sums = add_nodes(answer["items"], grouping)
    if not print_document(asking.output, {"items": sums}):
        _SHOW_SUMS[grouping](Screen(), sums)
        if grouping == "pool":
            Screen().print_line(_describe_pools(answer["items"]), "dim")


def _fetch_nodes(asking: Asking, pool: str) -> Json:
    """Fetch all pages as one."""
    transport, query = asking.create_transport(), {"limit": str(_PAGE), "pool": pool}
    answer = require_answer(transport.get("/nodes", query))
    while answer.get("continue") and len(answer["items"]) < MAX_NODES:
        page = require_answer(transport.get("/nodes", query | {"continue": answer["continue"]}))
        answer = {**page, "items": [*answer["items"], *page["items"]]}
    return answer


def _list_here(file: Path, pool: str) -> Json | Problem:
    """List the nodes of a file by this process."""
    from cli.direct.node_lists import list_nodes
    from engine.fit import manifests
    from engine.fit.manifests import ManifestError
    from engine.snapshot.case_objects import collect_objects

    try:
        manifest = manifests.parse(read_input("--cluster", file), file)
    except ManifestError as error:
        complain(str(error))
        raise typer.Exit(USAGE) from None
    return list_nodes(collect_objects(manifest.objects), datetime.now(UTC), pool)


def _show_list(screen: Screen, listed: Sequence[Mapping[str, Any]], *, is_wide: bool) -> None:
    totals = {name: sum(item[name] or 0 for item in listed) for name in ("devices", "free_devices", "memory_free_mib")}
    text = f"{format_count(len(listed), 'node')}: {totals['free_devices']:,} of {totals['devices']:,} devices are free"
    if totals["memory_free_mib"]:
        largest = max(item["largest_free_mib"] or 0 for item in listed)
        text += f"; {totals['memory_free_mib']:,} MiB of memory, at most {largest:,} MiB on one device"
    screen.print_line(f"{text}.", "bold")
    if not listed:
        return
    screen.skip_line()
    screen.print_line(_LEGEND)
    screen.skip_line()
    columns = ["NODE", "MODEL", "USE", "#FREE", "#DEVICES", "#FREE MiB", "#MOST ON ONE", "#PODS", "STATE"]
    screen.print_table(columns, [_to_list_row(item) for item in listed], is_wide=is_wide)
    if models := add_nodes(listed, "model"):
        screen.skip_line()
        _show_models(screen, models)
    if any(item.get("pool") for item in listed):
        screen.skip_line()
        _show_pools(screen, add_nodes(listed, "pool"))
        screen.print_line(_describe_pools(listed), "dim")
    for node, reasons in list_useless(listed):
        screen.print_line(f"{node} can serve nobody: {', '.join(reasons)}.", "yellow")
    _show_excluded(screen, list_excluded(listed))


def _show_models(screen: Screen, models: Sequence[Mapping[str, Any]]) -> None:
    _show_amounts(screen, "MODEL", [(_name_model(model["model"]), model) for model in models])


def _name_model(model: str | None) -> str:
    return "no registered device" if model is None else model or "not registered"


def _show_pools(screen: Screen, pools: Sequence[Mapping[str, Any]]) -> None:
    _show_amounts(screen, "POOL", [(pool["pool"] or "no pool", pool) for pool in pools])


def _show_amounts(screen: Screen, title: str, sums: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
    columns = [title, "#NODES", "#FREE", "#DEVICES", "#FREE MiB", "#MEMORY %", "#CORES %", "#IN PIECES MiB"]
    rows = [
        [
            name,
            *(_format_number(entry[amount]) for amount in ("nodes", "free_devices", "devices", "memory_free_mib")),
            *(_format_number(share) if entry["devices"] else "-" for share in _list_shares(entry)),
            *(_format_number(entry[amount]) for amount in ("memory_in_pieces_mib", "memory_stranded_mib")),
        ]
        for name, entry in sums
    ]
    screen.print_table([*columns, "#FITS NOBODY MiB"], rows)


def _list_shares(entry: Mapping[str, Any]) -> list[int | None]:
    """List the shares of memory and cores that pods hold; an API of the version before does not count them."""
    return [
        compute_share(entry.get("memory_held_mib"), entry["memory_total_mib"]),
        compute_share(entry.get("cores_held_percent"), entry.get("cores_total_percent")),
    ]


def _describe_pools(listed: Sequence[Mapping[str, Any]]) -> str:
    sources = sorted({item["pool_source"] for item in listed if item.get("pool")})
    return (
        f"Pools are those of {', '.join(sources)}."
        if sources
        else "No node is in a pool: set SCHEDULERLOG_NODE_POOLS of the API."
    )


def _show_namespaces(screen: Screen, namespaces: Sequence[Mapping[str, Any]]) -> None:
    columns = ["NAMESPACE", "#DEVICES HELD", "#MEMORY MiB", "#CORES %", "#NODES"]
    amounts = ("devices", "memory_mib", "cores_percent", "nodes")
    ranked = sorted(namespaces, key=lambda entry: (-entry["devices"], entry["namespace"]))
    rows = [[entry["namespace"] or "(others)", *(_format_number(entry[name]) for name in amounts)] for entry in ranked]
    screen.print_table(columns, rows)


_SHOW_SUMS: Final = {"model": _show_models, "pool": _show_pools, "namespace": _show_namespaces}


def _show_excluded(screen: Screen, devices: Sequence[Mapping[str, Any]]) -> None:
    if not devices:
        return
    screen.skip_line()
    screen.print_line("Devices that no pod gets", "bold")
    rows = [[device["node"], device["uuid"], device["model"], _describe_exclusion(device)] for device in devices]
    screen.print_table(["NODE", "UUID", "MODEL", "STATE"], rows)


def _describe_exclusion(device: Mapping[str, Any]) -> str:
    states = ["unhealthy"] if device["healthy"] is False else []
    return ", ".join([*states, *(["cordoned"] if device["cordoned"] else [])])


def _to_list_row(item: Mapping[str, Any]) -> list[str]:
    return [
        item["node"],
        ", ".join(model["model"] for model in item["models"] if model["model"]),
        draw_bars(item),
        f"{item['free_devices']:,}",
        f"{item['devices']:,}",
        _format_number(item["memory_free_mib"]),
        _format_number(item["largest_free_mib"]),
        f"{item['pods']:,}",
        ", ".join(_iterate_states(item)),
    ]


def _iterate_states(item: Mapping[str, Any]) -> Iterator[str]:
    if item["ready"] not in (None, "True"):
        yield "not ready"
    if item["cordoned"]:
        yield "cordoned"
    for name in ("unhealthy", "cordoned"):
        if count := item[f"{name}_devices"]:
            yield f"{format_count(count, 'device')} {name}"
    if lock := item["lock"]:
        since = f" since {format_time(lock['locked_at'])} UTC" if lock["locked_at"] else ""
        yield f"locked by {lock['pod'] or 'a pod'}{since}"
    for problem in item["problems"]:
        yield problem["code"]


@with_api_options
def node(
    asking: Asking,
    name: Annotated[str, typer.Argument(metavar="NODE")],
    moment: Annotated[str, typer.Option("--at", metavar="TIME", help="2h, 7d ago, or RFC 3339; default: now.")] = "",
) -> None:
    """Show a node's devices, who holds them, and what is wrong with its registration; now or at a time.

    \b
    Examples:
      schedulerlog node node3
      schedulerlog node node3 --at 2h
      schedulerlog node node3 --at 2026-04-22T14:00:00Z -o json
    """
    transport = asking.create_transport()
    occupancy = require_answer(transport.get(build_node_path(name, "occupancy"), {"at": moment}))
    if print_document(asking.output, occupancy, lambda document: document["pods"]):
        return
    _show(asking, occupancy, transport.get(build_node_path(name), {"at": moment}))


def _show(asking: Asking, occupancy: Json, state: Json | Problem) -> None:
    screen, devices = Screen(), occupancy["devices"]
    name = occupancy["node"] + (" is cordoned" if occupancy["cordoned"] else "")
    text = (
        f"{name}: {occupancy['free_devices']} of {len(devices)} devices are free at {format_time(occupancy['at'])} UTC."
    )
    screen.print_line(text, "bold")
    if devices:
        screen.skip_line()
        columns = ["DEVICE", "MODEL", "#MEMORY MiB", "#CORES %", "#SLOTS", "HELD BY"]
        is_wide = asking.output == "wide"
        screen.print_table(columns, [_to_row(device, is_wide=is_wide) for device in devices], is_wide=is_wide)
    if occupancy["other_pods"]:
        screen.print_line(f"{occupancy['other_pods']} pods of namespaces that you may not read are on the node.", "dim")
    for check in state.get("checks", []) if isinstance(state, dict) else []:
        for problem in check["problems"]:
            screen.skip_line()
            screen.print_line(f"{problem['code']}: {problem['message']}", "yellow")


def _to_row(device: dict[str, Any], *, is_wide: bool) -> list[str]:
    holders = [
        f"{pod['namespace']}/{pod['name']}" if pod["name"] else "(another namespace)" for pod in device["held_by"]
    ]
    return [
        device["uuid"] if is_wide else device["uuid"][:12],
        device["model"]
        + (" unhealthy" if device["healthy"] is False else "")
        + (" cordoned" if device["cordoned"] else ""),
        _format_share(device["memory_held_mib"], device["memory_total_mib"]),
        _format_share(device["cores_held_percent"], device["cores_total_percent"]),
        _format_share(device["slots_held"], device["slots_total"]),
        ", ".join(dict.fromkeys(holders)),
    ]


def _format_share(held: int | None, total: int | None) -> str:
    return f"{_format_number(held)}/{_format_number(total)}"


def _format_number(amount: int | None) -> str:
    return "?" if amount is None else f"{amount:,}"
