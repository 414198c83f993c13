"""YuniKorn's words on a pod: its queue and its user's quota, its gang's placeholders, its nodes, and its binds.

YuniKorn writes no condition that says why, and no event of its own for a refusal: its latest event about the pod is the
answer, unless a later one says that there is room now. The texts are those of its core and of its k8shim.
"""

import re
from collections.abc import Callable
from typing import Final

from engine.diagnosis.facts import DiagnosisFacts
from engine.diagnosis.layers.statements import Statement, iterate_events, read_amounts, to_decimal
from engine.diagnosis.outcome import FoundObstacle, Word
from engine.diagnosis.texts import write_phrase
from engine.diagnosis.wording import quote, shorten_list
from engine.snapshot.quantity import CPU, format_amount

SCHEDULER: Final = "yunikorn"
_REASONS: Final = (
    "Informational", "PodUnschedulable", "GangScheduling", "FailedScheduling", "SchedulingFailed", "TaskRejected",
    "TaskFailed", "ApplicationFailed", "PodBindFailure", "AssumePodFailed",
)  # fmt: skip
_REJECTIONS: Final = ("FailedScheduling", "SchedulingFailed", "TaskRejected", "TaskFailed", "ApplicationFailed")
"""Reasons of events with which YuniKorn gives a pod or its application up."""
_CLEARED: Final = re.compile(r"has become schedulable in queue|fits in the available user quota")
_QUEUE: Final = re.compile(
    r"does not fit in queue '(?P<queue>[^']+)' "
    r"\(requested map\[(?P<asked>[^\]]*)\], available map\[(?P<free>[^\]]*)\]\)"
)
_SKIPPED: Final = re.compile(r"is skipped from scheduling because the queue quota has been exceed")
_NODES: Final = re.compile(r"Unschedulable request '[^']*': (?P<reasons>.*)", re.DOTALL)
_REQUIRED_NODE: Final = re.compile(r"Unschedulable request '[^']*' with required node '(?P<node>[^']+)'")
_USER: Final = re.compile(
    r"exceeds the available user quota"
    r"(?: \((?P<words>requested map\[(?P<asked>[^\]]*)\], available map\[(?P<free>[^\]]*)\])\))?"
)
_PLACEHOLDERS: Final = re.compile(r"Application (?P<application>\S+) placeholder has been timed out")
_RESUMED: Final = re.compile(r"Application (?P<application>\S+) resuming as non-gang application")
_TOO_SMALL: Final = re.compile(
    r"Task group '(?P<group>[^']*)' in application '(?P<application>[^']*)': allocation resources '(?:map\[)?"
    r"(?P<asked>[^'\]]*)\]?' are not matching placeholder '(?:map\[)?(?P<held>[^'\]]*)\]?'"
)
_NOT_BOUND: Final = re.compile(r"Failed to bind \S+ to node (?P<node>[^\s,]+)")
_LABELS: Final = ("yunikorn.apache.org/queue", "queue")

Describe = Callable[[DiagnosisFacts, re.Match[str], Statement], FoundObstacle]


def find_in_events(facts: DiagnosisFacts) -> FoundObstacle | None:
    """Find YuniKorn's latest word on the pod, unless a later event says that there is room now."""
    for event in iterate_events(facts, *_REASONS):
        if event.evidence.reported_by != SCHEDULER:
            continue
        if _CLEARED.search(event.text):
            return None
        if obstacle := describe_request(facts, event):
            return obstacle
        if event.reason in _REJECTIONS:
            words: dict[str, Word] = {"scheduler": "YuniKorn", "words": quote(event.text)}
            return FoundObstacle("RequestRejected", words, evidence=[event.evidence])
    return None


def describe_request(facts: DiagnosisFacts, statement: Statement) -> FoundObstacle | None:
    """Describe YuniKorn's words about a request; None for others."""
    for pattern, describe in _TEXTS:
        if match := pattern.search(statement.text):
            return describe(facts, match, statement)
    return None


def _describe_skipped(facts: DiagnosisFacts, _match: re.Match[str], statement: Statement) -> FoundObstacle:
    """Describe what older releases write about a full queue, without its name and numbers."""
    labels = facts.pod.labels if facts.pod else {}
    queue = next((labels[name] for name in _LABELS if name in labels), "")
    words: dict[str, Word] = {"queue": queue}
    return FoundObstacle("YunikornQueueFull", words, evidence=[statement.evidence], clauses=["queue"] if queue else [])


