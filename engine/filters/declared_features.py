"""NodeDeclaredFeatures: features of the kubelet that the pod needs and a node declares."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from engine.filters.cycle import SKIPPED, NodeCheck, Prepared, SchedulingCycle
from engine.filters.verdicts import PluginRefusal, StatusCode, Verdict
from engine.snapshot.fields import Object, read_items
from engine.snapshot.node_info import NodeInfo

NAME: Final = "NodeDeclaredFeatures"
_REFUSAL: Final = PluginRefusal(NAME, StatusCode.UNRESOLVABLE, ("node(s) didn't match Pod's required features",))


@dataclass(frozen=True, slots=True)
class FeatureCheck(NodeCheck):
    """Judges the features that a node declares."""

    features: frozenset[str]

    def judge(self, node: NodeInfo) -> Verdict:
        """Refuse a node that lacks a feature."""
        return None if self.features <= node.node.declared_features else _REFUSAL


def prepare(cycle: SchedulingCycle) -> Prepared:
    """Derive the features that the pod needs."""
    if not cycle.release.has(NAME):
        return SKIPPED
    features = frozenset(_iterate_needs(cycle.spec))
    return FeatureCheck(features) if features else SKIPPED


def _iterate_needs(spec: Object) -> Iterator[str]:
    if any(_restarts_all_containers(spec, key) for key in ("containers", "initContainers")):
        yield "RestartAllContainersOnContainerExits"
    if spec.get("hostNetwork") is True and spec.get("hostUsers") is False:
        yield "UserNamespacesHostNetworkSupport"


def _restarts_all_containers(spec: Object, key: str) -> bool:
    return any(
        rule.get("action") == "RestartAllContainers"
        for location, container in read_items(spec, key, "spec")
        for _, rule in read_items(container, "restartPolicyRules", location)
    )
