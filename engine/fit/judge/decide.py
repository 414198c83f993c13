"""Decision about one pod against all offered nodes."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.devices.device_matrix import Ints, build_batches
from engine.fit.devices.node_columns import TOTAL, USED
from engine.fit.judge.checks import verdict_codes
from engine.fit.judge.checks.reference_fit import Pick
from engine.fit.judge.choose.batch_evaluation import BatchEvaluation
from engine.fit.judge.choose.scoring import SCORE_TERMS, VENDOR_TERM, NodeScores, score_nodes
from engine.fit.judge.choose.vendor_scores import complete_vendors, score_vendors
from engine.fit.judge.decision import (
    Allocation,
    Decision,
    Failed,
    Grant,
    MigSlice,
    NotOurs,
    SchedulingPolicy,
)
from engine.fit.judge.judgement import ContainerJudgement, NodeRefusal, join_judgements, list_refusals
from engine.fit.judge.request.pod_annotations import WeightsError, read_pod_annotations
from engine.fit.judge.request.pod_constraints import PodConstraints, build_constraints
from engine.fit.judge.request.pod_request import (
    VendorRequest,
    count_containers,
    deny_containers,
    deny_requests,
    iterate_requests,
    names_devices,
)
from engine.fit.judge.reservation import build_annotations
from engine.fit.judge.vendors.vendor_state import VendorState
from engine.hami.annotations import ASSIGNED_NODE
from engine.hami.go_values import to_mapping
from engine.hami.reason_codes import ReasonCode
from engine.hami.vendor_registrations import MINOR
from engine.hami.vendors import Family, Vendor
from schemas.events import MAX_REQUESTS


def decide(
    columns: ClusterColumns,
    pod: Mapping[str, Any],
    node_names: Sequence[str],
    policy: SchedulingPolicy,
    withheld: Mapping[str, str] | None = None,
) -> Decision | NotOurs | Failed:
    """Judge every device of every offered node for the pod and choose a node.

    What the pod itself holds from an earlier attempt does not count against it. `columns` is only read; `reserve`
    writes the decision into it. withheld: nodes with devices to leave to another scheduler, with the cause, next to
    those that `columns` withholds; without a cause, nodes that count as unregistered.
    """
    vendors = complete_vendors(columns)
    containers = count_containers(pod)
    # Counted before they are read, which takes 0.1 ms each.
    if (denial := deny_containers(containers)) and names_devices(pod, vendors):
        requests = tuple(islice(iterate_requests(pod, vendors), MAX_REQUESTS))
        return Failed(requests, denial, containers - MAX_REQUESTS)
    requests = tuple(iterate_requests(pod, vendors))
    return decide_requests(
        columns, requests, to_mapping(pod.get("metadata")), node_names, policy, to_mapping(pod.get("spec")), withheld
    )


def decide_requests(
    columns: ClusterColumns,
    requests: tuple[VendorRequest, ...],
    metadata: Mapping[str, Any],
    node_names: Sequence[str],
    policy: SchedulingPolicy,
    spec: Mapping[str, Any] | None = None,
    withheld: Mapping[str, str] | None = None,
) -> Decision | NotOurs | Failed:
    """Decide as `decide` does, for requests that were read before.

    metadata: namespace, name, uid and annotations of the pod. spec: the pod's, whose containers some device plugins'
    annotations name.
    """
    if mistake := next((request for request in requests if request.mistake), None):
        return Failed(requests[:MAX_REQUESTS], f"container {mistake.name}: {mistake.mistake}")
    if not any(request.asks for request in requests):
        return NotOurs(requests)
    if denial := deny_requests(requests):
        return Failed(requests[:MAX_REQUESTS], denial, max(len(requests) - MAX_REQUESTS, 0))
    try:
        constraints = dict(list_constraints(columns, metadata, requests, policy))
    except WeightsError as error:
        return Failed(requests, f"{ReasonCode.CALC_SCORE_FAILED} {error} for pod {metadata.get('name', '')}")
    judged = {"metadata": metadata, "spec": spec or {}}
    return _Attempt(constraints, requests, tuple(node_names), judged, withheld or {}).conclude()


def list_constraints(
    columns: ClusterColumns, metadata: Mapping[str, Any], requests: Sequence[VendorRequest], policy: SchedulingPolicy
) -> Iterator[tuple[str, PodConstraints]]:
    """List (vendor word, constraints) for each vendor whose devices the pod requests. Raises WeightsError."""
    requested = {request.vendor for request in requests if request.asks}
    for vendor in columns.vendors:
        if vendor.word in requested:
            annotations = read_pod_annotations(
                to_mapping(metadata.get("annotations")), policy.node, policy.device, vendor
            )
            yield vendor.word, build_constraints(columns, metadata, annotations, vendor)


class _Attempt:
    """Collector of the results of all batches; arrays are per offered node, shape (n,)."""

    def __init__(
        self,
        constraints: Mapping[str, PodConstraints],
        requests: tuple[VendorRequest, ...],
        names: tuple[str, ...],
        pod: Mapping[str, Any],
        withheld: Mapping[str, str],
    ) -> None:
        self.pod = pod
        self.states: dict[int, VendorState] = {}
        self.by_vendor, self.requests, self.names = constraints, requests, names
        self.constraints = next(iter(constraints.values()))
        self.ids = self.constraints.columns.look_up_ids(names)
        self.withheld = self._take_withheld(withheld) if withheld else {}
        self.verdict = np.full(len(names), verdict_codes.NODE_UNKNOWN)
        self.score = np.zeros(len(names), np.float32)
        self.score_terms = {term: np.zeros(len(names), np.float32) for term in SCORE_TERMS}
        self.refused_by = np.full(len(names), -1, np.int64)
        self.refusal = np.full(len(names), -1, np.int64)
        self.refusals: list[NodeRefusal] = []

    def _take_withheld(self, withheld: Mapping[str, str]) -> dict[str, str]:
        """Take the nodes out of the decision; return their causes."""
        rows = [row for row, name in enumerate(self.names) if name in withheld]
        self.ids[rows] = -1
        return {self.names[row]: withheld[self.names[row]] for row in rows}

    def conclude(self) -> Decision:
        judgements = self._judge()
        causes = self._note_unregistered()
        fitting = np.flatnonzero(self.verdict == verdict_codes.NODE_FITS)
        self.score[fitting], terms = self._score_nodes(self.ids[fitting])
        from_vendors = self._score_vendors(fitting.tolist())
        self.score[fitting] += from_vendors
        if from_vendors.any():
            terms = {**terms, VENDOR_TERM: from_vendors}
            self.score_terms[VENDOR_TERM] = np.zeros(len(self.names), np.float32)
        for name, term in terms.items():
            self.score_terms[name][fitting] = term
        chosen = self._choose(fitting.tolist())
        allocation = None
        if chosen is not None:
            self.verdict[chosen] = verdict_codes.NODE_PICKED
            allocation = _allocate(self.by_vendor, self.requests, self.names[chosen])
        columns, annotations = self.constraints.columns, self.constraints.annotations
        return Decision(
            containers=self.requests,
            node_names=self.names,
            ids=self.ids,
            fragments=columns.lend_fragments(),
            revision=columns.revisions.get_revisions(self.ids),
            node_verdict=self.verdict,
            score=self.score,
            score_terms=self.score_terms,
            refused_by=self.refused_by,
            refusal=self.refusal,
            refusals=tuple(self.refusals),
            judgements=judgements,
            kinds=columns.kinds,
            node_policy=annotations.node_policy,
            device_policy=annotations.device_policy,
            chosen=allocation.node if allocation else None,
            allocation=allocation,
            annotations=build_annotations(allocation, self.requests, complete_vendors(columns), self.pod)
            if allocation
            else {},
            labels={ASSIGNED_NODE: allocation.node} if allocation else {},
            node_causes=causes,
        )

    def _judge(self) -> tuple[ContainerJudgement, ...]:
        parts: dict[int, list[ContainerJudgement]] = {}
        for matrix in build_batches(self.constraints.columns, self.ids, self.constraints.code):
            evaluation = BatchEvaluation(self.by_vendor, matrix, keeps_order=_has_several_apps(self.requests))
            for container, request in enumerate(self.requests):
                if request.asks and not evaluation.is_over:
                    parts.setdefault(container, []).append(evaluation.judge(container, request))
            self.verdict[evaluation.passed] = verdict_codes.NODE_FITS
            self.states |= dict.fromkeys(evaluation.passed.tolist(), evaluation.state)
        # Sorted: a container may first be judged in a later batch, where earlier batches refused every node before it.
        judgements = tuple(join_judgements(parts[container]) for container in sorted(parts))
        for judgement in judgements:
            self._note_refusals(judgement)
        return judgements

    def _note_refusals(self, judgement: ContainerJudgement) -> None:
        distinct, refused, which = list_refusals(judgement)
        nodes = judgement.nodes[refused]
        self.verdict[nodes] = verdict_codes.NODE_REFUSED
        self.refused_by[nodes] = judgement.container
        self.refusal[nodes] = which + len(self.refusals)
        self.refusals.extend(distinct)

    def _note_unregistered(self) -> dict[str, str]:
        """Note the nodes that are not registered or withheld; return the causes."""
        columns, unknown = self.constraints.columns, np.flatnonzero(self.ids < 0)
        names = [self.names[node] for node in unknown.tolist()]
        withheld = [self.withheld.get(name) or columns.get_withheld_cause(name) for name in names]
        is_withheld = np.array(withheld, np.bool_)
        self.verdict[unknown[is_withheld]] = verdict_codes.NODE_REFUSED
        self._refuse(unknown[~is_withheld], ReasonCode.NODE_UNREGISTERED)
        self._refuse(unknown[is_withheld], ReasonCode.NODE_OF_ANOTHER_SCHEDULER)
        causes = ((name, cause or columns.get_cause(name)) for name, cause in zip(names, withheld, strict=True))
        return {name: cause for name, cause in causes if cause}

    def _refuse(self, nodes: Ints, reason: ReasonCode) -> None:
        if nodes.size:
            self.refusal[nodes] = len(self.refusals)
            self.refusals.append(NodeRefusal((), 0, reason.value))

    def _score_nodes(self, ids: Ints) -> NodeScores:
        nodes = self.constraints.columns.nodes
        # Indexing with an array copies, so the subtraction below never reaches the columns.
        used, totals = ([nodes[name][ids] for name in names] for names in (USED, TOTAL))
        held = self.constraints.held
        entry = self.constraints.columns.get_entry(held.node) if held else None
        if held and entry:
            for uuid, share in held.by_uuid.items():
                times = (ids == entry.id) * len(entry.rows.get(uuid, ()))
                for column, amount in zip(used, (share.slots, share.cores, share.memory_mib), strict=True):
                    column -= times * amount
        return score_nodes(used, totals)

    def _score_vendors(self, fitting: list[int]) -> NDArray[np.float32]:
        """Score the nodes that fit by what the requested vendors add."""
        return score_vendors(self.by_vendor, [(int(self.ids[node]), self.states[node]) for node in fitting])

    def _choose(self, fitting: list[int]) -> int | None:
        """Choose the node with the best score under the node policy: its position; None where no node fits."""
        if not fitting:
            return None
        sign = 1 if self.constraints.annotations.node_policy == "spread" else -1
        scores = self.score
        # HAMi picks at random among equal nodes; the name makes our choice repeatable.
        return min(fitting, key=lambda node: (sign * float(scores[node]), self.names[node]))


def _allocate(by_vendor: Mapping[str, PodConstraints], requests: Sequence[VendorRequest], node: str) -> Allocation:
    """Allocate devices to each container on the chosen node.

    Judging many nodes at once yields which devices are taken, but not in which order, and the order is part of the
    annotation. So the chosen node is evaluated once more, one device at a time.
    """
    first = next(iter(by_vendor.values()))
    (matrix,) = build_batches(first.columns, first.columns.look_up_ids([node]), first.code)
    evaluation = BatchEvaluation(
        {word: constraints._replace(one_by_one=True) for word, constraints in by_vendor.items()},
        matrix,
        keeps_order=_has_several_apps(requests),
    )
    grants = []
    for container, request in enumerate(requests):
        picks: list[Pick] = []
        if request.asks:
            evaluation.judge(container, request)
            (picks,) = evaluation.picks
        grants.append(tuple(_grant(pick, by_vendor[request.vendor].vendor) for pick in picks))
    return Allocation(node, tuple(grants))


def _has_several_apps(requests: Sequence[VendorRequest]) -> bool:
    asking = [request for request in requests if request.asks]
    return sum(request.is_lasting for request in asking) > 1 or any(request.is_sidecar for request in asking)


def _grant(pick: Pick, vendor: Vendor) -> Grant:
    mig = pick.mig
    part = MigSlice(mig.profile.name, mig.placement.start, mig.placement.size) if mig else None
    device = pick.device
    minor = str(device.extra.get(MINOR, ""))
    # AMD's own annotation has the product, from which its readers learn the model.
    word = device.model if vendor.family is Family.AMD else vendor.word
    return Grant(device.uuid, word, pick.memory_mib, pick.cores, part, device.index, pick.slots, minor, pick.profile)
