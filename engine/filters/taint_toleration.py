"""TaintToleration: taints that the pod does not tolerate."""

from dataclasses import dataclass, field
from typing import Final

from engine.filters.cycle import NodeCheck, SchedulingCycle
from engine.filters.tolerations import Toleration, find_untolerated, read_tolerations
from engine.filters.verdicts import PluginRefusal, StatusCode, Verdict
from engine.snapshot.node_info import NodeInfo
from engine.snapshot.nodes import Taint

NAME: Final = "TaintToleration"
REASON: Final = "node(s) had untolerated taint(s)"


@dataclass(frozen=True, slots=True)
class TaintCheck(NodeCheck):
    """Judges the taints of a node; nodes with equal taints are judged once."""

    tolerations: tuple[Toleration, ...]
    compares: bool
    names_taint: bool
    verdicts: dict[tuple[Taint, ...], Verdict] = field(default_factory=dict)

    def judge(self, node: NodeInfo) -> Verdict:
        """Refuse a node with a taint that is not tolerated."""
        taints = node.node.taints
        if not taints:
            return None
        if taints not in self.verdicts:
            self.verdicts[taints] = self._judge_taints(taints)
        return self.verdicts[taints]

    def _judge_taints(self, taints: tuple[Taint, ...]) -> Verdict:
        taint = find_untolerated(taints, self.tolerations, compares=self.compares)
        if taint is None:
            return None
        reason = f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}" if self.names_taint else REASON
        return PluginRefusal(NAME, StatusCode.UNRESOLVABLE, (reason,))


def prepare(cycle: SchedulingCycle) -> TaintCheck:
    """Read the tolerations of the pod."""
    compares = cycle.release.has("TaintTolerationComparisonOperators")
    return TaintCheck(read_tolerations(cycle.spec), compares, cycle.release.names_taint)
