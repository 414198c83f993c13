"""A scheduler's words about a place that it took from a pod: for another queue, a higher priority, or its own order.

Volcano and KAI call it Evict. KAI names the pod in the text, with what both queues use, what their quota is, and what
their fair share is. YuniKorn writes an event "Informational".
"""

import re
from typing import Final

from engine.diagnosis.evidence import Evidence
from engine.diagnosis.outcome import FoundObstacle, Word
from engine.diagnosis.texts import write_phrase
from engine.diagnosis.wording import NOTHING, join_phrases, quote
from schemas.answers.diagnosis import InBothLanguages

_KAI_VICTIM: Final = re.compile(
    r"Pod (?P<pod>[^\s/]+/\S+) was preempted (?P<rest>.*)|"
    r"Workload doesn't (?:meet|have) the minimum required number of pods.*?, "
    r"evicting remaining pod: (?P<last>[^\s/]+/\S+)",
    re.DOTALL,
)
_KAI_WINNER: Final = re.compile(r"by (?P<rank>higher priority )?workload (?P<winner>[^\s/]+/[^\s]*[^\s.])")
_KAI_QUEUE: Final = re.compile(
    r"(?P<queue>[^.<>\s][^.<>]*?) uses <GPU: (?P<used>[^,>]+)[^>]*> with a quota of <GPU: (?P<quota>[^,>]+)[^>]*>, "
    r"fair-share of <GPU: (?P<share>[^,>]+)[^>]*>"
)
_CONSOLIDATED: Final = "rescheduled due to bin packing"
_VOLCANO: Final = re.compile(r"because of (?P<action>reclaim|preempt)")
_YUNIKORN: Final = re.compile(r"Preempted by \S+ from application (?P<application>\S+) in (?P<queue>\S+)")


def names_pod(text: str, namespace: str, name: str) -> bool:
    """Tell whether KAI's text is about the eviction of this pod."""
    match = _KAI_VICTIM.match(text)
    return match is not None and f"{namespace}/{name}" in (match["pod"], match["last"])


def describe_reclaim(scheduler: str, node: str, text: str, evidence: Evidence, again: InBothLanguages) -> FoundObstacle:
    """Describe a place that was taken from a pod on ``node``, which may be empty. ``again``: how another pod comes."""
    shares = _describe_shares(text)
    words: dict[str, Word] = {
        "scheduler": scheduler,
        "place": write_phrase("place_on_node", node=node) if node else write_phrase("place"),
        "cause": _describe_cause(text),
        "shares": shares or NOTHING,
        "again": again,
        "at": evidence.time.strftime("%H:%M:%S UTC") if evidence.time else "",
    }
    clauses = [*(["at"] if words["at"] else []), *(["shares"] if shares else [])]
    nodes = [node] if node else []
    return FoundObstacle("ReclaimedByScheduler", words, nodes=nodes, evidence=[evidence], clauses=clauses)


def _describe_cause(text: str) -> InBothLanguages:
    """Describe for whom or what a scheduler took the place; an unknown text is quoted."""
    if match := _YUNIKORN.search(text):
        return write_phrase("reclaimed_for_application", **match.groupdict())
    if match := _VOLCANO.search(text):
        return write_phrase(f"reclaimed_{match['action']}")
    victim = _KAI_VICTIM.match(text)
    if victim and victim["last"]:
        return write_phrase("reclaimed_gang")
    if _CONSOLIDATED in text:
        return write_phrase("reclaimed_consolidation")
    if winner := _KAI_WINNER.search(text):
        phrase = "reclaimed_for_priority" if winner["rank"] else "reclaimed_for_share"
        return write_phrase(phrase, winner=winner["winner"])
    return write_phrase("reclaimed", words=quote(text))


def _describe_shares(text: str) -> InBothLanguages | None:
    """Describe what the queues use, with their quotas and fair shares; None for a text without them."""
    queues = [write_phrase("queue_share", **match.groupdict()) for match in _KAI_QUEUE.finditer(_cut_beginning(text))]
    return join_phrases(queues) if queues else None


def _cut_beginning(text: str) -> str:
    """Cut off the sentence about the pod, before those about the queues."""
    match = _KAI_WINNER.search(text)
    return text[match.end() :].lstrip(". ") if match else text


def is_reclaim(text: str) -> bool:
    """Tell whether the words of a recorded preemption are those of a scheduler of queues."""
    return bool(_KAI_VICTIM.match(text) or _VOLCANO.search(text) or _YUNIKORN.search(text))


def is_reclaim_by_yunikorn(text: str) -> bool:
    """Tell whether the words of an event "Informational" are about a place that was taken."""
    return bool(_YUNIKORN.search(text))
