"""The pods that wait, as rows: one by one, by workload, or by what keeps them out. Pure."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal

from cli.terminal.screen import format_count
from cli.terminal.values import format_duration
from page.views import amounts
from schemas.json_types import Json

Grouping = Literal["pod", "workload", "obstacle", "layer"]
SHOWN_REASONS: Final = 2
_COLUMNS: Final[Mapping[Grouping, tuple[str, ...]]] = {
    "pod": ("POD", "WAITS", "#GPU HOURS", "OBSTACLE", "NEAREST NODE"),
    "workload": ("WORKLOAD", "#PODS", "WAITS", "#GPU HOURS", "OBSTACLES"),
    "obstacle": ("OBSTACLE", "#PODS", "WAITS", "#GPU HOURS", "ASKED", "NEAREST NODE"),
    "layer": ("LAYER", "#PODS", "LONGEST", "ALL WAITS", "#GPU HOURS", "OBSTACLES"),
}
_MORE_COLUMNS: Final[Mapping[Grouping, tuple[str, ...]]] = {
    "pod": ("LAYER", "#DEVICES", "#ATTEMPTS", "WORKLOAD", "QUEUE", "SCHEDULER", "ATTEMPT", "WHY"),
    "workload": ("#DEVICES", "QUEUE", "LONGEST WAITS"),
    "obstacle": ("#DEVICES", "#WORKLOADS", "LONGEST WAITS", "WHY"),
    "layer": ("#DEVICES", "#WORKLOADS", "LONGEST WAITS"),
}


def list_columns(grouping: Grouping, *, is_wide: bool) -> list[str]:
    return [*_COLUMNS[grouping], *(_MORE_COLUMNS[grouping] if is_wide else ())]


def to_rows(answer: Json, grouping: Grouping, waited: Callable[[str], float]) -> list[list[str]]:
    """Convert each item to a row with all columns; ``waited`` gives the seconds since a time."""
    return [_ROWS[grouping](item, format_duration(waited(item["first_judged_at"]))) for item in answer["items"]]


def write_headline(answer: Json, grouping: Grouping) -> str:
    """Write how many pods wait."""
    if not answer["total"]:
        return "No pod waits"
    if grouping == "pod":
        return format_count(answer["total"], "waiting pod")
    return f"{format_count(answer['pods'], 'waiting pod')}, {format_count(answer['total'], grouping)}"


def iterate_pods(answer: Json) -> Iterator[Mapping[str, Any]]:
    """Iterate over the pods that the answer names."""
    for item in answer["items"]:
        yield from item.get("examples", (item,))


def shorten_reasons(reasons: list[str]) -> str:
    """Shorten to the first reasons, and the number of further ones."""
    more = len(reasons) - SHOWN_REASONS
    return ", ".join(reasons[:SHOWN_REASONS]) + (f" +{more}" if more > 0 else "")


def _to_pod_row(pod: Mapping[str, Any], waits: str) -> list[str]:
    return [
        f"{pod['namespace']}/{pod['name']}",
        waits,
        _format_hours(pod["gpu_hours"]),
        _get_code(pod) or shorten_reasons(pod["reasons"]),
        _describe_nearest(pod),
        pod.get("layer") or "",
        _format_number(pod["devices"]),
        _format_number(pod["attempts"]),
        pod["workload"],
        pod["queue"],
        pod["scheduler"],
        pod["attempt"].rpartition("/")[2],
        _get_sentence(pod),
    ]


def _to_workload_row(workload: Mapping[str, Any], waits: str) -> list[str]:
    return [
        f"{workload['namespace']}/{workload['workload']}",
        _format_number(workload["pods"]),
        waits,
        _format_hours(workload["gpu_hours"]),
        shorten_reasons(list(workload.get("obstacles") or workload["reasons"])),
        _format_number(workload["devices"]),
        workload["queue"],
        _name_longest_waiting(workload),
    ]


def _to_obstacle_row(obstacle: Mapping[str, Any], waits: str) -> list[str]:
    return [
        _get_code(obstacle) or "not known",
        _format_number(obstacle["pods"]),
        waits,
        _format_hours(obstacle["gpu_hours"]),
        obstacle["asked"],
        _describe_nearest(obstacle),
        _format_number(obstacle["devices"]),
        _format_number(obstacle["workloads"]),
        _name_longest_waiting(obstacle),
        _get_sentence(obstacle),
    ]


def _to_layer_row(layer: Mapping[str, Any], waits: str) -> list[str]:
    return [
        layer["layer"] or "not known",
        _format_number(layer["pods"]),
        waits,
        format_duration(layer["waited_seconds"]),
        _format_hours(layer["gpu_hours"]),
        shorten_reasons(list(layer["obstacles"])),
        _format_number(layer["devices"]),
        _format_number(layer["workloads"]),
        _name_longest_waiting(layer),
    ]


_ROWS: Final[Mapping[Grouping, Callable[[Mapping[str, Any], str], list[str]]]] = {
    "pod": _to_pod_row,
    "workload": _to_workload_row,
    "obstacle": _to_obstacle_row,
    "layer": _to_layer_row,
}


def _get_code(item: Mapping[str, Any]) -> str:
    return str(item["obstacle"]["code"]) if item["obstacle"] else ""


def _get_sentence(item: Mapping[str, Any]) -> str:
    return str(item["obstacle"]["sentence"]["en"]) if item["obstacle"] else ""


def _name_longest_waiting(item: Mapping[str, Any]) -> str:
    return next((f"{example['namespace']}/{example['name']}" for example in item["examples"]), "")


def _describe_nearest(item: Mapping[str, Any]) -> str:
    """Describe the nearest node and what it lacks: devices, memory, cores."""
    nearest = item["nearest"]
    if not nearest:
        return ""
    memory, cores, devices = (
        nearest[name] for name in ("missing_memory_mib", "missing_cores_percent", "missing_devices")
    )
    lacks = [format_count(devices, "device")] if devices else []
    lacks += [amounts.format_memory(memory)] if memory else []
    lacks += [f"{cores} % cores"] if cores else []
    return f"{nearest['node']} lacks {', '.join(lacks)}" if lacks else str(nearest["node"])


def _format_hours(hours: float | None) -> str:
    return "" if hours is None else amounts.format_gpu_hours(hours)


def _format_number(number: int | None) -> str:
    return "" if number is None else f"{number:,}"
