"""Places that a scheduler of queues took from a pod: for another queue, for a higher priority, or for its own order.

Volcano and KAI call it Evict. KAI writes the event on the group of the pod and names the pod in the text, with what
both queues use, what their quota is, and what their fair share is. YuniKorn writes an event "Informational".
"""

import re
from collections.abc import Iterator
from typing import Final

from engine.diagnosis.facts import DiagnosisFacts, Evidence
from engine.diagnosis.layers.statements import Statement, iterate_events
from engine.diagnosis.outcome import FoundObstacle, Word
from engine.diagnosis.texts import write_phrase
from engine.diagnosis.wording import NOTHING, join_phrases, quote
from schemas.answers.diagnosis import InBothLanguages

_EVICTED: Final = "Evict"
_OF_YUNIKORN: Final = "Informational"
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


def find_reclaim(facts: DiagnosisFacts) -> Statement | None:
    """Find the event of the scheduler that took the pod's place for a queue or a group; None if there is none."""
    for event in iterate_events(facts, _EVICTED, _OF_YUNIKORN):
        if event.reason == _EVICTED or _YUNIKORN.search(event.text):
            return event
    return next(_iterate_events_of_groups(facts), None)


def _iterate_events_of_groups(facts: DiagnosisFacts) -> Iterator[Statement]:
    """Iterate over the evictions of the pod that KAI has written on groups, those of one group the latest first."""
    objects = facts.objects
    if objects is None:
        return
    for namespace, name in objects.list_event_subjects("PodGroup"):
        for event in objects.select_events("PodGroup", name, namespace) if namespace == facts.namespace else ():
            if event.reason == _EVICTED and names_pod(event.note, facts.namespace, facts.name):
                path = f"PodGroup {namespace}/{name}"
                words = f"{event.reason}: {event.note}"
                yield Statement(event.note, Evidence("event", path, event.time, event.reporter, words=words), _EVICTED)


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
