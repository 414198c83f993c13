"""Pods whose end makes room: how many more copies of a pod start after one of them has ended."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, NamedTuple

from engine.capacity.per_node import MAX_COPIES, CopiesByNode, count_by_resources, has_rules
from engine.diagnosis.layers.reservations import RESERVATIONS
from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.devices.pod_usage import has_ended
from engine.fit.judge.copies import CopyCounter
from engine.simulation.cluster import SimulationCluster
from engine.simulation.setting import SimulationSetting
from engine.simulation.verdict import PodVerdict, judge_simulated
from engine.snapshot.node_info import NodeInfo
from engine.snapshot.reading import change_snapshot
from runtime.kubernetes.object_fields import get_text
from schemas.json_types import Json

MAX_PODS: Final = 500
"""Limit of the pods whose end is tried, those with most devices first."""
MAX_PROOFS: Final = 5


class Release(NamedTuple):
    """A pod, and the number of further copies that start after its end."""

    namespace: str
    name: str
    node: str
    gain: int


def find_release(
    cluster: SimulationCluster, capacity: CopiesByNode, wanted: int, setting: SimulationSetting
) -> Release | None:
    """Find the pod whose end lets most of ``wanted`` further copies start, proved by judging without it.

    None where no single end lets one start, and where copies decide about each other's nodes.
    """
    if capacity.verdict.judgement is None or has_rules(capacity.verdict):
        return None
    releases = [release for pod in _list_running(cluster) if (release := _try_end(cluster, capacity, pod, setting))]
    ranked = sorted(releases, key=lambda release: (-min(release.gain, wanted), release.gain, release[:3]))
    return next((release for release in ranked[:MAX_PROOFS] if _is_proved(cluster, capacity, release, setting)), None)


def _list_running(cluster: SimulationCluster) -> list[Json]:
    running = [
        pod
        for pod in cluster.list_kind("Pod")
        # A pod that reserves a device for KAI ends by itself, after those that share the device.
        if get_text(pod, "spec", "nodeName")
        and not has_ended(pod)
        and get_text(pod, "metadata", "namespace") != RESERVATIONS
    ]
    return sorted(running, key=lambda pod: -_count_devices(cluster.columns, pod))[:MAX_PODS]


def _count_devices(columns: ClusterColumns, pod: Mapping[str, Any]) -> int:
    use = columns.get_pod_use(get_text(pod, "metadata", "uid"))
    return len(use.by_uuid) if use else 0


def _try_end(
    cluster: SimulationCluster, capacity: CopiesByNode, pod: Mapping[str, Any], setting: SimulationSetting
) -> Release | None:
    """Count the copies that the pod's node takes after its end; None if they are no more than before."""
    node = get_text(pod, "spec", "nodeName")
    namespace, name = get_text(pod, "metadata", "namespace"), get_text(pod, "metadata", "name")
    info = cluster.snapshot.nodes.get(node)
    parsed = cluster.snapshot.pods.get((namespace, name))
    if info is None or parsed is None:
        return None
    with ending_pods(cluster.columns, [get_text(pod, "metadata", "uid")]):
        after = count_on_node(cluster, capacity.verdict, info.without_pods([parsed]), setting) or 0
    gain = after - capacity.copies.get(node, 0)
    return Release(namespace, name, node, gain) if gain > 0 else None


@contextmanager
def ending_pods(columns: ClusterColumns, uids: Iterable[str]) -> Iterator[None]:
    """Columns without what the pods hold."""
    uses = {uid: use for uid in uids if (use := columns.get_pod_use(uid))}
    for uid in uses:
        columns.delete_pod(uid)
    try:
        yield
    finally:
        for uid, use in uses.items():
            columns.hold(uid, use)


def count_on_node(
    cluster: SimulationCluster, verdict: PodVerdict, info: NodeInfo, setting: SimulationSetting
) -> int | None:
    """Count the copies of a pod that a node takes by its amounts; None where copies can't be counted by them."""
    limit = min(MAX_COPIES, count_by_resources(verdict, info))
    if not verdict.asks_devices:
        return limit
    counts = CopyCounter(cluster.columns, setting.policy).count_copies(verdict.pod, [info.name], limit)
    return None if counts is None else int(counts[0])


def _is_proved(
    cluster: SimulationCluster, capacity: CopiesByNode, release: Release, setting: SimulationSetting
) -> bool:
    """Tell whether the pod fits the node of the release where the ending pod was."""
    key = ("Pod", release.namespace, release.name)
    ending = cluster.snapshot.pods[release.namespace, release.name]
    emptied = replace(cluster, snapshot=change_snapshot(cluster.snapshot, removed=[key]))
    with ending_pods(cluster.columns, [ending.uid]):
        verdict = judge_simulated(emptied, capacity.verdict.pod, setting.identity, setting.policy, setting.now)
    return release.node in verdict.fitting
