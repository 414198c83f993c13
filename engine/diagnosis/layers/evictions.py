"""Places that were taken from a pod: preemption by a scheduler, eviction through the API, taints, a node that is gone.

Kubernetes writes the condition DisruptionTarget on such a pod before it ends; schedulers write an event Preempted or
Evict. The event names the winner by its UID (kube-scheduler since 1.27) or by namespace and name.
"""

import re
from collections.abc import Iterator
from typing import Final

from engine.diagnosis.facts import DiagnosisFacts, Evidence, PodOnCluster
from engine.diagnosis.layers.statements import Statement, iterate_events
from engine.diagnosis.outcome import FoundObstacle, Word
from engine.diagnosis.reclaimed_places import describe_reclaim, is_reclaim, is_reclaim_by_yunikorn, names_pod
from engine.diagnosis.texts import load_texts, write_phrase
from engine.diagnosis.wording import quote, shorten_list, to_condition_evidence
from engine.snapshot import kinds
from runtime.kubernetes.object_fields import Fields, get_text
from schemas.answers.diagnosis import InBothLanguages
from schemas.events import Condition

_CONDITION: Final = "DisruptionTarget"
_PREEMPTED: Final = "PreemptionByScheduler"
_PREEMPTION: Final = "Preempted"
_NODE_TAINT: Final = "TaintManagerEviction"
_TAINT_MANAGERS: Final = (_NODE_TAINT, "DeviceTaintManagerEviction")
"""Events of the controllers that evict pods for taints."""
_WINNER: Final = re.compile(r"Preempted by (?:a pod|(?:pod |podgroup )?(?P<winner>\S+))(?: on node (?P<node>\S+))?")
_EVENT_CONDITION: Final = "Preempted"
"""Condition with which `ingest.readers.kube` observes a pod that an event names."""
_EVICTED: Final = "Evict"
_OF_YUNIKORN: Final = "Informational"


def find_loss(facts: DiagnosisFacts, pod: PodOnCluster) -> FoundObstacle | None:
    """Find how a pod that has failed or is being deleted lost its place; None for others."""
    if pod.phase == "Succeeded" or not (pod.phase == "Failed" or pod.is_being_deleted):
        return None
    condition = pod.find_condition(_CONDITION)
    condition = condition if condition and condition.status == "True" else pod.find_condition(_EVENT_CONDITION)
    event = next(iterate_events(facts, _PREEMPTION), None)
    is_preempted = condition is not None and condition.reason in (_PREEMPTED, _EVENT_CONDITION)
    if reclaim := _find_reclaim(facts) or _find_recorded_reclaim(pod):
        scheduler = reclaim.evidence.reported_by or pod.scheduler
        return describe_reclaim(scheduler, pod.node, reclaim.text, reclaim.evidence, describe_next_pod(pod))
    if event or is_preempted:
        return _describe_preemption(facts, pod, condition, event)
    return _describe_disruption(pod, condition) if condition else None


def _find_recorded_reclaim(pod: PodOnCluster) -> Statement | None:
    condition = pod.find_condition(_EVENT_CONDITION)
    if condition is None or not is_reclaim(condition.message):
        return None
    return Statement(condition.message, to_condition_evidence(pod, condition), condition.reason)


def _describe_preemption(
    facts: DiagnosisFacts, pod: PodOnCluster, condition: Condition | None, event: Statement | None
) -> FoundObstacle:
    # Kubernetes' own condition names no winner; that of a recorded event does.
    named = pod.find_condition(_EVENT_CONDITION) or condition
    note = event.text if event else named.message if named else ""
    match = _WINNER.match(note)
    winner = _find_winner(facts, (match["winner"] if match else "") or "")
    words: dict[str, Word] = {
        "scheduler": (event.evidence.reported_by if event else "")
        or pod.scheduler
        or write_phrase("scheduler_unnamed"),
        "node": pod.node or (match and match["node"]) or "?",
        "again": describe_next_pod(pod),
        "winner": winner[0],
        "words": quote(note),
    }
    clauses = ["winner"] if winner[0] else []
    priority = (pod.spec or {}).get("priority")
    if isinstance(priority, int) and winner[1] is not None:
        words |= {"priority": priority, "winner_priority": winner[1]}
        clauses.append("priorities")
    evidence = [event.evidence] if event else []
    evidence += [to_condition_evidence(pod, condition)] if condition else []
    words["at"] = next(filter(None, map(_format_time, evidence)), "")
    clauses += ["at"] if words["at"] else []
    return FoundObstacle("Preempted", words, nodes=[pod.node] if pod.node else (), evidence=evidence, clauses=clauses)


def describe_next_pod(pod: PodOnCluster) -> InBothLanguages:
    """Describe how another pod takes the place of one that nobody tries again.

    A pod of which only events or a row of a table were read has no containers, and nobody knows its owner.
    """
    if pod.owners:
        return write_phrase("again_by_owner", owner=pod.owners[0])
    is_read = pod.spec is None or bool(pod.spec.get("containers"))
    return write_phrase("again_by_hand" if is_read else "again_by_either")


