"""Required terms of inter-pod affinity and anti-affinity."""

from collections.abc import Iterator
from dataclasses import dataclass

from engine.snapshot.fields import Object, read_items, read_mapping, read_text, read_texts
from engine.snapshot.selectors import Labels, LabelSelector, read_label_selector


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """Pods that a term selects, and the node label whose equal values make nodes one topology domain."""

    topology_key: str
    selector: LabelSelector
    namespaces: frozenset[str]
    """Namespaces named by the term; the pod's own one where the term names none and selects none."""
    namespace_selector: LabelSelector

    def selects(self, namespace: str, labels: Labels, namespace_labels: Labels) -> bool:
        """Return whether the term selects a pod of these labels in a namespace of those."""
        return self.includes(namespace, namespace_labels) and self.selector.matches(labels)

    def includes(self, namespace: str, namespace_labels: Labels) -> bool:
        """Return whether the term looks into a namespace of these labels."""
        return namespace in self.namespaces or self.namespace_selector.matches(namespace_labels)


def read_required_terms(spec: Object, kind: str, namespace: str) -> tuple[AffinityTerm, ...]:
    """Read the required terms of ``podAffinity`` or ``podAntiAffinity`` of a pod in a namespace."""
    affinity = read_mapping(spec, "affinity", "spec")
    if not affinity.get(kind):
        return ()
    return tuple(_iterate_terms(read_mapping(affinity, kind, "spec.affinity"), f"spec.affinity.{kind}", namespace))


def _iterate_terms(affinity: Object, path: str, namespace: str) -> Iterator[AffinityTerm]:
    for location, term in read_items(affinity, "requiredDuringSchedulingIgnoredDuringExecution", path):
        namespaces = read_texts(term, "namespaces", location)
        selector = read_label_selector(term, "namespaceSelector", location)
        if not namespaces and selector.requirements is None:
            namespaces = (namespace,)
        yield AffinityTerm(
            read_text(term, "topologyKey", location),
            read_label_selector(term, "labelSelector", location),
            frozenset(namespaces),
            selector,
        )
