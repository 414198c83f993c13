"""NodeUnschedulable: cordoned nodes take only pods that tolerate the cordon."""

from dataclasses import dataclass
from typing import Final

from engine.filters.cycle import NodeCheck, SchedulingCycle
from engine.filters.tolerations import read_tolerations
from engine.filters.verdicts import PluginRefusal, StatusCode, Verdict
from engine.snapshot.node_info import NodeInfo
from engine.snapshot.nodes import Taint

NAME: Final = "NodeUnschedulable"
_CORDON: Final = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
_REFUSAL: Final = PluginRefusal(NAME, StatusCode.UNRESOLVABLE, ("node(s) were unschedulable",))


@dataclass(frozen=True, slots=True)
class CordonCheck(NodeCheck):
    """Judges whether a node is cordoned for the pod."""

    tolerates_cordon: bool

    def judge(self, node: NodeInfo) -> Verdict:
        """Refuse a cordoned node."""
        return _REFUSAL if node.node.is_unschedulable and not self.tolerates_cordon else None


def prepare(cycle: SchedulingCycle) -> CordonCheck:
    """Read whether the pod tolerates the cordon."""
    compares = cycle.release.has("TaintTolerationComparisonOperators")
    tolerations = read_tolerations(cycle.spec)
    return CordonCheck(any(toleration.covers(_CORDON, compares=compares) for toleration in tolerations))
