"""NodeAffinity: the pod's node selector and its required node affinity."""

from dataclasses import dataclass
from typing import Final

from engine.filters.cycle import SKIPPED, NodeCheck, Prepared, SchedulingCycle
from engine.filters.verdicts import PluginRefusal, StatusCode, Verdict
from engine.snapshot.fields import Object, read_items, read_labels, read_mapping, read_text, read_texts
from engine.snapshot.node_info import NodeInfo
from engine.snapshot.nodes import Node
from engine.snapshot.selectors import Labels, NodeSelector, read_node_selector

NAME: Final = "NodeAffinity"
REASON: Final = "node(s) didn't match Pod's node affinity/selector"
_REFUSAL: Final = PluginRefusal(NAME, StatusCode.UNRESOLVABLE, (REASON,))
_CONFLICT: Final = PluginRefusal(NAME, StatusCode.UNRESOLVABLE, ("pod affinity terms conflict",))
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True)
class RequiredNodeAffinity:
    """Both of a pod's conditions on the labels of its node."""

    labels: Labels
    selector: NodeSelector | None

    def matches(self, node: Node) -> bool:
        """Return whether a node meets both."""
        labels = node.labels
        for key, value in self.labels.items():
            if labels.get(key) != value:
                return False
        return self.selector is None or self.selector.matches(labels, node.name)


@dataclass(frozen=True, slots=True)
class NodeAffinityCheck(NodeCheck):
    """Judges the labels and the name of a node."""

    affinity: RequiredNodeAffinity
    names: frozenset[str] | None

    @property
    def node_names(self) -> frozenset[str] | None:
        """Names of the nodes that the pod's terms name, where every term names some."""
        return self.names

    def judge(self, node: NodeInfo) -> Verdict:
        """Refuse a node that does not meet the pod's conditions."""
        return None if self.affinity.matches(node.node) else _REFUSAL


def read_required_affinity(spec: Object) -> RequiredNodeAffinity:
    """Read the node selector and the required node affinity of a pod."""
    labels = read_labels(spec, "nodeSelector", "spec")
    return RequiredNodeAffinity(labels, read_node_selector(_read_node_affinity(spec), _REQUIRED, _PATH))


def prepare(cycle: SchedulingCycle) -> Prepared:
    """Read the pod's conditions; refuse the pod where its terms name nodes and contradict each other."""
    affinity = read_required_affinity(cycle.spec)
    if not affinity.labels and affinity.selector is None:
        return SKIPPED
    names = _collect_named_nodes(cycle.spec) if affinity.selector is not None else None
    if names is not None and not names:
        return _CONFLICT
    return NodeAffinityCheck(affinity, names)


_PATH: Final = "spec.affinity.nodeAffinity"


def _read_node_affinity(spec: Object) -> Object:
    return read_mapping(read_mapping(spec, "affinity", "spec"), "nodeAffinity", "spec.affinity")


def _collect_named_nodes(spec: Object) -> frozenset[str] | None:
    """Collect the names that the terms allow; None where a term names none."""
    required = read_mapping(_read_node_affinity(spec), _REQUIRED, _PATH)
    names: frozenset[str] | None = None
    for location, term in read_items(required, "nodeSelectorTerms", f"{_PATH}.{_REQUIRED}"):
        allowed = _collect_names(term, location)
        if allowed is None:
            return None
        names = allowed | (names or frozenset())
    return names


def _collect_names(term: Object, path: str) -> frozenset[str] | None:
    """Intersect the names of a term's conditions on ``metadata.name``."""
    names: frozenset[str] | None = None
    for location, condition in read_items(term, "matchFields", path):
        if (
            read_text(condition, "key", location) == "metadata.name"
            and read_text(condition, "operator", location) == "In"
        ):
            values = frozenset(read_texts(condition, "values", location))
            names = values if names is None else names & values
    return names
