"""``schedulerlog trends``: counts over time, each series with its shape, the range before, and changes of its level."""

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

import typer

from cli.terminal.answers import print_document, require_answer
from cli.terminal.options import Asking, with_api_options
from cli.terminal.screen import Screen
from cli.terminal.values import format_duration, format_time
from schemas.json_types import Json

_BARS: Final = "▁▂▃▄▅▆▇█"
_SHAPE_CHARACTERS: Final = 24
_DEVICE_SECONDS: Final = {"held_seconds": "GPU-hours held", "waited_device_seconds": "GPU-hours waited"}
"""Counts that are shown in hours, and their unit."""
Dimension = Literal[
    "obstacle", "reason", "namespace", "pool", "model", "result", "workload", "queue", "priority_class", "layer"
]
Counted = Literal["attempts", "nodes", "devices", "waited_seconds", "held_seconds", "waited_device_seconds"]


@with_api_options
def trends(
    asking: Asking,
    dimension: Annotated[
        Dimension,
        typer.Option(
            "--by",
            metavar="obstacle|reason|namespace|pool|model|result|workload|queue|priority_class|layer",
            help="Dimension of the counts.",
        ),
    ] = "obstacle",
    count: Annotated[
        Counted | None,
        typer.Option(
            metavar="attempts|nodes|devices|held_seconds|waited_device_seconds",
            help="Subject of the counts; --by layer counts waits. The last two are GPU-hours of placed pods, by "
            "namespace, pool, workload, queue or priority_class.",
        ),
    ] = None,
    all_namespaces: Annotated[bool, typer.Option("--all-namespaces", "-A", help="Attempts of all namespaces.")] = False,
    since: Annotated[str, typer.Option(metavar="TIME", help="15m, 2h, 7d ago, or RFC 3339.")] = "24h",
    until: Annotated[str, typer.Option(metavar="TIME", help="Default: now.")] = "",
    key: Annotated[str, typer.Option(help="Only this obstacle, namespace, …, spelled exactly.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=50, help="Number of rows.")] = 10,
) -> None:
    """Count attempts over time by obstacle, namespace, pool, …: how many, how many before, and when that changed.

    \b
    Examples:
      schedulerlog trends -A
      schedulerlog trends -n llm --since 7d --count devices
      schedulerlog trends -A --by reason
      schedulerlog trends -A --by pool --since 7d -o json
      schedulerlog trends -A --by layer --since 7d
      schedulerlog trends -A --by pool --count held_seconds --since 7d
    """
    transport = asking.create_transport()
    query = {"by": dimension, "count": count or "", "since": since, "until": until, "key": key, "limit": str(limit)}
    query["namespace"] = "" if all_namespaces else transport.get_namespace()
    answer = require_answer(transport.get("/trends", query))
    if not print_document(asking.output, answer):
        _show(Screen(), answer, query["namespace"], is_wide=asking.output == "wide")


def _show(screen: Screen, answer: Json, namespace: str, *, is_wide: bool) -> None:
    unknown = answer.get("unknown")
    series = [*answer["items"], *([answer["other"]] if answer["other"] else ())]
    unnamed = "(none recorded)" if answer["count"] in _DEVICE_SECONDS else "(not known)"
    series += [unknown | {"key": unnamed}] if unknown else []
    where = f" in namespace {namespace}" if namespace else ""
    times = f"from {format_time(answer['since'])} to {format_time(answer['until'])} UTC"
    if not series:
        screen.print_line(f"Nothing is counted by {answer['by']}{where} {times}.", "bold")
        return
    largest = series[0]
    is_in_hours = answer["count"] in _DEVICE_SECONDS
    unit = _DEVICE_SECONDS.get(answer["count"], str(answer["count"]))
    total = _format_total(largest["total"], is_in_hours=is_in_hours)
    first = largest["key"] or "(others)"
    screen.print_line(f"{first} is first by {answer['by']}: {total} {unit}{where} {times}.", "bold")
    screen.skip_line()
    bucket = format_duration(answer["interval_seconds"])
    columns = [answer["by"].upper(), f"#{unit.upper()}", "#BEFORE", f"EACH {bucket}"]
    if any(item["changes"] for item in series):
        columns.append("CHANGES (UTC)")
    rows = [_to_row(item, is_wide=is_wide, is_in_hours=is_in_hours)[: len(columns)] for item in series]
    screen.print_table(columns, rows, is_wide=is_wide)


def _format_total(total: int, *, is_in_hours: bool) -> str:
    return f"{total / 3600:,.1f}" if is_in_hours else f"{total:,}"


def _to_row(series: dict[str, Any], *, is_wide: bool, is_in_hours: bool) -> list[str]:
    changes = series["changes"] if is_wide else series["changes"][-1:]
    before = series["total_before"]
    return [
        series["key"] or "(others)",
        _format_total(series["total"], is_in_hours=is_in_hours),
        "" if before is None else _format_total(before, is_in_hours=is_in_hours),
        shape(series["values"]),
        "; ".join(
            f"{format_time(change['at'])[:-3]}: {change['before']:.1f} to {change['after']:.1f}" for change in changes
        ),
    ]


def shape(values: Sequence[int]) -> str:
    """Draw values as at most 24 bars; the highest has full height, zero is a space."""
    size = max(1, -(-len(values) // _SHAPE_CHARACTERS))
    sums = [sum(values[start : start + size]) for start in range(0, len(values), size)]
    highest = max(sums, default=0)
    return "".join(_draw_bar(total, highest) for total in sums)


def _draw_bar(value: int, highest: int) -> str:
    # Counts that are taken back may leave less than none for a while.
    return " " if value <= 0 else _BARS[-(-value * len(_BARS) // highest) - 1]
