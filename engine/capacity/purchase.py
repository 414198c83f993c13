"""Nodes to buy: how many of each kind that the cluster has let waiting pods start, and pods that no node helps.

The pods that wait are judged by priority, each with those before it in place. For each kind of node, empty ones are
added one by one, whenever the next pod fits nowhere else.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Final, NamedTuple

from engine.capacity.added_nodes import Addition, adding_nodes
from engine.capacity.moves import describe_shape, explain_wait, judge_again, name_pod, rank_pod
from engine.capacity.starts import iterate_kinds
from engine.diagnosis.texts import write_phrase
from engine.fit.manifests import ManifestError
from engine.simulation.cluster import SimulationCluster
from engine.simulation.pod_placer import PodPlacer, placing_pods
from engine.simulation.setting import SimulationSetting
from engine.simulation.verdict import PodOutcome, PodRejectedError
from engine.snapshot.snapshot import Key
from runtime.kubernetes.object_fields import get_text
from schemas.answers.capacity import NodesToBuy, Purchase, UnhelpedPods
from schemas.answers.diagnosis import InBothLanguages
from schemas.json_types import Json

MAX_PODS: Final = 200
"""Limit of the waiting pods that are judged: those of the highest priority."""
MAX_NODES: Final = 100
"""Limit of the added nodes of one kind."""
MAX_VERDICTS: Final = 400_000
"""Limit of pods x nodes that are judged for one kind."""


class _Refused(NamedTuple):
    """A waiting pod, and the reason why it waits; can_be_helped: a node may decide about it."""

    pod: Json
    reason: InBothLanguages | None
    can_be_helped: bool


def plan_purchase(
    cluster: SimulationCluster, setting: SimulationSetting, held: Mapping[Key, InBothLanguages] | None = None
) -> Purchase:
    """Plan nodes for the pods that wait. held: pods that a queue or a gate holds, with the reason."""
    pods = sorted(_iterate_waiting(cluster), key=lambda pod: rank_pod(cluster, pod))
    judged = pods[: min(MAX_PODS, max(10, MAX_VERDICTS // max(1, cluster.node_count)))]
    with placing_pods(cluster) as placer:
        refused = [entry for pod in judged if (entry := _try_placing(placer, pod, setting, held or {}))]
        helpable = [entry.pod for entry in refused if entry.can_be_helped]
        filled = [_fill(placer.cluster, like, models, helpable, setting) for like, models in iterate_kinds(cluster, ())]
    bought = sorted((kind for kind in filled if kind.nodes), key=lambda kind: (-kind.pods, kind.nodes, kind.like))
    helped = {name for kind in bought for name in kind.names}
    left = [entry for entry in refused if name_pod(entry.pod) not in helped]
    return Purchase(
        waiting=len(pods),
        judged=len(judged),
        starts=len(judged) - len(refused),
        sentence=_write_sentence(len(judged), len(judged) - len(refused), bought),
        to_add=bought,
        not_helped=_group(left),
    )


def _iterate_waiting(cluster: SimulationCluster) -> Iterator[Json]:
    for pod in cluster.list_kind("Pod"):
        is_bound = get_text(pod, "spec", "nodeName") or get_text(pod, "metadata", "deletionTimestamp")
        if not is_bound and get_text(pod, "status", "phase") in ("", "Pending"):
            yield pod


def _try_placing(
    placer: PodPlacer, pod: Json, setting: SimulationSetting, held: Mapping[Key, InBothLanguages]
) -> _Refused | None:
    """Place a waiting pod; returns the reason where it waits."""
    reason = held.get((get_text(pod, "metadata", "namespace"), get_text(pod, "metadata", "name")))
    if reason:
        return _Refused(pod, reason, can_be_helped=False)
    try:
        verdict = judge_again(placer.cluster, pod, setting)
    except (ManifestError, PodRejectedError) as error:
        return _Refused(pod, InBothLanguages(en=str(error), zh=str(error)), can_be_helped=False)
    if verdict.outcome is PodOutcome.FITS:
        placer.bind(verdict)
        return None
    judgement = verdict.judgement
    is_about_nodes = judgement is not None and not judgement.pre_enqueue and not judgement.prefilter
    return _Refused(
        pod, explain_wait(verdict, setting), can_be_helped=is_about_nodes and verdict.outcome is PodOutcome.REFUSED
    )


def _fill(
    cluster: SimulationCluster, like: str, models: list[str], pods: Sequence[Json], setting: SimulationSetting
) -> NodesToBuy:
    """Add nodes of a kind whenever the next pod fits nowhere else, and does on an empty one."""
    names, nodes, hopeless = list[str](), 0, set[bytes]()
    with ExitStack() as stack, placing_pods(cluster) as placer:
        for pod in pods:
            shape = describe_shape(pod)
            if shape in hopeless:
                continue
            verdict = judge_again(placer.cluster, pod, setting)
            if verdict.outcome is not PodOutcome.FITS and nodes < MAX_NODES:
                with ExitStack() as added:
                    extended, _ = added.enter_context(adding_nodes(placer.cluster, [Addition(like, 1)]))
                    verdict = judge_again(extended, pod, setting)
                    if verdict.outcome is PodOutcome.FITS:
                        stack.push(added.pop_all())
                        placer.cluster, nodes = extended, nodes + 1
            if verdict.outcome is PodOutcome.FITS:
                placer.bind(verdict)
                names.append(name_pod(pod))
            else:
                hopeless.add(shape)
    return NodesToBuy(like=like, models=models, nodes=nodes, pods=len(names), names=names)


def _group(refused: Iterable[_Refused]) -> list[UnhelpedPods]:
    """Group pods that no added node helps by the reason why they wait, most pods first."""
    groups: dict[str, list[_Refused]] = {}
    for entry in refused:
        groups.setdefault(entry.reason.en if entry.reason else "", []).append(entry)
    listed = [
        UnhelpedPods(reason=entries[0].reason, pods=len(entries), names=[name_pod(entry.pod) for entry in entries])
        for entries in groups.values()
    ]
    return sorted(listed, key=lambda group: -group.pods)


def _write_sentence(judged: int, starts: int, bought: Sequence[NodesToBuy]) -> InBothLanguages:
    if not judged:
        return write_phrase("buy_nothing_waits")
    if starts == judged:
        return write_phrase("buy_nothing", waiting=judged)
    if not bought:
        return write_phrase("buy_useless", waiting=judged - starts)
    best = bought[0]
    return write_phrase("buy_nodes", nodes=best.nodes, like=best.like, pods=best.pods, waiting=judged - starts)
