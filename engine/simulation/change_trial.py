"""One set of changes of a pod and its cluster: the edits, the objects after them, and the proof by judging again."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from engine.fit.judge.decision import Grant
from engine.simulation.cluster import DescribedObjects, SimulationCluster
from engine.simulation.setting import SimulationSetting
from engine.simulation.verdict import PodOutcome, PodVerdict, judge_created
from engine.snapshot.reading import ObjectKey, change_snapshot
from engine.suggestions.answer import write_edits
from engine.suggestions.suggestion import ADMINISTRATORS, COSTS, Edit
from runtime.kubernetes.object_fields import get_text
from schemas.answers.diagnosis import Actor
from schemas.answers.suggestions import ContainerDevices, SuggestedChange, SuggestedEdit
from schemas.json_types import Json

_READ_AS_OBJECTS: Final = ("ResourceClaimTemplate", "ResourceQuota")
"""Kinds that the creation of a pod reads from the plain objects."""


@dataclass(frozen=True, slots=True)
class ChangeTrial:
    """Edits after which a node would let the pod pass, with the changed pod and cluster."""

    edits: tuple[Edit, ...]
    pod: Json
    objects: tuple[Json, ...] = ()
    """Changed and new objects of the cluster."""
    removed: tuple[ObjectKey, ...] = ()

    @property
    def cost(self) -> float:
        """Sum of what the edits give up."""
        return sum(COSTS[edit.constraint] * edit.share for edit in self.edits)

    def covers(self, other: "ChangeTrial") -> bool:
        """Tell whether the edits of the other trial are among these, each giving up no more."""
        shares = {(edit.constraint, edit.where): edit.share for edit in self.edits}
        return all(edit.share <= shares.get((edit.constraint, edit.where), -1.0) for edit in other.edits)


def prove_trial(
    cluster: SimulationCluster, verdict: PodVerdict, trial: ChangeTrial, setting: SimulationSetting
) -> SuggestedChange | None:
    """Judge the changed pod on the changed cluster; None if it still fits nowhere."""
    admitted = replace(verdict.admitted, pod=trial.pod)
    changed = _change_cluster(cluster, trial)
    after = judge_created(changed, admitted, setting.identity, setting.policy, setting.now)
    if after.outcome is not PodOutcome.FITS or not after.fitting:
        return None
    node = after.node or after.fitting[0]
    return SuggestedChange(
        sentence=write_edits(trial.edits, node),
        who_acts=_find_actor(trial.edits),
        edits=[
            SuggestedEdit(constraint=edit.constraint, where=edit.where, before=edit.before, after=edit.after)
            for edit in trial.edits
        ],
        cost=round(trial.cost, 3),
        node=node,
        devices=_list_devices(after),
        fit_nodes=len(after.fitting),
    )


def _change_cluster(cluster: SimulationCluster, trial: ChangeTrial) -> SimulationCluster:
    snapshot = change_snapshot(cluster.snapshot, trial.objects, trial.removed)
    plain = {_identify(item): item for item in trial.objects if item.get("kind") in _READ_AS_OBJECTS}
    if not plain:
        return replace(cluster, snapshot=snapshot)
    objects = DescribedObjects(plain.get(_identify(item), item) for item in cluster.objects)
    return replace(cluster, snapshot=snapshot, objects=objects)


def _identify(item: Json) -> tuple[str, str, str]:
    return get_text(item, "kind"), get_text(item, "metadata", "namespace"), get_text(item, "metadata", "name")


def _find_actor(edits: Sequence[Edit]) -> Actor:
    constraints = {edit.constraint for edit in edits}
    if constraints & ADMINISTRATORS:
        return "administrator"
    return "wait" if "use" in constraints else "you"


def _list_devices(verdict: PodVerdict) -> list[ContainerDevices]:
    allocation = verdict.decision.allocation if verdict.decision else None
    if verdict.decision is None or allocation is None:
        return []
    pairs: Iterator[tuple[str, Sequence[Grant]]] = (
        (request.name, grants)
        for request, grants in zip(verdict.decision.containers, allocation.containers, strict=True)
    )
    return [
        ContainerDevices(container=name, uuids=[grant.uuid for grant in grants]) for name, grants in pairs if grants
    ]
