"""NodeName: a pod that names its node fits no other."""

from dataclasses import dataclass
from typing import Final

from engine.filters.cycle import NodeCheck, SchedulingCycle
from engine.filters.verdicts import PluginRefusal, StatusCode, Verdict
from engine.snapshot.node_info import NodeInfo

NAME: Final = "NodeName"
_REFUSAL: Final = PluginRefusal(NAME, StatusCode.UNRESOLVABLE, ("node(s) didn't match the requested node name",))


@dataclass(frozen=True, slots=True)
class NodeNameCheck(NodeCheck):
    """Judges the name of a node."""

    name: str
    """Name that the pod asks for; "" for any."""

    def judge(self, node: NodeInfo) -> Verdict:
        """Refuse a node of another name."""
        return _REFUSAL if self.name and self.name != node.node.name else None


def prepare(cycle: SchedulingCycle) -> NodeNameCheck:
    """Read the name that the pod asks for."""
    return NodeNameCheck(cycle.pod.node)
