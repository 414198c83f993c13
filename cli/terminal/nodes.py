"""``schedulerlog node NODE``: its devices and who holds them, now or at a time."""

from typing import Annotated, Any

import typer

from cli.client.problems import Problem
from cli.client.requests import build_node_path
from cli.terminal.answers import print_document, require_answer
from cli.terminal.options import Asking, with_api_options
from cli.terminal.screen import Screen
from cli.terminal.values import format_time
from schemas.json_types import Json


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
