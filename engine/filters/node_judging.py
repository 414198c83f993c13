"""The filters that have something to check, run on nodes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from engine.filters.cycle import NodeCheck, SchedulingCycle
from engine.filters.verdicts import PluginRefusal, StatusCode, Unjudged
from engine.snapshot.node_info import NodeInfo
from engine.snapshot.pods import Pod

NodeVerdict = PluginRefusal | tuple[Unjudged, ...]
"""The first refusal of a node; otherwise the plugins that could not judge it, none where it fits."""


@dataclass(frozen=True, slots=True)
class NodeJudge:
    """The checks of one cycle, by plugin and in the order of the filters."""

    cycle: SchedulingCycle
    checks: Mapping[str, NodeCheck]

    def judge(self, node: NodeInfo) -> NodeVerdict:
        """Judge a node: first with the pods that preemption has set it apart for, then without them."""
        nominated = self._find_nominated(node.node.name)
        if nominated:
            verdict = _run(
                [check.with_pods(nominated, node) for check in self.checks.values()], node.with_pods(nominated)
            )
            if isinstance(verdict, PluginRefusal):
                return verdict
        return _run(self.checks.values(), node)

    def judge_without(self, node: NodeInfo, victims: Sequence[Pod]) -> NodeVerdict:
        """Judge a node as if some of its pods were gone."""
        checks = {name: check.without_pods(victims, node) for name, check in self.checks.items()}
        return replace(self, checks=checks).judge(node.without_pods(victims))

    def judge_alone(self, node: NodeInfo) -> dict[str, PluginRefusal]:
        """Collect what each filter by itself says of a node; a filter that lets it pass is left out."""
        verdicts = ((name, replace(self, checks={name: check}).judge(node)) for name, check in self.checks.items())
        return {name: verdict for name, verdict in verdicts if isinstance(verdict, PluginRefusal)}

    def _find_nominated(self, node: str) -> Sequence[Pod]:
        """Return other pods of at least this priority that wait for the node."""
        waiting = self.cycle.snapshot.nominated.get(node)
        if not waiting:
            return ()
        pod = self.cycle.pod
        return [
            other
            for other in waiting
            if other.priority >= pod.priority and other.uid != pod.uid and other.scheduler == pod.scheduler
        ]


def _run(checks: Iterable[NodeCheck], node: NodeInfo) -> NodeVerdict:
    unjudged: list[Unjudged] = []
    for check in checks:
        verdict = check.judge(node)
        if verdict is None:
            continue
        if isinstance(verdict, PluginRefusal):
            return _complete(verdict)
        unjudged.append(verdict)
    return tuple(unjudged)


def _complete(refusal: PluginRefusal) -> PluginRefusal:
    """Write an error as kube-scheduler reports it, with the plugin that it came from."""
    if refusal.code is not StatusCode.ERROR:
        return refusal
    text = ", ".join(refusal.reasons)
    return replace(refusal, reasons=(f'running "{refusal.plugin}" filter plugin: {text}',))
