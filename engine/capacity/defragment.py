"""Defragmentation as a plan: the fewest pods to move to other nodes so that waiting pods start.

Each waiting pod gets one node, which is cordoned meanwhile: pods of it are evicted and judged on the other nodes, one
after the other, then the waiting pod is judged on what they leave. A plan of one move is the shortest, and so is one of
two where every single move was tried. Three or more might be shortened by chains of moves over several nodes, which are
not searched.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import orjson

from engine.capacity.budgets import Budgets
from engine.capacity.moves import (
    build_cordoned,
    count_devices,
    describe_shape,
    explain_wait,
    find_owner,
    is_left_by_drain,
    list_pods_on,
    move_pod,
    name_pod,
    rank_pod,
    read_written,
)
from engine.capacity.per_node import has_rules
from engine.capacity.releases import count_on_node, ending_pods
from engine.diagnosis.layers.reservations import RESERVATIONS
from engine.diagnosis.texts import write_phrase
from engine.filters import node_resources
from engine.fit.manifests import ManifestError
from engine.simulation.cluster import SimulationCluster
from engine.simulation.pod_placer import PodPlacer, placing_pods
from engine.simulation.setting import SimulationSetting
from engine.simulation.verdict import PodOutcome, PodRejectedError, PodVerdict, judge_simulated, list_passing
from engine.simulation.workloads import PodTemplate
from runtime.kubernetes.object_fields import get_object, get_text
from schemas.answers.capacity import Defragmentation, MovedPod, OpenedNode
from schemas.answers.diagnosis import InBothLanguages
from schemas.json_types import Json

MAX_MOVES: Final = 4
"""Limit of the pods that move for one waiting pod."""
MAX_SETS: Final = 3_000
"""Limit of the sets of pods for which room is counted, for one waiting pod."""
MAX_VERDICTS: Final = 100_000
"""Limit of the verdicts on nodes for one waiting pod: which pods fit elsewhere, and proofs of plans."""
MAX_WANTED: Final = 50
_PROVED_MOVES: Final = 2
"""Number of moves up to which no chain over several nodes can be shorter."""


def plan_defragmentation(
    cluster: SimulationCluster, template: PodTemplate, wanted: int, setting: SimulationSetting
) -> Defragmentation:
    """Plan the moves after which ``wanted`` copies of a pod start, at most 50. Raises `PodRejectedError`."""
    budgets, opened = Budgets(cluster), list[OpenedNode]()
    wanted = min(wanted, MAX_WANTED)
    is_fewest, obstacle = wanted == 1, None
    with placing_pods(cluster) as placer:
        for number in range(wanted):
            pod = template.build_pod(number, wanted)
            verdict = judge_simulated(placer.cluster, pod, setting.identity, setting.policy, setting.now)
            moves, source = list[MovedPod](), None
            if verdict.outcome is PodOutcome.REFUSED:
                search = _Search(placer.cluster, verdict, budgets, setting)
                if leaving := search.find():
                    is_fewest &= search.is_complete and len(leaving.pods) <= _PROVED_MOVES
                    moves, after = _carry_out(placer, leaving, pod, budgets, setting)
                    verdict, source = after or verdict, leaving.node
            if verdict.outcome is not PodOutcome.FITS:
                obstacle = explain_wait(verdict, setting)
                break
            placer.bind(verdict)
            node = verdict.node or verdict.fitting[0]
            opened.append(OpenedNode(pod=get_text(pod, "metadata", "name"), node=node, source=source, moves=moves))
    moves_of_all = [move for entry in opened for move in entry.moves]
    return Defragmentation(
        name=template.name,
        wanted=wanted,
        starts=len(opened),
        moves=len(moves_of_all),
        is_fewest=is_fewest and len(opened) == wanted,
        sentence=_write_sentence(wanted, len(opened), len(moves_of_all)),
        obstacle=obstacle,
        nodes=opened,
        has_budgets=budgets.is_known,
        commands=[command for entry in opened for command in _list_commands(entry)],
    )


class _Leaving(NamedTuple):
    """Pods that would leave a node."""

    devices: int
    names: tuple[str, ...]
    node: str
    pods: Sequence[Json]


class _Search:
    """Search for the pods of one node whose moves let a refused pod start."""

    def __init__(
        self, cluster: SimulationCluster, verdict: PodVerdict, budgets: Budgets, setting: SimulationSetting
    ) -> None:
        self._cluster, self._verdict, self._budgets, self._setting = cluster, verdict, budgets, setting
        self._sets, self._judgements = MAX_SETS, max(10, MAX_VERDICTS // max(1, cluster.node_count))
        self._fitting: dict[bytes, frozenset[str]] = {}
        """Nodes that take a pod as things are, by what a scheduler reads of it."""
        self.is_complete = not has_rules(verdict)
        """False where a limit was reached, or where pods decide about other nodes than their own."""

    def find(self) -> _Leaving | None:
        """Find the set of fewest pods whose moves are proved; of equal sets the one with the fewest devices."""
        movable = {node: self._list_movable(node) for node in _list_candidates(self._verdict)}
        for size in range(1, MAX_MOVES + 1):
            for leaving in sorted(self._iterate_sets(movable, size), key=_rank_leaving):
                if not all(self._try_elsewhere(pod, leaving.node) for pod in leaving.pods):
                    continue
                if self._judgements <= 0:
                    self.is_complete = False
                    return None
                self._judgements -= len(leaving.pods) + 1
                if self._is_proved(leaving):
                    return leaving
        return None

    def _try_elsewhere(self, pod: Json, node: str) -> bool:
        """Try whether another node takes the pod as things are: pods that leave its node give the others nothing.

        True where the limit of verdicts is reached: then nothing is known.
        """
        try:
            written = read_written(pod)
        except ManifestError:
            return False
        shape = describe_shape(written)
        if shape not in self._fitting:
            if self._judgements <= 0:
                return True
            self._judgements -= 1
            self._fitting[shape] = self._find_fitting(pod, written)
        return not self._fitting[shape] <= {node}

    def _find_fitting(self, pod: Json, written: Json) -> frozenset[str]:
        """Find the nodes that take the pod once it has left its own."""
        setting = self._setting
        try:
            with placing_pods(self._cluster) as placer:
                placer.end(pod)
                verdict = judge_simulated(
                    placer.cluster, written, setting.identity, setting.policy, setting.now, explains=False
                )
        except PodRejectedError:
            return frozenset()
        if verdict.outcome is PodOutcome.REFUSED and has_rules(verdict):
            # Its rules may be about pods that leave with it.
            return frozenset(self._cluster.snapshot.nodes)
        return frozenset(verdict.fitting)

    def _list_movable(self, node: str) -> list[Json]:
        """List the pods of a node that something makes again and that may be evicted now."""
        return [
            pod
            for pod in list_pods_on(self._cluster, node)
            if find_owner(pod)
            and not is_left_by_drain(pod)
            and not get_object(pod, "spec").get("resourceClaims")
            and get_text(pod, "metadata", "namespace") != RESERVATIONS
            and self._budgets.refuse(pod) is None
        ]

    def _iterate_sets(self, movable: Mapping[str, Sequence[Json]], size: int) -> Iterator[_Leaving]:
        """Iterate over the sets of this size that leave room for the pod by its amounts."""
        for node, pods in movable.items():
            for leaving in itertools.combinations(pods, size):
                if not self._sets:
                    self.is_complete = False
                    return
                self._sets -= 1
                if self._leaves_enough(node, leaving):
                    devices = sum(count_devices(self._cluster, pod) for pod in leaving)
                    yield _Leaving(devices, tuple(map(name_pod, leaving)), node, leaving)

    def _leaves_enough(self, node: str, leaving: Sequence[Json]) -> bool:
        """Tell whether the node would have the amounts of the pod, or amounts that can't be counted."""
        info = self._cluster.snapshot.nodes[node]
        info = info.without_pods([pod for pod in info.pods if any(pod.object is entry for entry in leaving)])
        with ending_pods(self._cluster.columns, [get_text(pod, "metadata", "uid") for pod in leaving]):
            count = count_on_node(self._cluster, self._verdict, info, self._setting)
        return count is None or count > 0

    def _is_proved(self, leaving: _Leaving) -> bool:
        """Tell whether every pod moves and the waiting one starts, judged step by step."""
        with placing_pods(self._cluster) as placer:
            moves, verdict = _carry_out(placer, leaving, self._verdict.pod, self._budgets.copy(), self._setting)
        is_moved = all(move.state == "moves" and move.node != leaving.node for move in moves)
        return is_moved and verdict is not None and verdict.outcome is PodOutcome.FITS


