"""Mutating webhooks that were not called for a pod: what left it out, by the webhook's configuration.

Such a webhook leaves no trace: the pod only lacks what it would have written, HAMi's scheduler or Kueue's gate.
Selectors are held against the labels that pod and namespace have now.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from engine.diagnosis.facts import DiagnosisFacts, Evidence
from engine.diagnosis.layers.kueue_workloads import LOCAL_QUEUE, QUEUE_LABEL, is_gate
from engine.diagnosis.outcome import FoundObstacle, TreeStep, Word
from engine.diagnosis.texts import write_phrase
from engine.diagnosis.wording import shorten_list
from engine.snapshot import kinds
from engine.snapshot.needed_kinds import KUEUE_MANAGED
from runtime.kubernetes.object_fields import Fields, get_object, get_text, iterate_objects, iterate_texts, parse_moment
from schemas.answers.diagnosis import InBothLanguages

OF_HAMI: Final = ("vgpu.hami.io",)
OF_KUEUE: Final = ("mpod.kb.io",)
"""Webhook of Kueue's pod integration; controllers made with kubebuilder have the same name, in other configurations."""
NOT_TAKEN: Final = "KueuePodNotTaken"
_NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
"""Label that Kubernetes gives each namespace: its name."""


def explain_missing_call(facts: DiagnosisFacts, names: Collection[str], system: str) -> InBothLanguages | None:
    """Explain why none of a system's webhooks was called for the pod; None where the objects do not say."""
    pod, objects = facts.pod, facts.objects
    if pod is None or objects is None or not objects.has_read(kinds.MUTATING_WEBHOOKS):
        return None
    hooks = list(_iterate_hooks(objects.select(kinds.MUTATING_WEBHOOKS), names, system))
    if not hooks:
        name = "webhook_of_kueue_absent" if names is OF_KUEUE else "webhook_absent"
        return write_phrase(name, system=system)
    exclusions = [_explain_exclusion(facts, *entry) for entry in hooks]
    # Each of them writes it: one that leaves the pod out explains nothing where another one selects it.
    index = exclusions.index(None) if None in exclusions else 0
    hook = hooks[index][1]
    return _add_conditions(exclusions[index] or _explain_failure(facts, hook), hook)


def _explain_exclusion(facts: DiagnosisFacts, configuration: Fields, hook: Fields) -> InBothLanguages | None:
    """Explain by which selector, or by its age, a webhook leaves the pod out; None if it selects the pod."""
    pod, namespace = facts.pod, _find_namespace(facts)
    words: dict[str, Word] = {"webhook": get_text(hook, "name"), "namespace": facts.namespace}
    labels = {**get_object(namespace, "metadata", "labels"), _NAMESPACE_NAME: facts.namespace}
    # Of a namespace that was not read only the name is known.
    for mismatch in _list_mismatches(get_object(hook, "namespaceSelector"), labels):
        if namespace is not None or mismatch.startswith(_NAMESPACE_NAME):
            return write_phrase("webhook_leaves_namespace", **words, label=mismatch)
    for mismatch in _list_mismatches(get_object(hook, "objectSelector"), pod.labels if pod else {}):
        return write_phrase("webhook_leaves_pod", **words, label=mismatch)
    created = parse_moment(get_text(configuration, "metadata", "creationTimestamp"))
    if created and pod and pod.created_at and created > pod.created_at:
        return write_phrase("webhook_younger", **words, time=f"{created:%Y-%m-%d %H:%M:%S} UTC")
    return None


def _find_namespace(facts: DiagnosisFacts) -> Fields | None:
    return facts.objects.find(kinds.NAMESPACE, facts.namespace) if facts.objects else None


def _explain_failure(facts: DiagnosisFacts, hook: Fields) -> InBothLanguages | None:
    """Explain that a webhook that selects the pod may fail unseen; None if it may not, or if it may not select it."""
    if get_text(hook, "failurePolicy") != "Ignore" or _find_namespace(facts) is None:
        return None
    service = get_object(hook, "clientConfig", "service")
    target = f"{get_text(service, 'namespace')}/{get_text(service, 'name')}" if service else "?"
    return write_phrase("webhook_ignored", webhook=get_text(hook, "name"), service=target)


def _add_conditions(gap: InBothLanguages | None, hook: Fields) -> InBothLanguages | None:
    """Add that a webhook's matchConditions (CEL) may leave the pod out as well: they are not evaluated here."""
    names = [get_text(condition, "name") for condition in iterate_objects(hook, "matchConditions")]
    if not names:
        return gap
    if gap is None:
        return write_phrase("webhook_conditional", webhook=get_text(hook, "name"), conditions=shorten_list(names))
    return write_phrase("webhook_conditions", gap=gap, conditions=shorten_list(names))


def _iterate_hooks(
    configurations: Collection[Fields], names: Collection[str], system: str
) -> Iterator[tuple[Fields, Fields]]:
    """Iterate over a system's webhooks that are asked about new pods, with their configurations."""
    for configuration in configurations:
        is_named = system.lower() in get_text(configuration, "metadata", "name").lower()
        for hook in iterate_objects(configuration, "webhooks"):
            is_of_system = get_text(hook, "name") in names and (is_named or names is OF_HAMI)
            if is_of_system and any(map(_takes_pods, iterate_objects(hook, "rules"))):
                yield configuration, hook


def _takes_pods(rule: Fields) -> bool:
    resources, operations = iterate_texts(rule, "resources"), iterate_texts(rule, "operations")
    return not {"pods", "*", "*/*"}.isdisjoint(resources) and not {"CREATE", "*"}.isdisjoint(operations)


def _list_mismatches(selector: Fields, labels: Mapping[str, Any]) -> Iterator[str]:
    """Iterate over the parts of a selector that these labels do not meet, as people read them."""
    for key, value in get_object(selector, "matchLabels").items():
        if labels.get(key) != value:
            yield f"{key}={value}"
    for term in iterate_objects(selector, "matchExpressions"):
        key, operator, values = get_text(term, "key"), get_text(term, "operator"), list(iterate_texts(term, "values"))
        value, listed = labels.get(key), ", ".join(values)
        if operator == "In" and value not in values:
            yield f"{key} in ({listed})"
        elif (operator == "NotIn" and value in values) or (operator == "DoesNotExist" and value is not None):
            yield f"{key}={value}"
        elif operator == "Exists" and value is None:
            yield key


def check_kueue_webhook(facts: DiagnosisFacts) -> Iterator[TreeStep]:
    """Check whether Kueue took a pod that names one of its queues: its webhook adds a gate and a label."""
    pod, objects = facts.pod, facts.objects
    queue = pod.labels.get(QUEUE_LABEL, "") if pod else ""
    # A pod of a Job is let in with its Job.
    if pod is None or not queue or pod.owners or pod.labels.get(KUEUE_MANAGED) or any(map(is_gate, pod.gates or ())):
        return
    if objects is None or not (objects.select(LOCAL_QUEUE) or objects.select(kinds.MUTATING_WEBHOOKS)):
        return
    gap = explain_missing_call(facts, OF_KUEUE, "Kueue")
    words: dict[str, Word] = {"queue": queue, "namespace": facts.namespace, "gap": gap or ""}
    evidence = [Evidence("pod", pod.source.record, pod.source.time, words=f"{QUEUE_LABEL}={queue}")]
    obstacle = FoundObstacle(NOT_TAKEN, words, evidence=evidence, clauses=["gap"] if gap else [], is_aside=True)
    yield TreeStep("FreeOfGates", "yes", evidence, (), [obstacle])