def find_winner_uid(pod: PodOnCluster) -> str:
    """Find the UID of the pod that took the place, by a recorded event; empty where none names one."""
    condition = pod.find_condition(_EVENT_CONDITION)
    match = _WINNER.match(condition.message) if condition else None
    return (match["winner"] or "") if match else ""


def _find_winner(facts: DiagnosisFacts, name: str) -> tuple[str, int | None]:
    """Find the pod that took the place by its UID or name: its name and priority."""
    for entry in facts.objects.select(kinds.POD) if facts.objects and name else ():
        full_name = f"{get_text(entry, 'metadata', 'namespace')}/{get_text(entry, 'metadata', 'name')}"
        if name in (get_text(entry, "metadata", "uid"), full_name):
            return full_name, _get_priority(entry)
    if name and facts.winner:
        return facts.winner
    # A UID without its pod names nobody.
    return (name, None) if "/" in name else ("", None)


def _get_priority(pod: Fields) -> int | None:
    spec = pod.get("spec")
    priority = spec.get("priority") if isinstance(spec, dict) else None
    return priority if isinstance(priority, int) else None


def find_loss_of_missing(facts: DiagnosisFacts) -> FoundObstacle | None:
    """Find how a pod that does not exist any more lost its place: by the events that are left, or its last state."""
    event = _find_reclaim(facts) or next(iterate_events(facts, _PREEMPTION, *_TAINT_MANAGERS), None)
    last = facts.pod if facts.pod and facts.pod.conditions else None
    if event is None and last is None:
        return None
    if event and event.reason in _TAINT_MANAGERS:
        return _describe_taint(facts, event)
    source = event.evidence if event else facts.pod.source if facts.pod else Evidence("pod", "", None)
    pod = PodOnCluster(
        source,
        phase="Failed",
        node=last.node if last else "",
        scheduler=event.evidence.reported_by if event else last.scheduler if last else "",
        conditions=last.conditions if last else (),
    )
    obstacle = find_loss(facts, pod)
    return obstacle._replace(words={**obstacle.words, "again": write_phrase("again_if_owned")}) if obstacle else None


def _describe_taint(facts: DiagnosisFacts, event: Statement) -> FoundObstacle:
    """Describe an eviction for a taint with the effect NoExecute, of the node or of a device that the pod held."""
    rules = facts.objects.select(kinds.DEVICE_TAINT_RULE) if facts.objects else []
    names = [get_text(rule, "metadata", "name") for rule in rules if _evicts(rule)]
    if event.reason == _NODE_TAINT:
        cause = write_phrase("disrupted_DeletionByTaintManager")
    elif names:
        cause = write_phrase("disrupted_DeviceTaintRule", rules=shorten_list(names))
    else:
        cause = write_phrase("disrupted_DeviceTaint")
    node = facts.attempt.chosen if facts.attempt else None
    words: dict[str, Word] = {
        "node": node or "?", "words": quote(f"{event.reason}: {event.text}"), "cause": cause,
        "again": write_phrase("again_if_owned"), "at": _format_time(event.evidence),
    }  # fmt: skip
    clauses = ["at"] if words["at"] else []
    return FoundObstacle(
        "EvictedFromNode", words, nodes=[node] if node else (), evidence=[event.evidence], clauses=clauses
    )


def _evicts(rule: Fields) -> bool:
    return get_text(rule, "spec", "taint", "effect") == "NoExecute"


def _format_time(evidence: Evidence) -> str:
    return evidence.time.strftime("%H:%M:%S UTC") if evidence.time else ""


def _describe_disruption(pod: PodOnCluster, condition: Condition) -> FoundObstacle:
    has_phrase = f"disrupted_{condition.reason}" in load_texts().phrases
    cause = write_phrase(f"disrupted_{condition.reason}" if has_phrase else "disrupted")
    words: dict[str, Word] = {
        "node": pod.node or "?",
        "words": quote(f"{condition.reason}: {condition.message}"),
        "cause": cause,
        "again": describe_next_pod(pod),
    }
    evidence: list[Evidence] = [to_condition_evidence(pod, condition)]
    words["at"] = _format_time(evidence[0])
    clauses = ["at"] if words["at"] else []
    nodes = [pod.node] if pod.node else []
    return FoundObstacle("EvictedFromNode", words, nodes=nodes, evidence=evidence, clauses=clauses)


def _find_reclaim(facts: DiagnosisFacts) -> Statement | None:
    """Find the event of the scheduler that took the pod's place for a queue or a group; None if there is none."""
    for event in iterate_events(facts, _EVICTED, _OF_YUNIKORN):
        if event.reason == _EVICTED or is_reclaim_by_yunikorn(event.text):
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