def _list_candidates(verdict: PodVerdict) -> list[str]:
    """List the nodes that lack nothing but amounts for the pod."""
    judgement = verdict.judgement
    if judgement is None or judgement.pre_enqueue or judgement.prefilter:
        return []
    short = [
        name
        for name, refusal in judgement.refused.items()
        if {refusal.plugin, *judgement.alone.get(name, {})} == {node_resources.NAME}
    ]
    return sorted({*list_passing(judgement), *short})


def _carry_out(
    placer: PodPlacer, leaving: _Leaving, pod: Json, budgets: Budgets, setting: SimulationSetting
) -> tuple[list[MovedPod], PodVerdict | None]:
    """Move the pods while their node is cordoned, and judge the waiting one afterwards; None if a pod does not move."""
    node = placer.cluster.get_nodes()[leaving.node]
    placer.cluster = placer.cluster.with_objects([build_cordoned(node)])
    ranked = sorted(leaving.pods, key=lambda entry: rank_pod(placer.cluster, entry))
    moves: list[MovedPod] = []
    for entry in ranked:
        moves.append(move_pod(placer, entry, budgets, setting))
        if moves[-1].state != "moves":
            return moves, None
    placer.cluster = placer.cluster.with_objects([node])
    verdict = judge_simulated(placer.cluster, pod, setting.identity, setting.policy, setting.now, explains=False)
    return moves, verdict


def _rank_leaving(leaving: _Leaving) -> tuple[int, tuple[str, ...], str]:
    return leaving.devices, leaving.names, leaving.node


def _write_sentence(wanted: int, starts: int, moves: int) -> InBothLanguages:
    if starts < wanted:
        name = "defragment_some" if moves else "defragment_rest" if starts else "defragment_not"
        return write_phrase(name, wanted=wanted, starts=starts, moves=moves, limit=MAX_MOVES)
    return write_phrase("defragment_all" if moves else "defragment_free", wanted=wanted, moves=moves)


def _list_commands(opened: OpenedNode) -> list[str]:
    """List the commands that carry the moves of one node out; kubectl has none that evicts one pod."""
    if not opened.moves:
        return []
    commands = [f"kubectl cordon {opened.source}"]
    for move in opened.moves:
        path = f"/api/v1/namespaces/{move.namespace}/pods/{move.name}/eviction"
        names = {"namespace": move.namespace, "name": move.name}
        body = orjson.dumps({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": names}).decode()
        commands += [
            f"echo '{body}' | kubectl create --raw {path} -f -",
            f"kubectl wait --for=delete pod/{move.name} -n {move.namespace} --timeout=10m",
            f"# {move.workload} makes it again: wait until the new pod runs, by this plan on {move.node}",
        ]
    return [*commands, f"kubectl uncordon {opened.source}"]
