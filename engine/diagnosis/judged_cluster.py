"""A judgement together with the snapshot that it was made on, and the obstacles that are built from both."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from engine.claims.inventory import Inventory
from engine.diagnosis.facts import Evidence
from engine.diagnosis.outcome import FoundObstacle, Word
from engine.diagnosis.wording import NOTHING, describe_share, shorten_list
from engine.filters import node_affinity
from engine.filters.cycle import SchedulingCycle, start_cycle
from engine.filters.judgement import Judgement
from engine.filters.release import SchedulerRelease
from engine.filters.verdicts import PluginRefusal, StatusCode
from engine.snapshot.node_info import NodeInfo
from engine.snapshot.snapshot import Snapshot

Refusals = Mapping[str, PluginRefusal]
"""Refusals of one filter by node."""
MAX_EVIDENCE: Final = 5
"""Limit of the nodes that are evidence for an obstacle."""
_OUTSIDE: Final = PluginRefusal(
    node_affinity.NAME, StatusCode.UNRESOLVABLE, ("node(s) didn't satisfy plugin(s) [NodeAffinity]",)
)


@dataclass(frozen=True, slots=True)
class JudgedCluster:
    """The snapshot, the pod and what the filters made of it."""

    cycle: SchedulingCycle
    judgement: Judgement
    inventory: Inventory | None

    @property
    def snapshot(self) -> Snapshot:
        """The objects that the pod was judged on."""
        return self.cycle.snapshot

    def get_node(self, name: str) -> NodeInfo:
        """Get a node of the snapshot."""
        return self.cycle.snapshot.nodes[name]

    def group_refusals(self) -> dict[str, dict[str, PluginRefusal]]:
        """Group the refusals by filter and node; with what each filter says by itself, a node is under several."""
        grouped: dict[str, dict[str, PluginRefusal]] = {}
        judgement = self.judgement
        for node, refusal in judgement.refused.items():
            grouped.setdefault(refusal.plugin, {})[node] = refusal
        for node, by_plugin in judgement.alone.items():
            for plugin, refusal in by_plugin.items():
                grouped.setdefault(plugin, {})[node] = refusal
        if judgement.outside:
            grouped.setdefault(node_affinity.NAME, {}).update(dict.fromkeys(judgement.outside, _OUTSIDE))
        return grouped

    def list_open_nodes(self, filters: Collection[str]) -> frozenset[str]:
        """List the nodes that none of these filters refuses."""
        grouped = self.group_refusals()
        closed = {node for name in filters for node in grouped.get(name, ())}
        return frozenset(self.snapshot.nodes.keys() - closed)

    def build_obstacle(
        self,
        code: str,
        nodes: Iterable[str],
        words: Mapping[str, Word],
        *,
        clauses: Sequence[str] = (),
        numbers: Mapping[str, int] | None = None,
        reasons: Refusals | None = None,
        details: Mapping[str, str] | None = None,
        names_one: bool = False,
    ) -> FoundObstacle:
        """Build the obstacle of some nodes, counted out of all.

        reasons: refusals, whose words are the nodes' evidence. details: more words by node. names_one: the words name
        one of the nodes, which is not named again where it is the only one.
        """
        names = sorted(nodes)
        total = self.judgement.total
        counted: dict[str, Word] = {
            "refused": len(names),
            "of": total,
            "share": describe_share(len(names), total, NOTHING),
            "nodes": shorten_list(names),
            "namespace": self.cycle.pod.namespace,
        }
        evidence = [
            Evidence("node", f"/api/v1/nodes/{name}", words=_write_evidence(name, reasons or {}, details or {}))
            for name in names[:MAX_EVIDENCE]
        ]
        amounts = {"nodes": len(names), "of_nodes": total, **(numbers or {})}
        # Names say nothing where every node is meant.
        is_listed = len(names) < total and not (names_one and len(names) == 1)
        named = ["nodes", *clauses] if is_listed else list(clauses)
        return FoundObstacle(code, {**counted, **words}, amounts, names, len(names), evidence, named)


def _write_evidence(node: str, reasons: Refusals, details: Mapping[str, str]) -> str:
    refusal = reasons.get(node)
    parts = [", ".join(refusal.reasons)] if refusal else []
    return ": ".join([*parts, *([details[node]] if details.get(node) else [])])


def build_judged_cluster(
    snapshot: Snapshot, judgement: Judgement, release: SchedulerRelease, inventory: Inventory | None
) -> JudgedCluster | None:
    """Read the pod of the judgement again; None if it can't be, for which `judge_pod` has an answer."""
    cycle = start_cycle(snapshot, judgement.pod.object, release)
    return JudgedCluster(cycle, judgement, inventory) if isinstance(cycle, SchedulingCycle) else None
