"""Messages about finding no node for a pod, parsed from the text of an event or a condition.

A text can't be split at every comma: a reason may contain ``, that the pod didn't tolerate``, ``{key: value}``, and the
whole refusal of an extender (``1/8 CardNotHealth, 4/8 CardInsufficientMemory``).
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

from ingest.readers.kai.fit_errors import parse_fit_error

GRAMMAR: Final[Mapping[str, Any]] = tomllib.loads((Path(__file__).parent / "grammar.toml").read_text("utf-8"))

_NODES: Final = {name: re.compile(pattern, re.DOTALL) for name, pattern in GRAMMAR["nodes"].items()}
_RESERVATIONS: Final = "Reservation(s) "
_POSTFILTER: Final = re.compile(rf"^(?=preemption: )|\. (?={GRAMMAR['nodes']['postfilter']})")
_GANG: Final = re.compile(GRAMMAR["volcano"]["gang"], re.DOTALL)
_WAITS: Final = re.compile(GRAMMAR["volcano"]["waits"], re.DOTALL)
_DIAGNOSIS: Final = re.compile(GRAMMAR["koordinator"]["diagnosis"], re.DOTALL)
_RESOURCES: Final = "node(s) didn't have enough "
CUT_MARK: Final = " ..."
"""The end of an event's text that kube-scheduler cut at 1024 bytes; it does not cut the text of a condition."""

# A count is a text from an event that anyone with the right to write events may have written.
MAX_COUNT: Final = 10_000_000


@dataclass(frozen=True, slots=True)
class FailureMessage:
    """``counts`` where the text counts nodes, ``nodes`` where it names them, ``error`` where it does neither."""

    text: str
    total: int = 0
    """Nodes that the scheduler looked at; 0 where the text has no total."""
    counts: Mapping[str, int] = field(default_factory=dict)
    nodes: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """By name, the reason and its details."""
    error: str = ""
    nominated: str = ""
    postfilter: str = ""
    """The text after the counts, about preemption."""
    origin: str = ""
    """The pod that the text blames, in an event about its group."""
    is_cut: bool = False
    """The end is missing, so there may be more reasons."""


def parse_failure(text: str) -> FailureMessage:
    """Parse a scheduler's message about finding no node. A text in no known form becomes ``error``, word for word."""
    text = text.strip()
    for parse in (
        _parse_counted,
        _parse_predicates,
        _parse_fit_failures,
        _parse_gang,
        _parse_waiting,
        _parse_diagnosis,
        _parse_kai,
    ):
        if message := parse(text):
            return message
    return FailureMessage(text, error=text)


def _parse_counted(text: str) -> FailureMessage | None:
    counted = _NODES["counted"].fullmatch(text)
    if counted is None:
        return None
    total, tail = _parse_number(counted["total"]), counted["rest"]
    front, postfilter = _split_postfilter(tail)
    # Behind a postfilter text the counts are whole, although the end of the text may be missing.
    is_cut = not postfilter and tail.endswith(CUT_MARK)
    # Before any node was looked at (a missing claim, a scheduling gate) there is a text and no count.
    if front and not _NODES["item"].match(front):
        error, _, more = front.partition(". ")
        return FailureMessage(text, total, error=error.rstrip("."), postfilter=postfilter or more)
    # A reason may itself hold commas (``untolerated taint {k: v}``, an extender's list): only a comma before a count
    # divides.
    items = re.split(r", (?=\d+ \S)", front.removesuffix(CUT_MARK).rstrip(".") if not is_cut else front)
    # The last item of a cut text may be incomplete: a wrong reason is worse than a missing one.
    complete_items = items[:-1] if is_cut else items
    matches = [item for text_of_item in complete_items if (item := _NODES["item"].fullmatch(text_of_item))]
    return FailureMessage(text, total, counts=_sum_by_reason(matches), postfilter=postfilter, is_cut=is_cut)


def _split_postfilter(text: str) -> tuple[str, str]:
    match = _POSTFILTER.search(text)
    return (text[: match.start()], text[match.end() :]) if match else (text, "")


def _sum_by_reason(items: list[re.Match[str]]) -> dict[str, int]:
    """Sum the nodes by reason; an extender's refusal with several codes counts for each of them."""
    sums: dict[str, int] = {}
    for item in items:
        for reason in _split_reasons(item["reason"]):
            sums[reason] = min(sums.get(reason, 0) + _parse_number(item["count"]), MAX_COUNT)
    return sums


