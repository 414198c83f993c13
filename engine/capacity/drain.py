"""The drain of a node as a plan: its pods evicted one after the other, each judged on the rest of the cluster."""

from collections.abc import Mapping, Sequence
from typing import Any

from engine.capacity.budgets import Budgets
from engine.capacity.moves import build_cordoned, find_owner, is_left_by_drain, list_pods_on, move_pod, rank_pod
from engine.diagnosis.texts import write_phrase
from engine.simulation.cluster import SimulationCluster
from engine.simulation.pod_placer import placing_pods
from engine.simulation.setting import SimulationSetting
from runtime.kubernetes.object_fields import iterate_objects
from schemas.answers.capacity import DrainPlan
from schemas.answers.diagnosis import InBothLanguages


class NodeMissingError(ValueError):
    """Node that the cluster does not have; the text is its name."""


def plan_drain(cluster: SimulationCluster, node: str, setting: SimulationSetting) -> DrainPlan:
    """Plan the drain of a node: where each of its pods goes, and which would wait. Raises `NodeMissingError`."""
    objects = cluster.get_nodes()
    if node not in objects:
        raise NodeMissingError(node)
    present, budgets = list_pods_on(cluster, node), Budgets(cluster)
    leaving = sorted((pod for pod in present if not is_left_by_drain(pod)), key=lambda pod: rank_pod(cluster, pod))
    with placing_pods(cluster) as placer:
        placer.cluster = placer.cluster.with_objects([build_cordoned(objects[node])])
        pods = [move_pod(placer, pod, budgets, setting) for pod in leaving]
    states = [pod.state for pod in pods]
    moves, blocked = states.count("moves"), states.count("blocked")
    waits = len(pods) - moves - blocked
    return DrainPlan(
        node=node,
        sentence=_write_sentence(node, moves, waits, blocked),
        moves=moves,
        waits=waits,
        blocked=blocked,
        pods=pods,
        remaining=len(present) - len(leaving),
        has_budgets=budgets.is_known,
        commands=_list_commands(node, leaving),
    )


def _write_sentence(node: str, moves: int, waits: int, blocked: int) -> InBothLanguages:
    if not moves + waits + blocked:
        return write_phrase("drain_none", node=node)
    sentence = write_phrase("drain_some" if waits or blocked else "drain_all", node=node, moves=moves, waits=waits)
    if not blocked:
        return sentence
    more = write_phrase("drain_blocked", blocked=blocked)
    return InBothLanguages(en=f"{sentence.en} {more.en}", zh=f"{sentence.zh}{more.zh}")


def _list_commands(node: str, leaving: Sequence[Mapping[str, Any]]) -> list[str]:
    """List the commands that carry out the drain: kubectl evicts, and asks the budgets."""
    flags = ["--ignore-daemonsets"]
    if any("emptyDir" in volume for pod in leaving for volume in iterate_objects(pod, "spec", "volumes")):
        flags.append("--delete-emptydir-data")
    if not all(map(find_owner, leaving)):
        # Nothing makes these pods again.
        flags.append("--force")
    return [f"kubectl cordon {node}", f"kubectl drain {node} {' '.join(flags)}"]
