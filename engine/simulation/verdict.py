"""One pod judged on a cluster: kube-scheduler's filters first, then HAMi's fit on the nodes that pass.

A resource of the device table is the extender's (``ignoredByScheduler`` in KubeSchedulerConfiguration), so the filters
do not count it for a pod of HAMi's scheduler. For any other pod they count everything.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from engine.diagnosis.judged_nodes import derive_judged_obstacles
from engine.diagnosis.outcome import FoundObstacle, Word
from engine.diagnosis.wording import shorten_list
from engine.filters.judgement import JudgedOutcome, Judgement, count_reasons
from engine.fit.events.attempt import Identity
from engine.fit.judge.decide import decide
from engine.fit.judge.decision import Decision, SchedulingPolicy
from engine.fit.simulate import build_attempt_events
from engine.hami.vendors import Vendors
from engine.judging import judge_pod
from engine.simulation.admission import AdmittedPod, admit_pod
from engine.simulation.claim_templates import make_claims
from engine.simulation.cluster import SimulationCluster, find_unread_kinds
from engine.simulation.creation import create_pod, find_refusal
from engine.simulation.device_parts import PartsRefused, refuse_parts
from engine.simulation.ignored_words import find_table_obstacles
from engine.simulation.kai_shares import SharesRefused, refuse_shares
from engine.simulation.picked_devices import TriedDevice, list_devices
from engine.simulation.setting import Note
from engine.snapshot import kinds
from engine.snapshot.fields import RejectedObject
from engine.summaries.fold import summarize
from runtime.kubernetes.object_fields import get_object, get_text, iterate_objects
from schemas.events import AttemptEvent, AttemptSummarized
from schemas.json_types import Json

_CONTAINERS: Final = ("initContainers", "containers")


class PodOutcome(StrEnum):
    """PodOutcome for one pod."""

    FITS = "fits"
    REFUSED = "refused"
    OPEN = "open"
    """Objects that decide are not described."""


@dataclass(frozen=True, slots=True)
class PodVerdict:
    """A pod, what the filters and the fit made of it, and why."""

    pod: Json
    """The pod as it was admitted."""
    admitted: AdmittedPod
    outcome: PodOutcome
    node: str | None
    """The chosen node; None also where kube-scheduler's scores would choose among several."""
    fitting: tuple[str, ...]
    total: int
    """Nodes of the cluster."""
    judgement: Judgement | None
    obstacles: tuple[FoundObstacle, ...]
    """Obstacles without the reasons of devices, which are the attempt's."""
    unread: frozenset[str]
    """Kinds without which no verdict is certain."""
    decision: Decision | None
    events: tuple[AttemptEvent, ...]
    asks_devices: bool
    """True if HAMi's scheduler counts a device for the pod."""
    vendors: Vendors = ()
    """Device table of the cluster."""
    unrecorded: frozenset[str] = frozenset()
    """Nodes that pass the filters, and whose devices are not recorded (`SimulationCluster.list_unrecorded`)."""
    details: Mapping[str, str] = field(default_factory=dict)
    """By node, the reasons of its devices, where Koordinator or Volcano gives parts of them."""

    @property
    def attempt(self) -> AttemptSummarized | None:
        """The simulated attempt of HAMi's scheduler; None if it was not asked."""
        return summarize(list(self.events)) if self.events else None

    @property
    def devices(self) -> list[TriedDevice]:
        """Devices of the chosen node."""
        return list_devices(self.decision) if self.decision else []

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes about the admission."""
        return self.admitted.notes


class PodRejectedError(ValueError):
    """A field of the pod holds what no API server takes; the text has the field, the cause and the next step."""


def judge_simulated(
    cluster: SimulationCluster,
    pod: Mapping[str, Any],
    identity: Identity,
    policy: SchedulingPolicy,
    now: datetime,
    *,
    explains: bool = True,
) -> PodVerdict:
    """Judge the pod as the whole cluster would; nothing of the cluster changes. Raises `PodRejectedError`.

    explains: whether the verdict has the obstacles of refused nodes, which take most of the time.
    """
    created = create_pod(cluster, pod)
    admitted = admit_pod(created.pod, cluster.vendors, cluster.columns.quotas, has_hami=serves(cluster, pod))
    admitted = replace(admitted, notes=(*created.notes, *admitted.notes))
    if created.refusal:
        return _build_denied(cluster, admitted, created.refusal)
    if admitted.denial:
        namespace = get_text(admitted.pod, "metadata", "namespace")
        words: dict[str, Word] = {"words": admitted.denial, "namespace": namespace}
        return _build_denied(cluster, admitted, FoundObstacle("AdmissionDenied", words))
    return judge_created(cluster, admitted, identity, policy, now, explains=explains)


def judge_created(
    cluster: SimulationCluster,
    admitted: AdmittedPod,
    identity: Identity,
    policy: SchedulingPolicy,
    now: datetime,
    *,
    explains: bool = True,
) -> PodVerdict:
    """Judge a pod that webhooks have let in: bounds and quotas of its namespace first, unless it exists already."""
    if refusal := find_refusal(cluster, admitted.pod):
        return _build_denied(cluster, admitted, refusal.describe())
    return judge_admitted(cluster, admitted, identity, policy, now, explains=explains)


def serves(cluster: SimulationCluster, pod: Mapping[str, Any]) -> bool:
    """Tell whether HAMi places the pod: the cluster has it, or the pod asks for a share, which only HAMi gives."""
    shares = {
        name
        for vendor in cluster.vendors
        for name in (vendor.resources.memory, vendor.resources.percentage, vendor.resources.cores)
        if name
    }
    return cluster.has_hami or not shares.isdisjoint(list_resources(pod))


def list_resources(pod: Mapping[str, Any]) -> set[str]:
    """List the resources that containers of the pod name, in limits or requests."""
    return {
        name
        for field in _CONTAINERS
        for container in iterate_objects(pod, "spec", field)
        for amounts in ("limits", "requests")
        for name in get_object(container, "resources", amounts)
    }


def judge_admitted(
    cluster: SimulationCluster,
    admitted: AdmittedPod,
    identity: Identity,
    policy: SchedulingPolicy,
    now: datetime,
    *,
    explains: bool = True,
) -> PodVerdict:
    """Judge a pod that was admitted."""
    pod, claims = make_claims(admitted.pod, cluster.objects)
    here = cluster.with_objects(claims) if claims else cluster
    judged = without_resources(pod, cluster.managed_resources) if admitted.is_hamis else pod
    listed = cluster.listed | {kinds.RESOURCE_CLAIM} if claims else cluster.listed
    unread = find_unread_kinds(judged, cluster.objects, listed, has_pods=cluster.has_pods)
    snapshot = replace(here.snapshot, unread=here.snapshot.unread | unread)
    inventory = here.devices.read(snapshot)
    judgement = judge_pod(snapshot, judged, inventory=inventory, now=now, alone=explains)
    if isinstance(judgement, RejectedObject):
        raise PodRejectedError(judgement.to_sentence())
    # What the pod asks for under names of another table is unknown, and not missing.
    renamed = find_table_obstacles(cluster, pod, admitted)
    obstacles = renamed or (tuple(derive_judged_obstacles(snapshot, judgement)) if explains else ())
    passing = (*list_passing(judgement), *_list_unfiltered(cluster, judgement))
    verdict = PodVerdict(
        pod=pod,
        admitted=admitted,
        outcome=_classify(judgement, passing),
        node=passing[0] if len(passing) == 1 and judgement.total else None,
        fitting=passing,
        total=cluster.node_count,
        judgement=judgement,
        obstacles=obstacles,
        unread=unread | snapshot.unread if judgement.outcome is JudgedOutcome.OPEN else frozenset(),
        decision=None,
        events=(),
        asks_devices=False,
        vendors=cluster.vendors,
    )
    if renamed:
        return replace(verdict, outcome=PodOutcome.REFUSED, node=None, fitting=())
    if admitted.is_hamis:
        return _ask_fit(cluster, verdict, identity, policy, now)
    offered = snapshot, pod, verdict.fitting, cluster.node_count
    return _refuse_shares(verdict, refuse_shares(*offered) or refuse_parts(*offered))


def list_passing(judgement: Judgement) -> tuple[str, ...]:
    """List the nodes that the filters let pass, and those of which unread objects leave it open."""
    # An error on one node ends the attempt, whatever the others would do.
    if judgement.pre_enqueue or judgement.prefilter or judgement.outcome is JudgedOutcome.ERROR:
        return ()
    return (*judgement.fitting, *judgement.undecided)


def _list_unfiltered(cluster: SimulationCluster, judgement: Judgement) -> tuple[str, ...]:
    """List the nodes that the filters can't judge; none if they refuse the pod as such."""
    return () if judgement.pre_enqueue or judgement.prefilter else cluster.unfiltered


