"""``schedulerlog node NODE``: its devices and who holds them, now or at a time."""

from typing import Annotated, Any

import typer

from cli.client.problems import Problem
from cli.client.requests import of_node
from cli.terminal.answers import answered, is_printed
from cli.terminal.options import Asking, asks
from cli.terminal.screen import Screen
from cli.terminal.times import clock
from schemas.json_types import Json


@asks
def node(
    asking: Asking,
    name: Annotated[str, typer.Argument(metavar="NODE")],
    at: Annotated[str, typer.Option(metavar="TIME", help="2h, 7d ago, or RFC 3339; default: now.")] = "",
) -> None:
    """A node's devices, who holds them, and what is wrong with its registration; now or at a time.

    \b
    Examples:
      schedulerlog node node3
      schedulerlog node node3 --at 2h
      schedulerlog node node3 --at 2026-04-22T14:00:00Z -o json
    """
    transport = asking.transport()
    occupancy = answered(transport.get(of_node(name, "occupancy"), {"at": at}))
    if is_printed(asking.output, occupancy, lambda found: found["pods"]):
        return
    _show(asking, occupancy, transport.get(of_node(name), {"at": at}))


def _show(asking: Asking, occupancy: Json, state: Json | Problem) -> None:
    screen, devices = Screen(), occupancy["devices"]
    name = occupancy["node"] + (" is cordoned" if occupancy["cordoned"] else "")
    text = f"{name}: {occupancy['free_devices']} of {len(devices)} devices are free at {clock(occupancy['at'])} UTC."
    screen.line(text, "bold")
    if devices:
        screen.blank()
        columns = ["DEVICE", "MODEL", "#MEMORY MiB", "#CORES %", "#SLOTS", "HELD BY"]
        is_wide = asking.output == "wide"
        screen.table(columns, [_row(device, is_wide=is_wide) for device in devices], is_wide=is_wide)
    if occupancy["other_pods"]:
        screen.line(f"{occupancy['other_pods']} pods of namespaces that you may not read are on the node.", "dim")
    for check in state.get("checks", []) if isinstance(state, dict) else []:
        for problem in check["problems"]:
            screen.blank()
            screen.line(f"{problem['code']}: {problem['message']}", "yellow")


def _row(device: dict[str, Any], *, is_wide: bool) -> list[str]:
    holders = [
        f"{pod['namespace']}/{pod['name']}" if pod["name"] else "(another namespace)" for pod in device["held_by"]
    ]
    return [
        device["uuid"] if is_wide else device["uuid"][:12],
        device["model"]
        + (" unhealthy" if device["healthy"] is False else "")
        + (" cordoned" if device["cordoned"] else ""),
        _of(device["memory_held_mib"], device["memory_total_mib"]),
        _of(device["cores_held_percent"], device["cores_total_percent"]),
        _of(device["slots_held"], device["slots_total"]),
        ", ".join(dict.fromkeys(holders)),
    ]


def _of(held: int | None, total: int | None) -> str:
    return f"{_number(held)}/{_number(total)}"


def _number(amount: int | None) -> str:
    return "?" if amount is None else f"{amount:,}"
