"""One node explained: its pools, and for every request and device why the device is not picked."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from engine.claims.capacity import CapacityUnjudgedError
from engine.claims.constraints import Conflict, covers, find_attribute
from engine.claims.counters import CounterAvailability, CounterLedger
from engine.claims.device_facts import collect_facts
from engine.claims.findings import DeviceFinding, describe_by_code, describe_facts, describe_refusal, sort_findings
from engine.claims.judge import INVALID_POOLS, NO_DEVICES, ClaimsJudge
from engine.claims.judgement import ClaimAllocation, DeviceReason, NodeClaimsVerdict, to_line
from engine.claims.matching import SelectorError, SelectorUnjudgedError
from engine.claims.pools import collect_pools, reaches_node
from engine.claims.request_plans import AskedClaim, Candidate, DeviceSearchError, RequestPlan
from engine.claims.requests import ALL, ClaimRequest
from engine.claims.reservations import Refusal
from engine.claims.search import SearchTooLongError
from engine.claims.slices import DeviceId, Pool, PoolState, Slice, SliceDevice
from engine.snapshot.fields import FieldError
from engine.snapshot.nodes import Node

MAX_DEVICES: Final = 20_000
"""Devices of a node that are explained; the rest is only counted."""

_POOL_REASONS: Final = {
    PoolState.OUTDATED: DeviceReason.POOL_OUTDATED,
    PoolState.INCOMPLETE: DeviceReason.POOL_INCOMPLETE,
    PoolState.INVALID: DeviceReason.POOL_INVALID,
}


@dataclass(frozen=True, slots=True)
class ExplainedDevice:
    """A device with the reasons why it is not picked for a request, the first to tell in front; none if it would do."""

    id: DeviceId
    findings: tuple[DeviceFinding, ...]

    @property
    def reason(self) -> DeviceReason | None:
        """The reason that counts."""
        return self.findings[0].reason if self.findings else None


@dataclass(frozen=True, slots=True)
class ExplainedRequest:
    """A request of a claim, or one alternative of it, on a node. wanted: how many devices; None for every one."""

    claim: str
    request: ClaimRequest
    wanted: int | None
    devices: tuple[ExplainedDevice, ...]

    @property
    def counts(self) -> Mapping[str, int]:
        """Devices by the reason that counts, for `engine.summaries.text.write_reasons`."""
        return Counter(device.reason.value for device in self.devices if device.reason)


@dataclass(frozen=True, slots=True)
class ExplainedNode:
    """A node for the claims of a pod. left_out: devices beyond the first `MAX_DEVICES`."""

    node: str
    verdict: NodeClaimsVerdict
    pools: tuple[Pool, ...]
    requests: tuple[ExplainedRequest, ...]
    allocations: tuple[ClaimAllocation, ...]
    left_out: int = 0


def explain_node(judge: ClaimsJudge, node: Node) -> ExplainedNode:
    """Explain a node; what cannot be read of it is a finding or the verdict's cause."""
    verdict = judge.judge(node)
    try:
        pools, claims = collect_pools(judge.inventory, node), judge.list_asked(node) or ()
        explainer = _Explainer(judge, node, pools, claims)
        has_failed = verdict.refusal is not None and verdict.refusal.reasons[0] in (NO_DEVICES, INVALID_POOLS)
        allocations = () if verdict.refusal or verdict.unjudged else judge.allocate(node)
        requests = explainer.explain_requests(has_failed=has_failed)
    except FieldError as error:
        unjudged = verdict.unjudged or to_line(f"{error.path} {error.cause}")
        return ExplainedNode(node.name, NodeClaimsVerdict(verdict.refusal, unjudged, verdict.unavailable), (), (), ())
    return ExplainedNode(node.name, verdict, pools, requests, allocations, explainer.left_out)


RefusalKey = tuple[int, str, DeviceId]


@dataclass(frozen=True, slots=True)
class PooledDevice:
    """A device with the slice and the pool that it is in."""

    device: SliceDevice
    slice: Slice
    pool: Pool

    @property
    def id(self) -> DeviceId:
        """Driver, pool and name."""
        return (*self.pool.id, self.device.name)


