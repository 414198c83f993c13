"""Pods of a file on a described cluster: the answer of ``schedulerlog simulate`` and of the API."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from engine.diagnosis.outcome import FoundObstacle
from engine.diagnosis.texts import write_phrase
from engine.diagnosis.wording import shorten_list
from engine.simulation.answer import build_answer
from engine.simulation.cluster import SimulationCluster
from engine.simulation.gangs import describe_gangs, find_gang
from engine.simulation.ignored_words import (
    TABLE_UNKNOWN,
    describe_keys,
    describe_misplaced,
    describe_quotas,
    describe_resource,
    describe_values,
    list_unknown_resources,
)
from engine.simulation.object_quotas import describe_object_quotas
from engine.simulation.pod_placer import PodPlacer, placing_pods
from engine.simulation.proved_changes import ProvedChanges, find_changes
from engine.simulation.requests import describe_uncounted
from engine.simulation.setting import Note, SimulationSetting
from engine.simulation.verdict import (
    PodOutcome,
    PodRejectedError,
    PodVerdict,
    judge_simulated,
    list_resources,
    serves,
)
from engine.simulation.workloads import MAX_PODS, PodTemplate
from engine.snapshot.reading import change_snapshot
from runtime.kubernetes.object_fields import get_text
from schemas.json_types import Json


@dataclass(frozen=True, slots=True)
class PlacedPods:
    """Pods that were placed one after the other, and the one to explain: the first that waits."""

    cluster: SimulationCluster
    """The cluster with what the pods before it take."""
    verdicts: tuple[PodVerdict, ...]
    position: int
    notes: tuple[Note, ...]

    @property
    def verdict(self) -> PodVerdict:
        """Verdict on the pod to explain."""
        return self.verdicts[self.position]


def simulate_workloads(
    cluster: SimulationCluster, workloads: Sequence[PodTemplate], count: int | None, setting: SimulationSetting
) -> Json:
    """Place the pods one after the other, and build the answer. Raises `PodRejectedError`.

    count: pods of each workload; None for one of each.
    """
    with place_workloads(cluster, workloads, count, setting) as placement:
        changes = ProvedChanges()
        if placement.verdict.outcome is PodOutcome.REFUSED:
            changes = find_changes(placement.cluster, placement.verdict, setting)
        return answer_placement(placement, changes, setting)


def answer_placement(placement: PlacedPods, changes: ProvedChanges, setting: SimulationSetting) -> Json:
    """Build the answer about pods that were placed."""
    several = placement.verdicts if len(placement.verdicts) > 1 else ()
    notes = [*placement.notes, *setting.notes]
    return build_answer(placement.verdict, changes, notes, several, setting.cluster_name, setting.now)


@contextmanager
def place_workloads(
    cluster: SimulationCluster, workloads: Sequence[PodTemplate], count: int | None, setting: SimulationSetting
) -> Iterator[PlacedPods]:
    """Pods placed one after the other; the cluster's columns hold what they take until the end of the context.

    Without a count, a workload whose pods start only together has as many as that takes. Raises `PodRejectedError`.
    """
    gangs = [find_gang(workload, cluster.objects) for workload in workloads]
    counts = [count or (gang.size if gang else 1) for gang in gangs]
    pods = [
        (workload, pod)
        for workload, number in zip(workloads, counts, strict=True)
        for pod in _build_pods(cluster, workload, number)
    ]
    if len(pods) > MAX_PODS and count is None:
        raise PodRejectedError(f"the gang has {len(pods)} pods; at most {MAX_PODS} are placed, give a --count")
    with placing_pods(cluster) as placer:
        placed = _judge_in_turn(placer, pods, count, setting)
        verdicts = list(zip([workload for workload, _ in pods], placed.verdicts, strict=True))
        of_gangs = describe_gangs([gang for gang in gangs if gang], verdicts)
        yield replace(placed, notes=(*of_gangs, *placed.notes))


def _build_pods(cluster: SimulationCluster, workload: PodTemplate, number: int) -> list[Json]:
    """Build the pods to place; a name that a pod of the cluster has is passed over, or that pod would be replaced."""
    pods: list[Json] = []
    for index in itertools.count():
        if len(pods) == number:
            break
        pod = workload.build_pod(index, number)
        key = pod["metadata"]["namespace"], pod["metadata"]["name"]
        if number == 1 or key not in cluster.snapshot.pods:
            pods.append(pod)
    return pods


def _judge_in_turn(
    placer: PodPlacer, pods: Sequence[tuple[PodTemplate, Json]], count: int | None, setting: SimulationSetting
) -> PlacedPods:
    verdicts = list[PodVerdict]()
    is_uniform = len({id(workload) for workload, _ in pods}) == 1
    for workload, pod in pods:
        placer.cluster = _without_itself(placer.cluster, workload)
        verdict = judge_simulated(placer.cluster, pod, setting.identity, setting.policy, setting.now)
        verdicts.append(verdict)
        if verdict.outcome is not PodOutcome.FITS:
            # Pods of one shape wait behind the first of them; pods of others may still fit.
            if is_uniform:
                break
        elif len(pods) > 1:
            placer.bind(verdict)
    position = next((n for n, verdict in enumerate(verdicts) if verdict.outcome is not PodOutcome.FITS), 0)
    workload, written = pods[position]
    is_one = count is None and len(pods) == 1
    notes = tuple(_iterate_notes(placer.cluster, workload, written, verdicts[position], is_one=is_one))
    verdicts += [replace(verdicts[-1], pod=pod) for _, pod in pods[len(verdicts) :]]
    return PlacedPods(placer.cluster, tuple(verdicts), position, notes)


def _without_itself(cluster: SimulationCluster, workload: PodTemplate) -> SimulationCluster:
    """Return the cluster without the pod that is judged again."""
    metadata = workload.pod["metadata"]
    key = ("Pod", metadata["namespace"], metadata["name"])
    if workload.kind != "Pod" or (metadata["namespace"], metadata["name"]) not in cluster.snapshot.pods:
        return cluster
    return replace(cluster, snapshot=change_snapshot(cluster.snapshot, removed=[key]))


def _iterate_notes(
    cluster: SimulationCluster,
    workload: PodTemplate,
    written: Mapping[str, Any],
    verdict: PodVerdict,
    *,
    is_one: bool,
) -> Iterator[Note]:
    yield from _describe_workload(workload, is_one=is_one)
    yield from describe_object_quotas(cluster, workload)
    yield from describe_misplaced(workload, cluster.vendors)
    yield from describe_uncounted(written, cluster.vendors)
    yield from verdict.notes
    if not serves(cluster, written):
        yield from _describe_absence(cluster, written)
    yield from _describe_words(cluster, written, verdict.obstacles)
    yield from _describe_cluster(cluster, verdict)


def describe_ignored(
    cluster: SimulationCluster, workload: PodTemplate, obstacles: Sequence[FoundObstacle]
) -> Iterator[Note]:
    """Describe what the owner of a pod wrote and no scheduler reads, or reads otherwise; ``obstacles``: of the pod."""
    yield from describe_misplaced(workload, cluster.vendors)
    yield from describe_uncounted(workload.pod, cluster.vendors)
    yield from _describe_words(cluster, workload.pod, obstacles)


def _describe_words(
    cluster: SimulationCluster, written: Mapping[str, Any], obstacles: Sequence[FoundObstacle]
) -> Iterator[Note]:
    if serves(cluster, written):
        yield from describe_keys(written, cluster.vendors)
        yield from describe_values(written, cluster.vendors, cluster.columns)
        if all(obstacle.code != TABLE_UNKNOWN for obstacle in obstacles):
            for resource in list_unknown_resources(written, cluster.vendors):
                yield describe_resource(resource, cluster.snapshot, cluster.vendors)
    yield from describe_quotas(cluster.list_kind("ResourceQuota"), written, cluster.vendors)


def _describe_workload(workload: PodTemplate, *, is_one: bool) -> Iterator[Note]:
    name = f"{workload.kind}/{workload.name}"
    if workload.kind != "Pod" and is_one:
        if workload.replicas > 1:
            yield Note("OneOfWorkload", write_phrase("note_one_of", workload=name, n=workload.replicas))
        else:
            yield Note("FromTemplate", write_phrase("note_template", workload=name))
    if workload.node:
        yield Note("JudgedAgain", write_phrase("note_again", node=workload.node))


def _describe_absence(cluster: SimulationCluster, written: Mapping[str, Any]) -> Iterator[Note]:
    if cluster.managed_resources & list_resources(written):
        yield Note("NoHami", write_phrase("note_no_hami"))


def _describe_cluster(cluster: SimulationCluster, verdict: PodVerdict) -> Iterator[Note]:
    if cluster.has_pods and not cluster.snapshot.pods:
        yield Note("NoPods", write_phrase("note_no_pods"))
    elif not cluster.has_pods:
        phrase = "note_pods_unread" if cluster.snapshot.nodes else "note_nodes_unread"
        yield Note("NotFiltered", write_phrase(phrase))
    scheduler = get_text(verdict.pod, "spec", "schedulerName")
    if verdict.unrecorded:
        names = shorten_list(sorted(verdict.unrecorded))
        yield Note("DevicesNotRecorded", write_phrase("note_unrecorded", n=len(verdict.unrecorded), nodes=names))
    if left_out := [name for name, cause in cluster.withheld.get(scheduler, {}).items() if not cause]:
        selector, listed = cluster.selectors[scheduler], shorten_list(sorted(left_out))
        words_of_selector = write_phrase(
            "note_selector", scheduler=scheduler, labels=selector, n=len(left_out), nodes=listed
        )
        yield Note("NodesNotSelected", words_of_selector)
    if cluster.snapshot.nodes and cluster.unfiltered:
        yield Note("NotFiltered", write_phrase("note_some_unread", n=len(cluster.unfiltered)))
    request = verdict.judgement.request if verdict.judgement else {}
    assumed = {name: nodes for name, nodes in cluster.assumptions.amounts.items() if request.get(name)}
    if assumed:
        nodes = sorted({node for nodes in assumed.values() for node in nodes})
        words = {"resources": shorten_list(sorted(assumed)), "nodes": shorten_list(nodes)}
        yield Note("AmountsAssumed", write_phrase("note_amounts", **words))
    if cluster.assumptions.device_classes and verdict.pod["spec"].get("resourceClaims"):
        classes = shorten_list(cluster.assumptions.device_classes)
        yield Note("ClassesAssumed", write_phrase("note_classes", classes=classes))
    if verdict.unread:
        yield Note("KindsUnread", write_phrase("note_unread", kinds=shorten_list(sorted(verdict.unread))))
    if verdict.asks_devices:
        for node, (annotation, value) in cluster.deleted_handshakes.items():
            release = str(cluster.release)
            words_of_node = write_phrase("note_deleted", node=node, annotation=annotation, value=value, release=release)
            yield Note("DeletedHandshake", words_of_node)
