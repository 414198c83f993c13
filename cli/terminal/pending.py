"""The pods that wait, as rows: one by one, by workload, or by what keeps them out. Pure."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal

from cli.terminal.screen import counted
from cli.terminal.times import duration
from page.views import amounts
from schemas.json_types import Json

By = Literal["pod", "workload", "obstacle"]
SHOWN_REASONS: Final = 2
_COLUMNS: Final[Mapping[By, tuple[str, ...]]] = {
    "pod": ("POD", "WAITS", "#GPU HOURS", "OBSTACLE", "NEAREST NODE"),
    "workload": ("WORKLOAD", "#PODS", "WAITS", "#GPU HOURS", "REASONS"),
    "obstacle": ("OBSTACLE", "#PODS", "WAITS", "#GPU HOURS", "ASKED", "NEAREST NODE"),
}
_MORE_COLUMNS: Final[Mapping[By, tuple[str, ...]]] = {
    "pod": ("#DEVICES", "#ATTEMPTS", "WORKLOAD", "QUEUE", "SCHEDULER", "ATTEMPT", "WHY"),
    "workload": ("#DEVICES", "QUEUE", "LONGEST WAITS"),
    "obstacle": ("#DEVICES", "#WORKLOADS", "LONGEST WAITS", "WHY"),
}


def columns(by: By, *, is_wide: bool) -> list[str]:
    return [*_COLUMNS[by], *(_MORE_COLUMNS[by] if is_wide else ())]


def rows(answer: Json, by: By, waited: Callable[[str], float]) -> list[list[str]]:
    """A row for each item, with all columns; ``waited`` gives the seconds since a time."""
    return [_ROWS[by](item, duration(waited(item["first_judged_at"]))) for item in answer["items"]]


def headline(answer: Json, by: By) -> str:
    """How many wait."""
    if not answer["total"]:
        return "No pod waits"
    if by == "pod":
        return counted(answer["total"], "waiting pod")
    kept_out = counted(answer["total"], "workload") if by == "workload" else counted(answer["total"], "obstacle")
    return f"{counted(answer['pods'], 'waiting pod')}, {kept_out}"


def pods(answer: Json) -> Iterator[Mapping[str, Any]]:
    """Those that the answer names."""
    for item in answer["items"]:
        yield from item.get("examples", (item,))


def few(reasons: list[str]) -> str:
    """The first reasons, and how many there are beside them."""
    more = len(reasons) - SHOWN_REASONS
    return ", ".join(reasons[:SHOWN_REASONS]) + (f" +{more}" if more > 0 else "")


def _pod(pod: Mapping[str, Any], waits: str) -> list[str]:
    return [
        f"{pod['namespace']}/{pod['name']}",
        waits,
        _hours(pod["gpu_hours"]),
        _code(pod) or few(pod["reasons"]),
        _nearest(pod),
        _number(pod["devices"]),
        _number(pod["attempts"]),
        pod["workload"],
        pod["queue"],
        pod["scheduler"],
        pod["attempt"].rpartition("/")[2],
        _sentence(pod),
    ]


def _workload(found: Mapping[str, Any], waits: str) -> list[str]:
    return [
        f"{found['namespace']}/{found['workload']}",
        _number(found["pods"]),
        waits,
        _hours(found["gpu_hours"]),
        few(list(found["reasons"])),
        _number(found["devices"]),
        found["queue"],
        _longest(found),
    ]


def _obstacle(found: Mapping[str, Any], waits: str) -> list[str]:
    return [
        _code(found) or "not known",
        _number(found["pods"]),
        waits,
        _hours(found["gpu_hours"]),
        found["asked"],
        _nearest(found),
        _number(found["devices"]),
        _number(found["workloads"]),
        _longest(found),
        _sentence(found),
    ]


_ROWS: Final[Mapping[By, Callable[[Mapping[str, Any], str], list[str]]]] = {
    "pod": _pod,
    "workload": _workload,
    "obstacle": _obstacle,
}


def _code(found: Mapping[str, Any]) -> str:
    return str(found["obstacle"]["code"]) if found["obstacle"] else ""


def _sentence(found: Mapping[str, Any]) -> str:
    return str(found["obstacle"]["sentence"]["en"]) if found["obstacle"] else ""


def _longest(found: Mapping[str, Any]) -> str:
    return next((f"{example['namespace']}/{example['name']}" for example in found["examples"]), "")


def _nearest(found: Mapping[str, Any]) -> str:
    """The node, and what it lacks: devices, and of their amounts what is known now."""
    nearest = found["nearest"]
    if not nearest:
        return ""
    memory, cores, devices = (
        nearest[name] for name in ("missing_memory_mib", "missing_cores_percent", "missing_devices")
    )
    lacks = [counted(devices, "device")] if devices else []
    lacks += [amounts.memory(memory)] if memory else []
    lacks += [f"{cores} % cores"] if cores else []
    return f"{nearest['node']} lacks {', '.join(lacks)}" if lacks else str(nearest["node"])


def _hours(hours: float | None) -> str:
    return "" if hours is None else amounts.gpu_hours(hours)


def _number(number: int | None) -> str:
    return "" if number is None else f"{number:,}"
