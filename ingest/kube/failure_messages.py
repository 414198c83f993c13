"""Why no node could take a pod, read from the text of an event or a condition.

The texts hold what they count, so they can't be split at every comma: a reason may hold ``, that the pod didn't
tolerate``, ``{key: value}``, and the whole refusal of an extender (``1/8 CardNotHealth, 4/8 CardInsufficientMemory``).
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

from ingest.kai.fit_errors import fit_error

GRAMMAR: Final[Mapping[str, Any]] = tomllib.loads((Path(__file__).parent / "grammar.toml").read_text("utf-8"))

_NODES: Final = {name: re.compile(pattern, re.DOTALL) for name, pattern in GRAMMAR["nodes"].items()}
_BEHIND: Final = re.compile(rf"\. (?={GRAMMAR['nodes']['behind']})")
_GANG: Final = re.compile(GRAMMAR["volcano"]["gang"], re.DOTALL)
_WAITS: Final = re.compile(GRAMMAR["volcano"]["waits"], re.DOTALL)
_DIAGNOSIS: Final = re.compile(GRAMMAR["koordinator"]["diagnosis"], re.DOTALL)
_CUT: Final = " ..."
"""What kube-scheduler puts at the end of an event's text that is longer than 1024 bytes."""

MAX_COUNT: Final = 10_000_000


@dataclass(frozen=True, slots=True)
class Refused:
    """``counts`` where nodes are counted, ``nodes`` where they are named, ``error`` where neither is said."""

    text: str
    total: int = 0
    """Nodes that were looked at, as far as it is said."""
    counts: Mapping[str, int] = field(default_factory=dict)
    nodes: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """By name: the reason, and what is known behind it."""
    error: str = ""
    nominated: str = ""
    behind: str = ""
    """What stands behind the counts: whether preemption would help."""
    origin: str = ""
    """The pod that the text is about, where it stands in an event about its group."""
    is_cut: bool = False
    """The end was cut off, so there may be more reasons."""


def refused(text: str) -> Refused:
    """Read what a scheduler says when it finds no node. A text of no known form is an error, word for word."""
    text = text.strip()
    for read in (_counted, _by_predicate, _gang, _waiting, _diagnosis, _kai):
        if found := read(text):
            return found
    return Refused(text, error=text)


def _counted(text: str) -> Refused | None:
    counted = _NODES["counted"].fullmatch(text)
    if counted is None:
        return None
    total, rest = _number(counted["total"]), counted["rest"]
    front, behind = _split_behind(rest)
    is_cut = not behind and rest.endswith(_CUT)
    if not _NODES["item"].match(front):
        error, _, more = front.partition(". ")
        return Refused(text, total, error=error.rstrip("."), behind=behind or more)
    items = re.split(r", (?=\d+ \S)", front.removesuffix(_CUT).rstrip(".") if not is_cut else front)
    found = [item for each in (items[:-1] if is_cut else items) if (item := _NODES["item"].fullmatch(each))]
    return Refused(text, total, counts=_sums(found), behind=behind, is_cut=is_cut)


def _split_behind(rest: str) -> tuple[str, str]:
    behind = _BEHIND.search(rest)
    return (rest[: behind.start()], rest[behind.end() :]) if behind else (rest, "")


def _sums(items: list[re.Match[str]]) -> dict[str, int]:
    """Nodes by reason; the refusal of an extender counts for each code in it."""
    sums: dict[str, int] = {}
    for item in items:
        for reason in _reasons(item["reason"]):
            sums[reason] = min(sums.get(reason, 0) + _number(item["count"]), MAX_COUNT)
    return sums


def _reasons(text: str) -> list[str]:
    if _NODES["extender"].match(text):
        return sorted({found["code"] for found in _NODES["code"].finditer(text)})
    return [text]


def _by_predicate(text: str) -> Refused | None:
    predicates = _NODES["predicates"].fullmatch(text)
    if predicates is None:
        return None
    found = list(_NODES["predicate"].finditer(predicates["rest"]))
    counts = {each["reason"].lstrip(", "): _number(each["count"]) for each in found}
    return Refused(text, max(counts.values(), default=0), counts=counts)


def _gang(text: str) -> Refused | None:
    """Volcano on a pod group: nothing about a node, unless it names the pod that failed and why."""
    gang = _GANG.fullmatch(text)
    if gang is None:
        return None
    if not gang["origin"]:
        return Refused(text, error=text)
    inner = refused(gang["origin"])
    return Refused(text, inner.total, inner.counts, error=inner.error, origin=gang["name"], is_cut=inner.is_cut)


def _waiting(text: str) -> Refused | None:
    waits = _WAITS.fullmatch(text)
    return Refused(text, error=text, nominated=waits["node"]) if waits else None


def _kai(text: str) -> Refused | None:
    error = fit_error(text)
    if not (error.is_about_nodes or error.code or error.node_pool):
        return None
    nodes = {name: (why.reason, why.detail) for name, why in error.nodes.items()}
    counts = {reason: min(count, MAX_COUNT) for reason, count in error.counts.items()}
    total = max(len(nodes), max(counts.values(), default=0))
    return Refused(text, total, {} if nodes else counts, nodes, "" if error.is_about_nodes else text)


def _diagnosis(text: str) -> Refused | None:
    """Koordinator's dump: the failed nodes by name, grouped by reason."""
    dump = _DIAGNOSIS.fullmatch(text)
    if dump is None:
        return None
    try:
        said = orjson.loads(dump["json"])
    except orjson.JSONDecodeError:
        return None
    schedule = said.get("scheduleDiagnosis") or {}
    details = schedule.get("nodeFailedDetails") if isinstance(schedule, dict) else None
    nodes = {name: (reason, "") for reason, names in _failed(details) for name in names}
    error = _text(said.get("preFilterMessage")) or _text((said.get("suggestion") or {}).get("message"))
    nominated = _text(said.get("nominatedNode"))
    return Refused(text, len(nodes), nodes=nodes, error="" if nodes else error or text, nominated=nominated)


def _failed(details: Any) -> list[tuple[str, list[str]]]:
    groups = [each for each in details if isinstance(each, dict)] if isinstance(details, list) else []
    return [(_text(each.get("reason")), [_text(name) for name in each.get("failedNodes") or ()]) for each in groups]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _number(digits: str) -> int:
    return min(int(digits[:12]), MAX_COUNT)
