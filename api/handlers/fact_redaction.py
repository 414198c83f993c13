"""Redaction of the facts of a diagnosis for callers who may not list the pods of all namespaces.

Objects of other namespaces leave the facts before anything is worded, so no text can name them; what schedulers and
controllers wrote about the pod's own namespace keeps its words without the names of other pods.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from api.answers.fact_collector import CollectedFacts
from engine.diagnosis.facts import DiagnosisFacts
from engine.diagnosis.outcome import FoundObstacle, JudgedPod, Word
from engine.snapshot.case_objects import EVENT_KINDS, CaseObjects
from engine.summaries.named_pods import hide_other_pods
from runtime.kubernetes.object_fields import Fields, get_object, iterate_objects
from schemas.answers.diagnosis import InBothLanguages

Hide = Callable[[str], str]


def hide_others(collected: CollectedFacts) -> CollectedFacts:
    """Hide pods of other namespaces in facts about the pod; return the same facts if there are none."""
    facts = collected.facts
    hide = partial(hide_other_pods, namespace=facts.namespace)
    hidden_facts = _hide_in_facts(facts, hide)
    judged = _hide_in_judged(collected.judged, hide) if collected.judged else None
    if hidden_facts is facts and judged == collected.judged:
        return collected
    return CollectedFacts(hidden_facts, judged)


def _hide_in_facts(facts: DiagnosisFacts, hide: Hide) -> DiagnosisFacts:
    recorded, conditions = list(facts.events or ()), list(facts.pod.conditions if facts.pod else ())
    events = [event._replace(words=hide(event.words)) for event in recorded]
    changed = [condition.model_copy(update={"message": hide(condition.message)}) for condition in conditions]
    objects = _hide_in_objects(facts.objects, facts.namespace, hide) if facts.objects else None
    if (events, changed) == (recorded, conditions) and objects is facts.objects:
        return facts
    pod = facts.pod._replace(conditions=changed) if facts.pod else None
    return replace(facts, events=facts.events and events, pod=pod, objects=objects)


def _hide_in_objects(objects: CaseObjects, namespace: str, hide: Hide) -> CaseObjects:
    """Keep the objects of the namespace and of the cluster; return the same objects if there are no others."""
    tables = {
        kind: {key: _hide_in_object(kind, entry, hide) for key, entry in table.items() if key[0] in ("", namespace)}
        for kind, table in objects.tables.items()
    }
    is_same = all(
        len(table) == len(tables[kind]) and all(tables[kind][key] is entry for key, entry in table.items())
        for kind, table in objects.tables.items()
    )
    return objects if is_same else CaseObjects(tables, objects.unread, objects.listed)


def _hide_in_object(kind: str, entry: Fields, hide: Hide) -> Fields:
    """Hide others in the words of an event or of the conditions; return the same object if they name none."""
    if kind in EVENT_KINDS:
        return _hide_in_fields(entry, ("note", "message"), hide)
    status = get_object(entry, "status")
    conditions = list(iterate_objects(status, "conditions"))
    hidden = [_hide_in_fields(condition, ("message",), hide) for condition in conditions]
    return entry if hidden == conditions else {**entry, "status": {**status, "conditions": hidden}}


def _hide_in_fields(entry: Fields, names: tuple[str, ...], hide: Hide) -> Fields:
    texts: Mapping[str, Any] = {name: entry[name] for name in names if isinstance(entry.get(name), str)}
    hidden = {name: hide(text) for name, text in texts.items()}
    return entry if hidden == texts else {**entry, **hidden}


def _hide_in_judged(judged: JudgedPod, hide: Hide) -> JudgedPod:
    return judged._replace(obstacles=[_hide_in_obstacle(obstacle, hide) for obstacle in judged.obstacles])


def _hide_in_obstacle(obstacle: FoundObstacle, hide: Hide) -> FoundObstacle:
    words = {name: _hide_in_word(word, hide) for name, word in obstacle.words.items()}
    evidence = [source._replace(words=hide(source.words)) for source in obstacle.evidence]
    return obstacle._replace(words=words, evidence=evidence)


def _hide_in_word(word: Word, hide: Hide) -> Word:
    if isinstance(word, InBothLanguages):
        return InBothLanguages(en=hide(word.en), zh=hide(word.zh))
    return hide(word) if isinstance(word, str) else word