def _split_reasons(text: str) -> list[str]:
    # Koordinator counts reservations in the same sentence as nodes.
    if _RESERVATIONS in text:
        return []
    if _NODES["extender"].match(text):
        return sorted({match["code"] for match in _NODES["code"].finditer(text)})
    return [text]


def _parse_predicates(text: str) -> FailureMessage | None:
    predicates = _NODES["predicates"].fullmatch(text)
    if predicates is None:
        return None
    # An older form has the reason first and its count in brackets behind it.
    matches = list(_NODES["predicate"].finditer(predicates["rest"]))
    counts = {item["reason"].lstrip(", "): _parse_number(item["count"]) for item in matches}
    return FailureMessage(text, max(counts.values(), default=0), counts=counts)


def _parse_fit_failures(text: str) -> FailureMessage | None:
    """Parse what kube-scheduler wrote up to 1.6: the refused nodes by name up to 1.4, then counts behind reasons."""
    if not _NODES["unfit"].match(text):
        return None
    nodes = {item["node"]: (item["reason"].strip(), "") for item in _NODES["unfit_node"].finditer(text)}
    summary = _NODES["unfit_nodes"].search(text)
    items = _NODES["unfit_item"].finditer(summary["rest"]) if summary else ()
    counts = {item["reason"]: _parse_number(item["count"]) for item in items}
    if not nodes and not counts:
        return None
    return FailureMessage(text, len(nodes) or max(counts.values()), {} if nodes else counts, nodes)


def _parse_gang(text: str) -> FailureMessage | None:
    """Parse Volcano's text about a pod group: not about nodes, unless it names the pod that failed and the reason."""
    gang = _GANG.fullmatch(text)
    if gang is None:
        return None
    if not gang["origin"]:
        return FailureMessage(text, error=text)
    inner = parse_failure(gang["origin"])
    return FailureMessage(text, inner.total, inner.counts, error=inner.error, origin=gang["name"], is_cut=inner.is_cut)


def _parse_waiting(text: str) -> FailureMessage | None:
    waits = _WAITS.fullmatch(text)
    return FailureMessage(text, error=text, nominated=waits["node"]) if waits else None


def _parse_kai(text: str) -> FailureMessage | None:
    error = parse_fit_error(text)
    if not (error.is_about_nodes or error.code or error.node_pool):
        return None
    nodes = {name: (why.reason, why.detail) for name, why in error.nodes.items()}
    counts = {reason: min(count, MAX_COUNT) for reason, count in error.counts.items()}
    total = max(len(nodes), _count_nodes(counts))
    # Where nodes are named, the counts are of the same nodes.
    return FailureMessage(text, total, {} if nodes else counts, nodes, "" if error.is_about_nodes else text)


def _count_nodes(counts: Mapping[str, int]) -> int:
    """Count the nodes of KAI's counts: a node counts once for each resource, and once for any other reason."""
    resources = [count for reason, count in counts.items() if reason.startswith(_RESOURCES)]
    others = sum(count for reason, count in counts.items() if not reason.startswith(_RESOURCES))
    return min(max(resources, default=0) + others, MAX_COUNT)


def _parse_diagnosis(text: str) -> FailureMessage | None:
    """Parse Koordinator's diagnosis: the refused nodes by name, grouped by reason."""
    dump = _DIAGNOSIS.fullmatch(text)
    if dump is None:
        return None
    try:
        diagnosis = orjson.loads(dump["json"])
    except orjson.JSONDecodeError:
        return None
    schedule = diagnosis.get("scheduleDiagnosis") or {}
    details = schedule.get("nodeFailedDetails") if isinstance(schedule, dict) else None
    nodes = {name: (reason, "") for reason, names in _list_failed(details) for name in names}
    error = _to_text(diagnosis.get("preFilterMessage")) or _to_text((diagnosis.get("suggestion") or {}).get("message"))
    nominated = _to_text(diagnosis.get("nominatedNode"))
    return FailureMessage(text, len(nodes), nodes=nodes, error="" if nodes else error or text, nominated=nominated)


def _list_failed(details: Any) -> list[tuple[str, list[str]]]:
    groups = [group for group in details if isinstance(group, dict)] if isinstance(details, list) else []
    return [
        (_to_text(group.get("reason")), [_to_text(name) for name in group.get("failedNodes") or ()]) for group in groups
    ]


def _to_text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _parse_number(digits: str) -> int:
    return min(int(digits[:12]), MAX_COUNT)