def _classify(judgement: Judgement, passing: Sequence[str]) -> PodOutcome:
    if judgement.outcome is JudgedOutcome.OPEN:
        return PodOutcome.OPEN
    return PodOutcome.FITS if passing else PodOutcome.REFUSED


def _refuse_shares(verdict: PodVerdict, shares: SharesRefused | PartsRefused | None) -> PodVerdict:
    """Take the nodes away on which a scheduler finds no device for the pod's part of one."""
    judgement = verdict.judgement
    if shares is None or judgement is None:
        return verdict
    fitting = tuple(name for name in verdict.fitting if name not in shares.nodes)
    refused = replace(
        judgement,
        refused={**judgement.refused, **shares.nodes},
        fitting=tuple(name for name in judgement.fitting if name not in shares.nodes),
        counts={**judgement.counts, **count_reasons(shares.nodes, 0, "")},
    )
    is_refused = not fitting and verdict.outcome is PodOutcome.FITS
    return replace(
        verdict,
        judgement=refused,
        fitting=fitting,
        outcome=PodOutcome.REFUSED if is_refused else verdict.outcome,
        node=fitting[0] if len(fitting) == 1 else None,
        obstacles=(*verdict.obstacles, shares.describe()),
        details=shares.describe_nodes() if isinstance(shares, PartsRefused) else {},
    )


