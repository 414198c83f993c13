"""Redaction of the facts of a diagnosis for callers who may not list the pods of all namespaces.

Objects of other namespaces leave the facts before anything is worded, so no text can name them; what schedulers and
controllers wrote about the pod's own namespace keeps its words without the names of other pods.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from api.answers.fact_collector import CollectedFacts
from engine.diagnosis.facts import DiagnosisFacts
from engine.diagnosis.outcome import FoundObstacle, JudgedPod, Word
from engine.snapshot.case_objects import EVENT_KINDS, CaseObjects
from engine.summaries.named_pods import hide_other_pods
from runtime.kubernetes.object_fields import Fields, get_object, iterate_objects
from schemas.answers.diagnosis import InBothLanguages

Hide = Callable[[str], str]
HIDDEN_HOLDER: Final = InBothLanguages(en="in use by a claim of another namespace", zh="被其他命名空间的声明占用")
"""Replacement for a claim that the caller may not read."""


def hide_others(collected: CollectedFacts) -> CollectedFacts:
    """Hide pods of other namespaces in facts about the pod; return the same facts if there are none."""
    facts = collected.facts
    hide = partial(hide_other_pods, namespace=facts.namespace)
    hidden_facts = _hide_in_facts(facts, hide)
    judged = _hide_in_judged(collected.judged, facts.namespace, hide) if collected.judged else None
    if hidden_facts is facts and judged == collected.judged:
        return collected
    return CollectedFacts(hidden_facts, judged)


def _hide_in_facts(facts: DiagnosisFacts, hide: Hide) -> DiagnosisFacts:
    recorded, conditions = list(facts.events or ()), list(facts.pod.conditions if facts.pod else ())
    events = [event._replace(words=hide(event.words)) for event in recorded]
    changed = [condition.model_copy(update={"message": hide(condition.message)}) for condition in conditions]
    objects = hide_in_objects(facts.objects, facts.namespace, hide) if facts.objects else None
    if (events, changed) == (recorded, conditions) and objects is facts.objects:
        return facts
    pod = facts.pod._replace(conditions=changed) if facts.pod else None
    return replace(facts, events=facts.events and events, pod=pod, objects=objects)


def hide_in_objects(objects: CaseObjects, namespace: str, hide: Hide) -> CaseObjects:
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


def _hide_in_judged(judged: JudgedPod, namespace: str, hide: Hide) -> JudgedPod:
    obstacles = [_hide_holders(obstacle, namespace) for obstacle in judged.obstacles]
    return judged._replace(obstacles=[_hide_in_obstacle(obstacle, hide) for obstacle in obstacles])


def _hide_holders(obstacle: FoundObstacle, namespace: str) -> FoundObstacle:
    """Hide claims of other namespaces that hold devices, with the names of their pods; otherwise the same obstacle."""
    hidden: dict[str, InBothLanguages] = {}
    devices = []
    for of_reason in obstacle.devices:
        examples = []
        for example in of_reason.examples:
            if example.holder_namespace not in ("", namespace):
                hidden[example.text.en] = HIDDEN_HOLDER
                example = example._replace(text=HIDDEN_HOLDER)
            examples.append(example)
        devices.append(of_reason._replace(examples=examples))
    if not hidden:
        return obstacle
    words = {name: _replace_word(word, hidden) for name, word in obstacle.words.items()}
    return obstacle._replace(words=words, devices=devices)


def _replace_word(word: Word, replaced: Mapping[str, InBothLanguages]) -> Word:
    return replaced.get(word.en, word) if isinstance(word, InBothLanguages) else word


def _hide_in_obstacle(obstacle: FoundObstacle, hide: Hide) -> FoundObstacle:
    words = {name: _hide_in_word(word, hide) for name, word in obstacle.words.items()}
    evidence = [source._replace(words=hide(source.words)) for source in obstacle.evidence]
    devices = [
        of_reason._replace(
            examples=[example._replace(text=_hide_in_text(example.text, hide)) for example in of_reason.examples]
        )
        for of_reason in obstacle.devices
    ]
    return obstacle._replace(words=words, evidence=evidence, devices=devices)


def _hide_in_word(word: Word, hide: Hide) -> Word:
    if isinstance(word, InBothLanguages):
        return _hide_in_text(word, hide)
    return hide(word) if isinstance(word, str) else word


def _hide_in_text(text: InBothLanguages, hide: Hide) -> InBothLanguages:
    return InBothLanguages(en=hide(text.en), zh=hide(text.zh))
