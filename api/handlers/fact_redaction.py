"""Redaction of the facts of a diagnosis for callers who may not list the pods of all namespaces.

Objects of other namespaces leave the facts before anything is worded, so no text can name them; what schedulers and
controllers wrote about the pod's own namespace keeps its words without the names of other pods.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from api.answers.fact_collector import CollectedFacts
from engine.diagnosis.outcome import DevicesOfReason, FoundObstacle, JudgedPod, Word
from engine.snapshot.case_objects import EVENT_KINDS, CaseObjects
from engine.summaries.named_pods import Hide, hide_other_pods, hide_texts
from runtime.kubernetes.object_fields import Fields, get_object
from schemas.answers.diagnosis import InBothLanguages

HIDDEN_HOLDER: Final = InBothLanguages(en="in use by a claim of another namespace", zh="被其他命名空间的声明占用")
"""Replacement for a claim that the caller may not read."""


def hide_others(collected: CollectedFacts) -> CollectedFacts:
    """Hide pods of other namespaces in facts about the pod; return the same facts if there are none."""
    facts, judged = collected.facts, collected.judged
    hide = partial(hide_other_pods, namespace=facts.namespace)
    if facts.objects:
        objects = hide_in_objects(facts.objects, facts.namespace, hide)
        facts = facts if objects is facts.objects else replace(facts, objects=objects)
    if judged:
        judged = _hide_in_judged(judged, facts.namespace)
    if facts.gang and (obstacle := _hide_holders(facts.gang.obstacle, facts.namespace)) is not facts.gang.obstacle:
        facts = replace(facts, gang=facts.gang._replace(obstacle=obstacle))
    is_same = facts is collected.facts and judged is collected.judged
    return hide_texts(collected if is_same else collected._replace(facts=facts, judged=judged), hide)


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
        words = {name: entry[name] for name in ("note", "message") if name in entry}
        hidden_words = hide_texts(words, hide)
        return entry if hidden_words is words else {**entry, **hidden_words}
    status = get_object(entry, "status")
    before: Any = status.get("conditions")
    conditions: Any = hide_texts(before, hide)
    return entry if conditions is before else {**entry, "status": {**status, "conditions": conditions}}


def _hide_in_judged(judged: JudgedPod, namespace: str) -> JudgedPod:
    obstacles = [_hide_holders(obstacle, namespace) for obstacle in judged.obstacles]
    is_same = all(after is before for after, before in zip(obstacles, judged.obstacles, strict=True))
    return judged if is_same else judged._replace(obstacles=obstacles)


def _hide_holders(obstacle: FoundObstacle, namespace: str) -> FoundObstacle:
    """Hide claims of other namespaces that hold devices, with the names of their pods; otherwise the same obstacle."""
    hidden: dict[str, InBothLanguages] = {}
    devices = list[DevicesOfReason]()
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
