"""Wanted pods of one shape: how many start now and where, what the next one lacks, and what would take the others."""

import math
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from engine.capacity.added_nodes import Addition, adding_nodes
from engine.capacity.per_node import CopiesByNode, count_by_node, measure_capacity
from engine.capacity.releases import find_release
from engine.diagnosis.texts import write_phrase
from engine.fit.judge.copies import CopyCounter
from engine.simulation.cluster import SimulationCluster
from engine.simulation.gangs import find_gang
from engine.simulation.setting import SimulationSetting
from engine.simulation.simulate import simulate_workloads
from engine.simulation.verdict import PodOutcome, judge_simulated
from engine.simulation.workloads import MAX_PODS, PodTemplate
from engine.snapshot.quantity import PODS
from schemas.answers.capacity import Fits, NodeCapacity, NodesToAdd, ReleasingPod
from schemas.answers.diagnosis import Diagnosis, InBothLanguages
from schemas.answers.suggestions import SuggestedChange

MAX_NODES: Final = 20
"""Limit of the nodes that an answer names."""
MAX_KINDS: Final = 12
"""Limit of the kinds of nodes that are tried as additions."""
MAX_PLACED: Final = 20_000
"""Limit of pods x nodes up to which all pods before the first that waits are placed, to say why it waits."""


class _Obstacle(NamedTuple):
    sentence: InBothLanguages | None
    change: SuggestedChange | None


def plan_starts(
    cluster: SimulationCluster,
    template: PodTemplate,
    wanted: int,
    additions: Sequence[Addition],
    setting: SimulationSetting,
) -> Fits:
    """Plan the start of ``wanted`` copies of a pod. Raises `PodRejectedError`, `AdditionError`."""
    with adding_nodes(cluster, additions) as (extended, names):
        capacity = measure_capacity(extended, template, setting)
        gang = find_gang(template, cluster.objects)
        minimum = min(gang.minimum, wanted) if gang else 0
        starts = min(wanted, capacity.total) if capacity.total >= minimum else 0
        waiting = wanted - starts
        reason = _explain(extended, template, capacity, wanted, setting) if waiting else _Obstacle(None, None)
        release = find_release(extended, capacity, waiting, setting) if waiting else None
        ranked = sorted(capacity.copies.items(), key=lambda entry: (-entry[1], entry[0]))
        return Fits(
            name=template.name,
            wanted=wanted,
            starts=starts,
            capacity=capacity.total,
            is_counted=capacity.is_counted,
            node_count=len(ranked),
            nodes=[NodeCapacity(node=name, pods=count) for name, count in ranked[:MAX_NODES]],
            added=names,
            sentence=_write_sentence(capacity, wanted, starts, minimum),
            obstacle=reason.sentence,
            change=reason.change,
            next_end=ReleasingPod(namespace=release.namespace, name=release.name, node=release.node, pods=release.gain)
            if release
            else None,
            to_add=_list_additions(extended, names, template, capacity.total, wanted, setting) if waiting else [],
        )


def _write_sentence(capacity: CopiesByNode, wanted: int, starts: int, minimum: int) -> InBothLanguages:
    nodes = len(capacity.copies)
    if starts == wanted:
        return write_phrase(
            "fits_one" if wanted == 1 else "fits_all", wanted=wanted, capacity=capacity.total, nodes=nodes
        )
    if starts:
        return write_phrase("fits_some", wanted=wanted, starts=starts, nodes=nodes)
    if capacity.total:
        return write_phrase("fits_no_gang", wanted=wanted, minimum=minimum, capacity=capacity.total)
    return write_phrase("fits_not" if wanted == 1 else "fits_none", wanted=wanted)


def _explain(
    cluster: SimulationCluster, template: PodTemplate, capacity: CopiesByNode, wanted: int, setting: SimulationSetting
) -> _Obstacle:
    """Explain why the first pod waits that does, with those before it in place."""
    placed = min(capacity.total + 1, wanted)
    if placed > MAX_PODS or placed * cluster.node_count > MAX_PLACED:
        return _Obstacle(None, None)
    answer = simulate_workloads(cluster, [template], placed if placed > 1 else None, setting)
    diagnosis = Diagnosis.model_validate(answer["diagnosis"]) if answer["diagnosis"] else None
    items = (answer["suggestions"] or {}).get("items", ())
    change = next((SuggestedChange.model_validate(item) for item in items), None)
    return _Obstacle(diagnosis.sentence if diagnosis else InBothLanguages.model_validate(answer["sentence"]), change)


def _list_additions(
    cluster: SimulationCluster,
    added: Sequence[str],
    template: PodTemplate,
    capacity: int,
    wanted: int,
    setting: SimulationSetting,
) -> list[NodesToAdd]:
    """List the kinds of nodes that take the waiting pods, with the number of nodes, fewest first."""
    waiting = wanted - capacity
    additions = []
    for like, models in iterate_kinds(cluster, added):
        copies = _count_on_added(cluster, template, like, setting)
        if copies:
            nodes = math.ceil(waiting / copies)
            additions.append(NodesToAdd(like=like, models=models, nodes=nodes, pods_each=copies))
    return sorted(additions, key=lambda addition: (addition.nodes, addition.like))


def iterate_kinds(cluster: SimulationCluster, added: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Iterate over one node, the first by name, of each kind of devices and amounts, with its models."""
    kinds: dict[object, tuple[str, list[str]]] = {}
    for name in sorted({*cluster.snapshot.nodes, *cluster.columns.node_names}.difference(added)):
        registration = cluster.columns.get_registration(name)
        devices = registration.devices if registration else ()
        info = cluster.snapshot.nodes.get(name)
        amounts = info.node.allocatable if info else {}
        if not devices and not any("/" in resource for resource in amounts):
            continue
        models = sorted({device.model for device in devices})
        key = (
            tuple(sorted((device.model, device.memory_mib) for device in devices)),
            tuple(sorted((resource, amount) for resource, amount in amounts.items() if resource != PODS)),
        )
        kinds.setdefault(key, (name, models))
    yield from list(kinds.values())[:MAX_KINDS]


def _count_on_added(cluster: SimulationCluster, template: PodTemplate, like: str, setting: SimulationSetting) -> int:
    """Count the copies that an empty node like this one takes."""
    with adding_nodes(cluster, [Addition(like, 1)]) as (extended, (name,)):
        pod = template.build_pod(0, MAX_PODS)
        verdict = judge_simulated(extended, pod, setting.identity, setting.policy, setting.now)
        if verdict.outcome is not PodOutcome.FITS or name not in verdict.fitting:
            return 0
        copies = count_by_node(extended, verdict, CopyCounter(extended.columns, setting.policy))
        # Copies with rules about each other: one is certain.
        return 1 if copies is None else copies.get(name, 0)
