"""DefaultPreemption after a refusal: whether the end of pods of lower priority would make room, and what it writes."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from engine.filters.node_judging import NodeJudge
from engine.filters.verdicts import PluginRefusal, StatusCode, compose_message
from engine.snapshot.node_info import NodeInfo

NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"
NO_VICTIMS: Final = "No preemption victims found for incoming pod"
_NEVER: Final = "not eligible due to preemptionPolicy=Never."
_TERMINATING: Final = "not eligible due to a terminating pod on the nominated node."


@dataclass(frozen=True, slots=True)
class PreemptionResult:
    """The node on which preemption makes room, or the text that says why there is none."""

    node: str | None
    text: str


def simulate_preemption(judge: NodeJudge, refused: Mapping[str, PluginRefusal]) -> PreemptionResult:
    """Look for a node where the pod fits once all pods of lower priority are gone; refused: by node."""
    if text := _find_obstacle(judge, refused):
        return PreemptionResult(None, f"preemption: {text}")
    nodes = judge.cycle.snapshot.nodes
    counts: Counter[str] = Counter()
    for name, refusal in refused.items():
        if refusal.code is StatusCode.UNSCHEDULABLE:
            reasons = _retry(judge, nodes[name])
            if not reasons:
                return PreemptionResult(name, "")
            counts.update(reasons)
    hopeless = len(nodes) - sum(1 for refusal in refused.values() if refusal.code is StatusCode.UNSCHEDULABLE)
    if hopeless:
        counts[NOT_HELPFUL] += hopeless
    return PreemptionResult(None, f"preemption: {compose_message(len(nodes), counts)}")


def _retry(judge: NodeJudge, node: NodeInfo) -> tuple[str, ...]:
    """Judge a node without its pods of lower priority; return the reasons that remain, none where the pod fits."""
    victims = [pod for pod in node.pods if pod.priority < judge.cycle.pod.priority]
    if not victims:
        return (NO_VICTIMS,)
    verdict = judge.judge_without(node, victims)
    return verdict.reasons if isinstance(verdict, PluginRefusal) else ()


def _find_obstacle(judge: NodeJudge, refused: Mapping[str, PluginRefusal]) -> str | None:
    cycle = judge.cycle
    if cycle.spec.get("preemptionPolicy") == "Never":
        return _NEVER
    nominated = cycle.pod.nominated_node
    node = cycle.snapshot.nodes.get(nominated)
    if node is None or _is_hopeless(nominated, refused):
        return None
    leaves = any(pod.priority < cycle.pod.priority and pod.is_preempted for pod in node.pods)
    return _TERMINATING if leaves else None


def _is_hopeless(node: str, refused: Mapping[str, PluginRefusal]) -> bool:
    refusal = refused.get(node)
    return refusal is None or refusal.code is StatusCode.UNRESOLVABLE