def _ask_fit(
    cluster: SimulationCluster, verdict: PodVerdict, identity: Identity, policy: SchedulingPolicy, now: datetime
) -> PodVerdict:
    """Ask HAMi's fit for the devices of the nodes that pass."""
    scheduler = get_text(verdict.pod, "spec", "schedulerName")
    if withheld := cluster.withheld.get(scheduler):
        # The answer names the scheduler that leaves nodes to another one.
        identity = identity._replace(scheduler=scheduler)
    unrecorded = cluster.list_unrecorded(scheduler) & set(verdict.fitting)
    offered = [name for name in verdict.fitting if name not in unrecorded]
    answer = decide(cluster.columns, verdict.pod, offered, policy, withheld)
    events = build_attempt_events(answer, len(offered), verdict.pod, cluster.vendors, identity, now)
    if not events:
        unread = _list_unread_amounts(cluster, verdict.pod)
        return _refuse_unread(verdict, unread) if unread else verdict
    if not verdict.fitting:
        # No node was offered: there is no attempt to tell of.
        return replace(verdict, asks_devices=True)
    decision = answer if isinstance(answer, Decision) else None
    fitting = tuple(name for name, _ in decision.list_fitting()) if decision else ()
    outcome = verdict.outcome if fitting else PodOutcome.REFUSED
    if unrecorded and decision and not fitting:
        # Its scheduler may find a device there.
        outcome, fitting = PodOutcome.OPEN, tuple(sorted(unrecorded))
    return replace(
        verdict,
        outcome=outcome,
        node=decision.chosen if decision else None,
        fitting=fitting,
        unrecorded=unrecorded,
        decision=decision,
        events=tuple(events),
        asks_devices=True,
    )


def _list_unread_amounts(cluster: SimulationCluster, pod: Mapping[str, Any]) -> list[str]:
    """List amounts of devices that the pod names and from which HAMi reads no request; an amount of 0 asks for none."""
    amounts = [
        (name, amount)
        for field in _CONTAINERS
        for container in iterate_objects(pod, "spec", field)
        for key in ("limits", "requests")
        for name, amount in get_object(container, "resources", key).items()
    ]
    managed = cluster.managed_resources
    named = {name: amount for name, amount in amounts if name in managed and str(amount) != "0"}
    return [f"{name}: {amount}" for name, amount in named.items()]


def _refuse_unread(verdict: PodVerdict, amounts: Sequence[str]) -> PodVerdict:
    """Refuse a pod that HAMi's scheduler would hand back: it would start without the devices that it names."""
    obstacle = FoundObstacle("RequestNotRead", {"amounts": shorten_list(amounts)})
    return replace(
        verdict,
        outcome=PodOutcome.REFUSED,
        node=None,
        fitting=(),
        obstacles=(obstacle, *verdict.obstacles),
        asks_devices=True,
    )


def without_resources(pod: Mapping[str, Any], names: frozenset[str]) -> Json:
    """Return the pod without amounts of these resources, which the filters do not count."""
    spec = get_object(pod, "spec")
    listed = {
        field: [_drop_amounts(container, names) for container in iterate_objects(spec, field)]
        for field in _CONTAINERS
        if field in spec
    }
    return {**pod, "spec": {**spec, **listed}}


def _drop_amounts(container: Mapping[str, Any], names: frozenset[str]) -> Json:
    resources = get_object(container, "resources")
    cut = {
        field: {name: amount for name, amount in get_object(resources, field).items() if name not in names}
        for field in ("limits", "requests")
        if field in resources
    }
    return {**container, "resources": {**resources, **cut}}


def _build_denied(cluster: SimulationCluster, admitted: AdmittedPod, obstacle: FoundObstacle) -> PodVerdict:
    return PodVerdict(
        pod=admitted.pod,
        admitted=admitted,
        outcome=PodOutcome.REFUSED,
        node=None,
        fitting=(),
        total=cluster.node_count,
        judgement=None,
        obstacles=(obstacle,),
        unread=frozenset(),
        decision=None,
        events=(),
        asks_devices=True,
    )
