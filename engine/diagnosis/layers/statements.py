"""Texts about a pod, with their sources: the last refusal of its scheduler, and the events by their reasons."""

import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Final, NamedTuple

from engine.diagnosis.facts import DiagnosisFacts, Evidence
from engine.diagnosis.wording import to_attempt_evidence, to_bind_evidence, to_condition_evidence

_HEAD: Final = re.compile(r"^\d+/\d+ nodes are available: ")
_TAIL: Final = re.compile(r"\.? (?:no new claims to deallocate, |still not schedulable, )?preemption: .*", re.DOTALL)
KAI_QUOTA_REASONS: Final = ("NonPreemptibleOverQuota", "OverLimit", "OverCapacity")
"""Reasons of KAI for a queue that has no room for the pod."""
REFUSALS: Final = frozenset(("FailedScheduling", "Unschedulable", *KAI_QUOTA_REASONS))
"""Reasons of events that end an attempt."""
_AMOUNT: Final = re.compile(
    r"([A-Za-z0-9./_-]+)\"?: ?(?:\{\{(\d+) -?\d+\} \{[^}]*\} [^}]*\}|\"?([0-9][0-9A-Za-z.]*)\"?)"
)
"""An amount in a map, with or without the parts of a quantity."""


class Statement(NamedTuple):
    """A text about the pod."""

    text: str
    evidence: Evidence
    reason: str = ""
    """Reason of the event or condition."""


def find_refusal(facts: DiagnosisFacts) -> Statement | None:
    """Find the last words of a scheduler that found no node for the pod."""
    attempt = facts.attempt
    if attempt:
        words = attempt.scheduler_message or attempt.error
        has_passed = attempt.chosen is not None or attempt.fit_nodes
        return Statement(words, to_attempt_evidence(attempt)) if words and (attempt.error or not has_passed) else None
    condition = facts.pod.find_condition("PodScheduled") if facts.pod else None
    if facts.pod and condition and condition.status == "False" and condition.message:
        return Statement(condition.message, to_condition_evidence(facts.pod, condition), condition.reason)
    return next(iterate_events(facts, *REFUSALS), None)


def find_bind_failure(facts: DiagnosisFacts) -> Statement | None:
    """Find the words of a bind that failed, or of a scheduler that gave a chosen node up."""
    attempt = facts.attempt
    if attempt and attempt.bind and not attempt.bind.bound:
        return Statement(attempt.bind.error, to_bind_evidence(attempt)[0])
    return find_refusal(facts)


def iterate_events(facts: DiagnosisFacts, *reasons: str) -> Iterator[Statement]:
    """Iterate over the events about the pod with one of these reasons, the latest first."""
    for event in facts.events or ():
        reason, _, note = event.words.partition(": ")
        if reason in reasons:
            yield Statement(note, event, reason)


def has_spoken(facts: DiagnosisFacts, reporter: str) -> bool:
    """Tell whether a scheduler has written an event about the pod: then it runs, and looks at it."""
    return any(event.reported_by == reporter for event in facts.events or ())


def strip_counts(text: str) -> str:
    """Strip a refusal before nodes of what kube-scheduler writes around it: the number of nodes, and preemption."""
    return _TAIL.sub("", _HEAD.sub("", text))


def read_amounts(listed: str) -> dict[str, str]:
    """Read amounts by resource: ``map[cpu:8 memory:64Gi]``."""
    return {name: integer or amount for name, integer, amount in _AMOUNT.findall(listed)}


def to_decimal(amount: str) -> Decimal:
    """Convert an amount without a suffix; others count as 0."""
    try:
        return Decimal(amount)
    except InvalidOperation:
        return Decimal(0)
