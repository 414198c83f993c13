"""NodePorts: host ports that pods on the node have taken."""

from dataclasses import dataclass
from typing import Final

from engine.filters.cycle import SKIPPED, NodeCheck, Prepared, SchedulingCycle
from engine.filters.verdicts import PluginRefusal, StatusCode, Unjudged, Verdict
from engine.snapshot import kinds
from engine.snapshot.node_info import NodeInfo
from engine.snapshot.pods import HostPortBinding

NAME: Final = "NodePorts"
_REFUSAL: Final = PluginRefusal(
    NAME, StatusCode.UNSCHEDULABLE, ("node(s) didn't have free ports for the requested pod ports",)
)


@dataclass(frozen=True, slots=True)
class PortCheck(NodeCheck):
    """Judges whether the pod's ports are free on a node."""

    ports: tuple[HostPortBinding, ...]
    counts_sidecars: bool
    unread: frozenset[str]

    def judge(self, node: NodeInfo) -> Verdict:
        """Refuse a node on which another pod has one of the ports."""
        for taken in node.host_ports:
            if taken.is_of_sidecar and not self.counts_sidecars:
                continue
            if any(port.is_conflicting(taken) for port in self.ports):
                return _REFUSAL
        return Unjudged(NAME, self.unread) if self.unread else None


def prepare(cycle: SchedulingCycle) -> Prepared:
    """Take the host ports of the pod."""
    counts_sidecars = cycle.release.counts_sidecar_ports
    ports = tuple(port for port in cycle.pod.host_ports if counts_sidecars or not port.is_of_sidecar)
    return PortCheck(ports, counts_sidecars, cycle.snapshot.find_missing_kinds(kinds.POD)) if ports else SKIPPED
