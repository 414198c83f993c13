"""One pod against all offered nodes: the whole decision."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hami import allocation
from hami.allocation import AllocatedDevice, MigAllocation
from hami.annotations import ASSIGNED_NODE, MIG_ALLOCATIONS
from hami.mig import Placement
from hami.reason_codes import ReasonCode
from hami.vendors import Vendors
from scheduler.devices.cluster_state import TOTAL, USED, ClusterColumns
from scheduler.devices.pod_usage import use_of
from scheduler.judge import verdict_codes
from scheduler.judge.batch_evaluation import Trial
from scheduler.judge.decision import (
    Allocation,
    ContainerJudgement,
    Decision,
    Failed,
    Grant,
    MigSlice,
    NotOurs,
    Policy,
    Refusal,
)
from scheduler.judge.device_matrix import Ints, batches
from scheduler.judge.pod_annotations import WeightsError, read_wishes
from scheduler.judge.pod_constraints import Terms, terms_of
from scheduler.judge.reference_fit import Pick
from scheduler.judge.request import ContainerRequest, container_requests
from scheduler.judge.results import Part, join, judgement, refusals_of
from scheduler.judge.scoring import node_scores

__all__ = ["Allocation", "Decision", "Failed", "NotOurs", "Policy", "decide", "release", "reserve"]


def decide(
    columns: ClusterColumns, pod: Mapping[str, Any], node_names: Sequence[str], policy: Policy
) -> Decision | NotOurs | Failed:
    """Judge every card of every offered node for the pod and choose a node.

    What the pod itself holds from an earlier attempt does not count against it. Nothing in `columns` is changed:
    `reserve` does that.
    """
    requests = container_requests(pod, columns.vendors)
    if not any(request.asks for request in requests):
        return NotOurs(requests)
    metadata = _mapping(pod.get("metadata"))
    try:
        terms = dict(_terms(columns, metadata, requests, policy))
    except WeightsError as error:
        return Failed(requests, f"{ReasonCode.CALC_SCORE_FAILED} {error} for pod {metadata.get('name', '')}")
    return _Attempt(terms, requests, tuple(node_names)).conclude()


def _terms(
    columns: ClusterColumns, metadata: Mapping[str, Any], requests: Sequence[ContainerRequest], policy: Policy
) -> Iterator[tuple[str, Terms]]:
    """The pod's terms by vendor that it asks for. Raises WeightsError."""
    annotations = _mapping(metadata.get("annotations"))
    asked = {request.vendor for request in requests if request.asks}
    for vendor in columns.vendors:
        if vendor.word in asked:
            wishes = read_wishes(annotations, policy.node, policy.device, vendor)
            yield vendor.word, terms_of(columns, metadata, wishes, vendor)


class _Attempt:
    """Collects what the batches say, per offered node (n,)."""

    def __init__(
        self, terms: Mapping[str, Terms], requests: tuple[ContainerRequest, ...], names: tuple[str, ...]
    ) -> None:
        self.by_vendor, self.requests, self.names = terms, requests, names
        self.terms = next(iter(terms.values()))
        self.ids = self.terms.columns.ids(names)
        self.verdict = np.full(len(names), verdict_codes.NODE_UNKNOWN)
        self.score = np.zeros(len(names), np.float32)
        self.refused_by = np.full(len(names), -1, np.int64)
        self.refusal = np.full(len(names), -1, np.int64)
        self.refusals: list[Refusal] = []

    def conclude(self) -> Decision:
        judgements = self._judge()
        self._note_unregistered()
        fitting = np.flatnonzero(self.verdict == verdict_codes.NODE_FITS)
        self.score[fitting] = self._scores(self.ids[fitting])
        chosen = self._choose(fitting.tolist())
        given = None
        if chosen is not None:
            self.verdict[chosen] = verdict_codes.NODE_PICKED
            given = _allocate(self.by_vendor, self.requests, self.names[chosen])
        columns, wishes = self.terms.columns, self.terms.wishes
        return Decision(
            containers=self.requests,
            node_names=self.names,
            fragments=columns.fragments(self.ids.tolist()),
            node_verdict=self.verdict,
            score=self.score,
            refused_by=self.refused_by,
            refusal=self.refusal,
            refusals=tuple(self.refusals),
            judgements=judgements,
            kinds=columns.kinds,
            node_policy=wishes.node_policy,
            device_policy=wishes.device_policy,
            chosen=given.node if given else None,
            allocation=given,
            annotations=pod_annotations(given, self.requests, columns.vendors) if given else {},
            labels={ASSIGNED_NODE: given.node} if given else {},
            unregistered_causes=self._causes(),
        )

    def _judge(self) -> tuple[ContainerJudgement, ...]:
        parts: dict[int, list[Part]] = {}
        for cards in batches(self.terms.columns, self.ids, self.terms.code):
            trial = Trial(self.by_vendor, cards)
            for place, request in enumerate(self.requests):
                if request.asks and not trial.is_over:
                    parts.setdefault(place, []).append(trial.judge(request))
            self.verdict[trial.passed] = verdict_codes.NODE_FITS
        joined = {place: join(parts[place]) for place in sorted(parts)}
        for place, part in joined.items():
            self._note_refusals(place, part)
        return tuple(judgement(place, part) for place, part in joined.items())

    def _note_refusals(self, container: int, part: Part) -> None:
        distinct, refused, which = refusals_of(part)
        nodes = part.nodes[refused]
        self.verdict[nodes] = verdict_codes.NODE_REFUSED
        self.refused_by[nodes] = container
        self.refusal[nodes] = which + len(self.refusals)
        self.refusals.extend(distinct)

    def _note_unregistered(self) -> None:
        unknown = self.ids < 0
        if unknown.any():
            self.refusal[unknown] = len(self.refusals)
            self.refusals.append(Refusal((), 0, ReasonCode.NODE_UNREGISTERED.value))

    def _causes(self) -> dict[str, str]:
        unknown = np.flatnonzero(self.ids < 0).tolist()
        found = ((self.names[node], self.terms.columns.unregistered_cause(self.names[node])) for node in unknown)
        return {name: cause for name, cause in found if cause}

    def _scores(self, ids: Ints) -> NDArray[np.float32]:
        nodes = self.terms.columns.nodes
        used, totals = ([nodes[name][ids] for name in names] for names in (USED, TOTAL))
        own = self.terms.own
        entry = self.terms.columns.entry(own.node) if own else None
        if own and entry:
            for uuid, share in own.by_uuid.items():
                times = (ids == entry.id) * len(entry.rows.get(uuid, ()))
                for column, amount in zip(used, (share.slots, share.cores, share.memory_mib), strict=True):
                    column -= times * amount
        return node_scores(used, totals)

    def _choose(self, fitting: list[int]) -> int | None:
        """The best score of the policy; among equals the node whose name sorts first."""
        if not fitting:
            return None
        sign = 1 if self.terms.wishes.node_policy == "spread" else -1
        scores = self.score
        return min(fitting, key=lambda node: (sign * float(scores[node]), self.names[node]))


