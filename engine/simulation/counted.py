"""A pod of HAMi's judged for counting: by kube-scheduler's filters, on one of each kind of equal nodes.

Its devices are counted node by node (`engine.fit.judge.copies`), so the fit is not asked here. Pods of which more
decides are judged in full (`engine.simulation.verdict`), with the same result.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from engine.filters import dynamic_resources
from engine.filters.judgement import JudgedOutcome
from engine.judging import judge_pod
from engine.simulation.admission import admit_pod
from engine.simulation.cluster import SimulationCluster, find_unread_kinds
from engine.simulation.creation import create_pod, find_refusal
from engine.simulation.equal_nodes import is_about_amounts
from engine.simulation.ignored_words import find_table_obstacles
from engine.simulation.setting import SimulationSetting
from engine.simulation.verdict import (
    PodOutcome,
    PodVerdict,
    list_passing,
    serves,
    without_resources,
)
from engine.snapshot.fields import RejectedObject
from runtime.kubernetes.object_fields import get_object


def judge_for_counting(
    cluster: SimulationCluster, pod: Mapping[str, Any], setting: SimulationSetting
) -> PodVerdict | None:
    """Judge by the filters alone; None where they refuse every node, or where more than amounts decides."""
    kinds = cluster.node_kinds.read(cluster.snapshot)
    created = create_pod(cluster, pod)
    admitted = admit_pod(created.pod, cluster.vendors, cluster.columns.quotas, has_hami=serves(cluster, pod))
    if kinds is None or created.refusal or admitted.denial or not admitted.is_hamis:
        return None
    if not is_about_amounts(get_object(admitted.pod, "spec")) or find_refusal(cluster, admitted.pod):
        return None
    judged = without_resources(admitted.pod, cluster.managed_resources)
    unread = find_unread_kinds(judged, cluster.objects, cluster.listed, has_pods=cluster.has_pods)
    if unread or cluster.snapshot.unread or find_table_obstacles(cluster, admitted.pod, admitted):
        return None
    inventory = cluster.devices.read(kinds.snapshot)
    judgement = judge_pod(kinds.snapshot, judged, inventory=inventory, now=setting.now)
    if isinstance(judgement, RejectedObject) or judgement.outcome is not JudgedOutcome.FITS:
        return None
    if dynamic_resources.NAME not in judgement.skipped:
        return None
    passing = (*kinds.list_equal(list_passing(judgement)), *cluster.unfiltered)
    return PodVerdict(
        pod=admitted.pod,
        admitted=replace(admitted, notes=(*created.notes, *admitted.notes)),
        outcome=PodOutcome.FITS,
        node=None,
        fitting=passing,
        total=cluster.node_count,
        judgement=judgement,
        obstacles=(),
        unread=frozenset(),
        decision=None,
        events=(),
        asks_devices=True,
        vendors=cluster.vendors,
    )