class _Explainer:
    """Explains the devices of one node."""

    def __init__(self, judge: ClaimsJudge, node: Node, pools: Sequence[Pool], claims: Sequence[AskedClaim]) -> None:
        self._judge = judge
        self._node = node
        self._claims = claims
        devices = list(iterate_pooled_devices(pools))
        self.left_out = max(0, len(devices) - MAX_DEVICES)
        self._devices = devices[:MAX_DEVICES]
        self._availability = CounterAvailability(judge.inventory)
        self._refusals: dict[RefusalKey, Refusal] = {}
        self._search(pools)

    def _search(self, pools: Sequence[Pool]) -> None:
        """Search once more, and keep the first refusal of each device."""

        def keep(claim: int, plan: RequestPlan, candidate: Candidate, refusal: Refusal) -> None:
            self._refusals.setdefault((claim, plan.request.full_name, candidate.id), refusal)

        try:
            self._judge.start_search(self._node, self._claims, pools, keep).run()
        except (DeviceSearchError, SelectorError, SelectorUnjudgedError, CapacityUnjudgedError):
            pass  # The verdict has the cause.
        except (SearchTooLongError, RecursionError):
            pass  # What was refused up to there is true nevertheless.

    def explain_requests(self, *, has_failed: bool) -> tuple[ExplainedRequest, ...]:
        """Explain every request. has_failed: whether the search went through everything and found nothing."""
        groups = [
            [self._explain_request(position, claim, request) for request in group.choices]
            for position, claim in enumerate(self._claims)
            for group in claim.spec.groups
        ]
        if has_failed:
            _mark_unpicked(groups)
        return tuple(draft.complete(self._devices) for drafts in groups for draft in drafts)

    def _explain_request(self, position: int, claim: AskedClaim, request: ClaimRequest) -> "_DraftRequest":
        findings = [self._explain_device(position, request, pooled) for pooled in self._devices]
        return _DraftRequest(claim.name, request, None if request.mode == ALL else request.count, findings)

    def _explain_device(self, claim: int, request: ClaimRequest, pooled: PooledDevice) -> list[DeviceFinding]:
        findings = list(self._describe_pool(pooled))
        try:
            findings += self._describe_device(claim, request, pooled)
        except FieldError as error:
            findings.append(DeviceFinding(DeviceReason.NOT_JUDGED, f"{error.path} {error.cause}"))
        except CapacityUnjudgedError as error:
            findings.append(DeviceFinding(DeviceReason.NOT_JUDGED, str(error)))
        if not findings:
            refusal = self._refusals.get((claim, request.full_name, pooled.id))
            if refusal:
                findings.append(describe_refusal(refusal, request))
        return findings

    def _describe_pool(self, pooled: PooledDevice) -> Iterator[DeviceFinding]:
        pool = pooled.pool
        reason = _POOL_REASONS.get(pool.state)
        if reason is None:
            return
        title, generation = pool.title, pool.generation
        match pool.state:
            case PoolState.INCOMPLETE:
                amounts = {"seen": pool.seen, "expected": pool.expected}
                yield describe_by_code(reason, "pool_incomplete", pool=title, generation=generation, **amounts)
            case PoolState.INVALID:
                yield describe_by_code(reason, "pool_invalid", pool=title, cause=pool.cause)
            case _:
                yield describe_by_code(reason, "pool_outdated", pool=title, generation=generation)

    def _describe_device(self, claim: int, request: ClaimRequest, pooled: PooledDevice) -> Iterator[DeviceFinding]:
        judge, slice_, device = self._judge, pooled.slice, pooled.device
        inventory = judge.inventory
        if slice_.selects_per_device and not reaches_node(inventory, slice_, device, self._node):
            yield describe_by_code(DeviceReason.NOT_ON_NODE, "not_on_node", node=self._node.name)
        facts = collect_facts(inventory, judge.matcher, self._claims[claim].title, request, slice_, device)
        yield from describe_facts(judge.matcher, facts, request, slice_, device)
        if not inventory.gates.binding_conditions and inventory.get_details(slice_, device).binding_conditions:
            yield describe_by_code(DeviceReason.BINDING_NOT_SUPPORTED, "binding_conditions")
        yield from self._describe_counters(request, pooled)
        for constraint in self._claims[claim].spec.constraints:
            if covers(constraint, request) and find_attribute(device, slice_.driver, constraint.attribute) is None:
                yield describe_refusal(Conflict(constraint, None), request)

    def _describe_counters(self, request: ClaimRequest, pooled: PooledDevice) -> Iterator[DeviceFinding]:
        """Describe the counter that a device needs and that other claims have used up."""
        inventory, device = self._judge.inventory, pooled.device
        if device.is_plain or not pooled.pool.is_usable or not inventory.get_details(pooled.slice, device).counters:
            return
        if inventory.allocated.is_allocated(pooled.id):
            return  # What it needs is its own already.
        shortage = CounterLedger(inventory, self._availability).reserve(pooled.pool, pooled.slice, device)
        if shortage:
            yield describe_refusal(shortage, request)


def iterate_pooled_devices(pools: Sequence[Pool]) -> Iterator[PooledDevice]:
    """Yield the devices of the slices that concern the pools' node, of each pool's highest generation there."""
    for pool in pools:
        slices = pool.slices or [slice_ for slice_ in pool.relevant if slice_.generation == pool.generation]
        for slice_ in slices:
            for device in slice_.devices:
                yield PooledDevice(device, slice_, pool)


@dataclass(frozen=True, slots=True)
class _DraftRequest:
    """A request with the findings of each device."""

    claim: str
    request: ClaimRequest
    wanted: int | None
    findings: list[list[DeviceFinding]]

    def count_fitting(self) -> int:
        return sum(not of_device for of_device in self.findings)

    @property
    def is_short(self) -> bool:
        """Return whether fewer devices fit than are asked for."""
        return self.count_fitting() < (self.wanted or 1)

    def mark(self, code: str, **values: object) -> None:
        for of_device in self.findings:
            if not of_device:
                of_device.append(describe_by_code(DeviceReason.TOO_FEW, code, **values))

    def complete(self, devices: Sequence[PooledDevice]) -> ExplainedRequest:
        explained = zip(devices, self.findings, strict=True)
        return ExplainedRequest(
            self.claim,
            self.request,
            self.wanted,
            tuple(ExplainedDevice(pooled.id, sort_findings(of_device)) for pooled, of_device in explained),
        )


def _mark_unpicked(groups: Sequence[Sequence[_DraftRequest]]) -> None:
    """Note of devices that nothing speaks against that there are too few of them, or not together with others."""
    is_short = any(all(draft.is_short for draft in drafts) for drafts in groups)
    for drafts in groups:
        for draft in drafts:
            if draft.is_short:
                draft.mark("too_few", wanted=draft.wanted, count=draft.count_fitting())
            elif not is_short:
                draft.mark("not_together")