def _allocate(by_vendor: Mapping[str, Terms], requests: Sequence[ContainerRequest], node: str) -> Allocation:
    """Walk the chosen node once more, card by card, to learn what is taken in which order."""
    first = next(iter(by_vendor.values()))
    (cards,) = batches(first.columns, first.columns.ids([node]), first.code)
    trial = Trial({word: replace(terms, one_by_one=True) for word, terms in by_vendor.items()}, cards)
    given = []
    for request in requests:
        picks: list[Pick] = []
        if request.asks:
            trial.judge(request)
            (picks,) = trial.picks
        given.append(tuple(_grant(pick, request.vendor) for pick in picks))
    return Allocation(node, tuple(given))


def _grant(pick: Pick, vendor: str) -> Grant:
    mig = pick.mig
    part = MigSlice(mig.profile.name, mig.placement.start, mig.placement.size) if mig else None
    return Grant(pick.card.uuid, vendor, pick.memory_mib, pick.cores, part)


def pod_annotations(given: Allocation, requests: Sequence[ContainerRequest], vendors: Vendors) -> dict[str, str]:
    """The annotations that HAMi's filter writes, each vendor's devices under its own keys; not `hami.io/vgpu-time`."""
    written = {ASSIGNED_NODE: given.node}
    for word, held in _held(given, requests).items():
        devices = allocation.encode_devices(held)
        keys = next(vendor.pod for vendor in vendors if vendor.word == word)
        written |= {keys.allocated: devices, keys.to_allocate: devices}
    slices = list(_mig_allocations(given, requests))
    return written | ({MIG_ALLOCATIONS: allocation.encode_mig(slices)} if slices else {})


def _held(given: Allocation, requests: Sequence[ContainerRequest]) -> dict[str, list[list[AllocatedDevice]]]:
    """By vendor that gives something, what each container of the pod holds."""
    granted = list(zip(requests, given.containers, strict=True))
    words = dict.fromkeys(request.vendor for request, grants in granted if grants)
    return {word: _held_of(word, granted) for word in words}


def _held_of(vendor: str, granted: Sequence[tuple[ContainerRequest, tuple[Grant, ...]]]) -> list[list[AllocatedDevice]]:
    containers: list[list[AllocatedDevice]] = []
    for request, grants in granted:
        if not request.is_further:
            containers.append([])
        if request.vendor == vendor:
            containers[-1] += [
                AllocatedDevice(grant.uuid, grant.type, grant.memory_mib, grant.cores) for grant in grants
            ]
    return containers


def _mig_allocations(given: Allocation, requests: Sequence[ContainerRequest]) -> Iterator[MigAllocation]:
    container = -1
    for request, grants in zip(requests, given.containers, strict=True):
        container += not request.is_further
        for device, grant in enumerate(grants):
            if grant.mig:
                at = Placement(grant.mig.start, grant.mig.size)
                yield MigAllocation(container, device, grant.uuid, grant.mig.profile, at)


def reserve(columns: ClusterColumns, decision: Decision, pod: Mapping[str, Any]) -> None:
    """Book the chosen node's cards for the pod at once, in place of anything it held; nothing where none was chosen."""
    given = decision.allocation
    if given is None:
        return
    metadata = _mapping(pod.get("metadata"))
    init_containers = sum(request.is_init and not request.is_further for request in decision.containers)
    use = use_of(
        given.node,
        str(metadata.get("namespace", "")),
        _held(given, decision.containers),
        list(_mig_allocations(given, decision.containers)),
        init_containers=init_containers,
        init_done=False,
    )
    columns.hold(str(metadata.get("uid", "")), use)


def release(columns: ClusterColumns, uid: str) -> None:
    """Free what a pod holds; nothing happens for a pod that holds nothing."""
    columns.delete_pod(uid)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