def _describe_nodes(_facts: DiagnosisFacts, match: re.Match[str], statement: Statement) -> FoundObstacle:
    reasons = "; ".join(part for reason in match["reasons"].split(";") if (part := reason.strip()))
    return FoundObstacle("RequestUnschedulable", {"reasons": quote(reasons)}, evidence=[statement.evidence])


def _describe_required_node(_facts: DiagnosisFacts, match: re.Match[str], statement: Statement) -> FoundObstacle:
    words: dict[str, Word] = {"node": match["node"]}
    return FoundObstacle("RequiredNodeFull", words, nodes=[match["node"]], evidence=[statement.evidence])


def _describe_queue(_facts: DiagnosisFacts, match: re.Match[str], statement: Statement) -> FoundObstacle:
    words, clauses = _describe_amounts(match)
    words |= {"queue": match["queue"], "system": "YuniKorn", "kind": write_phrase("quota_queue")}
    return FoundObstacle("QueueFull", words, evidence=[statement.evidence], clauses=clauses)


def _describe_user(_facts: DiagnosisFacts, match: re.Match[str], statement: Statement) -> FoundObstacle:
    words, clauses = _describe_amounts(match) if match["words"] else ({}, [])
    words["words"] = quote(match["words"] or statement.text)
    clauses = clauses or ["words"]
    return FoundObstacle("UserQuotaFull", words, evidence=[statement.evidence], clauses=clauses)


def _describe_amounts(match: re.Match[str]) -> tuple[dict[str, Word], list[str]]:
    """Describe the resources that lack, devices first, as words and clauses."""
    request, free = (read_amounts(match[name]) for name in ("asked", "free"))
    # A resource that the queue does not limit is missing from what is available.
    lacking = [name for name in request if name in free and to_decimal(free[name]) < to_decimal(request[name])]
    lacking.sort(key=lambda name: "/" not in name)
    resource = lacking[0] if lacking else ""
    words: dict[str, Word] = {
        "resource": resource or "?",
        "asked": _format_amount(resource, request.get(resource, "?")),
        "free": _format_amount(resource, free.get(resource, "?")),
        "others": shorten_list(lacking[1:]),
    }
    return words, [*(["free"] if resource else []), *(["others"] if lacking[1:] else [])]


def _format_amount(resource: str, amount: str) -> str:
    """Format an amount of YuniKorn, which counts CPU as ``vcore`` in thousandths, and memory in bytes."""
    return format_amount({"vcore": CPU}.get(resource, resource), int(amount)) if amount.isdecimal() else amount


def _describe_placeholders(_facts: DiagnosisFacts, match: re.Match[str], statement: Statement) -> FoundObstacle:
    words: dict[str, Word] = {"application": match["application"]}
    return FoundObstacle("PlaceholdersTimedOut", words, evidence=[statement.evidence])


def _describe_resumed(facts: DiagnosisFacts, match: re.Match[str], statement: Statement) -> FoundObstacle:
    return _describe_placeholders(facts, match, statement)._replace(clauses=["resumed"])


def _describe_small_placeholder(_facts: DiagnosisFacts, match: re.Match[str], statement: Statement) -> FoundObstacle:
    request, held = (read_amounts(match[name]) for name in ("asked", "held"))
    larger = [name for name in request if to_decimal(request[name]) > to_decimal(held.get(name, "0"))] or list(request)
    words: dict[str, Word] = {
        "group": match["group"],
        "application": match["application"],
        "asked": ", ".join(f"{name} {_format_amount(name, request[name])}" for name in larger),
        "held": ", ".join(f"{name} {_format_amount(name, held.get(name, '0'))}" for name in larger),
    }
    return FoundObstacle("PlaceholderTooSmall", words, evidence=[statement.evidence])


def _describe_failed_bind(_facts: DiagnosisFacts, match: re.Match[str], statement: Statement) -> FoundObstacle:
    words: dict[str, Word] = {"scheduler": "YuniKorn", "node": match["node"], "words": quote(statement.text)}
    return FoundObstacle("BindTriedAgain", words, nodes=[match["node"]], evidence=[statement.evidence])


_TEXTS: Final[tuple[tuple[re.Pattern[str], Describe], ...]] = (
    (_SKIPPED, _describe_skipped),
    (_NODES, _describe_nodes),
    (_REQUIRED_NODE, _describe_required_node),
    (_QUEUE, _describe_queue),
    (_USER, _describe_user),
    (_PLACEHOLDERS, _describe_placeholders),
    (_RESUMED, _describe_resumed),
    (_TOO_SMALL, _describe_small_placeholder),
    (_NOT_BOUND, _describe_failed_bind),
)
