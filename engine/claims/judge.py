"""DynamicResources of kube-scheduler 1.36 on a snapshot: the claims of one pod, node by node.

The search runs once for nodes that offer the same free devices; `allocate` runs it on the named node, so that the
devices are those that kube-scheduler would take.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from engine.claims.capacity import CapacityUnjudgedError
from engine.claims.claims import HeldDevice, ResourceClaim
from engine.claims.counters import CounterAvailability
from engine.claims.inventory import Inventory
from engine.claims.judgement import ClaimAllocation, DeviceGrant, NodeClaimsVerdict, to_line
from engine.claims.matching import DeviceMatcher, SelectorError, SelectorUnjudgedError
from engine.claims.node_keys import NodeKeyMaker
from engine.claims.pod_claims import ClaimsOfPod
from engine.claims.pools import collect_pools
from engine.claims.request_plans import AskedClaim, DeviceSearchError, SearchSpace, list_candidates
from engine.claims.reservations import GrantedDevice
from engine.claims.search import AllocationSearch, OnRefusal, SearchBudget, SearchTooLongError
from engine.claims.slices import Pool, PoolState
from engine.filters.dynamic_resources import NAME
from engine.filters.verdicts import PluginRefusal, StatusCode
from engine.snapshot.fields import FieldError
from engine.snapshot.nodes import Node

NO_DEVICES: Final = "cannot allocate all claims"
INVALID_POOLS: Final = "invalid resource pools were encountered"
NOT_ON_NODE: Final = "resourceclaim not available on the node"
_NO_RESOURCE: Final = "cannot fit resource"
_PRIOR_CLAIM: Final = "cannot schedule extended resource claim"
_TOO_LONG: Final = (
    "the search for devices was given up after a large number of combinations; ask for fewer devices, or for devices "
    "that fewer constraints tie together"
)
_TOO_DEEP: Final = "the claims of the pod ask for more devices than a search can go through; ask for fewer devices"

Granted = list[list[GrantedDevice]]


class ClaimsJudge:
    """Judges nodes for one pod. Every verdict is the one that kube-scheduler would reach on that node."""

    def __init__(self, inventory: Inventory, pod_claims: ClaimsOfPod, *, now: datetime | None = None) -> None:
        """Judge with an inventory; without the time, no binding of a device counts as overdue."""
        self.inventory = inventory
        self.pod_claims = pod_claims
        self.matcher = DeviceMatcher(inventory)
        self._availability = CounterAvailability(inventory)
        self._budget = SearchBudget()
        self._keys = NodeKeyMaker(inventory, self.matcher, pod_claims)
        self._remembered: dict[object, NodeClaimsVerdict] = {}
        self._unallocated = pod_claims.unallocated
        self._has_unallocated = bool(pod_claims.to_allocate)
        self._allocated = tuple(
            (position, claim, is_ready_to_bind(claim, now) or not inventory.gates.binding_conditions)
            for position, claim in enumerate(pod_claims.stored)
            if claim.allocation is not None
        )

    def judge(self, node: Node) -> NodeClaimsVerdict:
        """Judge one node."""
        pod_claims = self.pod_claims
        if pod_claims.is_empty:
            return NodeClaimsVerdict()
        refusal = self._refuse_extended(node)
        if refusal:
            return refusal
        unavailable = self._find_unavailable(node) if self._allocated else ()
        verdict = NodeClaimsVerdict()
        if self._has_unallocated:
            try:
                claims = self.list_asked(node)
            except FieldError as error:
                return NodeClaimsVerdict(unjudged=to_line(f"Pod {error.path} {error.cause}"))
            if claims is None:
                return NodeClaimsVerdict()
            verdict = self._judge_search(node, claims)
        if unavailable and verdict.refusal is None:
            return NodeClaimsVerdict(_refuse(NOT_ON_NODE), verdict.unjudged, unavailable)
        return verdict

    def _refuse_extended(self, node: Node) -> NodeClaimsVerdict | None:
        extended = self.pod_claims.extended
        if extended is None:
            return None
        if extended.prior and extended.prior.has_requests:
            return NodeClaimsVerdict(_refuse(_PRIOR_CLAIM))
        if extended.list_resources(node.allocatable) is None:
            return NodeClaimsVerdict(_refuse(_NO_RESOURCE))
        return None

    def _find_unavailable(self, node: Node) -> tuple[int, ...]:
        """Find allocated claims whose devices the node does not reach, or whose devices will not become ready."""
        return tuple(
            position for position, claim, is_ready in self._allocated if not is_ready or not _is_reached(claim, node)
        )

    def list_asked(self, node: Node) -> tuple[AskedClaim, ...] | None:
        """List the claims to search devices for on a node; None if the node serves all by its device plugins."""
        extended = self.pod_claims.extended
        if extended is None:
            return self._unallocated
        resources = extended.list_resources(node.allocatable) or ()
        if not resources and not self.pod_claims.claims:
            return None
        if extended.prior and extended.prior.allocation is not None:
            return self._unallocated
        return (*self._unallocated, AskedClaim(extended.title, extended.make_spec(resources)))

    def _judge_search(self, node: Node, claims: Sequence[AskedClaim]) -> NodeClaimsVerdict:
        try:
            pools = collect_pools(self.inventory, node)
        except FieldError as error:
            return NodeClaimsVerdict(unjudged=to_line(f"{error.path} {error.cause}"))
        key = self._keys.make_key(claims, pools)
        verdict = self._remembered.get(key) if key is not None else None
        if verdict is None:
            verdict = self._search(node, claims, pools)
            if key is not None and not _is_error(verdict):
                self._remembered[key] = verdict
        return verdict

    def _search(self, node: Node, claims: Sequence[AskedClaim], pools: Sequence[Pool]) -> NodeClaimsVerdict:
        search: AllocationSearch | None = None
        try:
            search = self.start_search(node, claims, pools)
            if search.run() is not None:
                return NodeClaimsVerdict()
        except (DeviceSearchError, SelectorError) as error:
            return NodeClaimsVerdict(PluginRefusal(NAME, StatusCode.ERROR, (str(error),)))
        except (SelectorUnjudgedError, CapacityUnjudgedError) as error:
            return NodeClaimsVerdict(unjudged=to_line(str(error)))
        except FieldError as error:
            return NodeClaimsVerdict(unjudged=to_line(f"{error.path} {error.cause}"))
        except SearchTooLongError:
            return NodeClaimsVerdict(unjudged=_TOO_LONG)
        except RecursionError:
            return NodeClaimsVerdict(unjudged=_TOO_DEEP)
        is_invalid = any(pool.state is PoolState.INVALID for pool in pools)
        return NodeClaimsVerdict(_refuse(INVALID_POOLS if is_invalid else NO_DEVICES))

    def start_search(
        self, node: Node, claims: Sequence[AskedClaim], pools: Sequence[Pool], on_refusal: OnRefusal | None = None
    ) -> AllocationSearch:
        """Prepare the search on a node; raise DeviceSearchError for what no search can meet."""
        current = tuple([pool for pool in pools if pool.state is not PoolState.OUTDATED])
        space = SearchSpace(self.inventory, self.matcher, node, current, list_candidates(current))
        return AllocationSearch(space, claims, self._availability, self._budget, on_refusal)

    def allocate(self, node: Node) -> tuple[ClaimAllocation, ...]:
        """Find the devices that the claims would get on a node that `judge` lets pass."""
        claims = self.list_asked(node)
        if not claims:
            return ()
        granted = self.start_search(node, claims, collect_pools(self.inventory, node)).run()
        return tuple(_iterate_allocations(claims, granted or []))


def _is_reached(claim: ResourceClaim, node: Node) -> bool:
    """Return whether a node reaches the devices of an allocated claim."""
    selector = claim.allocation.node_selector if claim.allocation else None
    return selector is None or selector.matches(node.labels, node.name)


def _refuse(reason: str) -> PluginRefusal:
    return PluginRefusal(NAME, StatusCode.UNRESOLVABLE, (reason,))


def _is_error(verdict: NodeClaimsVerdict) -> bool:
    """Return whether a verdict may name objects of the node."""
    return bool(verdict.unjudged) or (verdict.refusal is not None and verdict.refusal.code is StatusCode.ERROR)


def _iterate_allocations(claims: Sequence[AskedClaim], granted: Granted) -> Iterator[ClaimAllocation]:
    for claim, devices in zip(claims, granted, strict=False):
        yield ClaimAllocation(
            claim.name,
            tuple(
                DeviceGrant(
                    device.request.full_name,
                    *device.candidate.id,
                    device.consumed or {},
                    device.request.has_admin_access,
                )
                for device in devices
            ),
        )


TIMEOUT: Final = timedelta(seconds=600)
"""Time after which kube-scheduler gives an allocation up that is not ready."""


def is_ready_to_bind(claim: ResourceClaim, now: datetime | None) -> bool:
    """Return whether a claim is ready or may still become so; without the time, none is overdue."""
    allocation = claim.allocation
    if allocation is None:
        return True
    for device in allocation.devices:
        if not device.binding_conditions:
            continue
        conditions = claim.conditions.get(device.id)
        if conditions is None:
            return not _is_overdue(claim, now)
        if any(conditions.get(condition) == "True" for condition in device.failure_conditions):
            return False
        if any(conditions.get(condition) != "True" for condition in device.binding_conditions):
            return not _is_overdue(claim, now)
    return True


def _is_overdue(claim: ResourceClaim, now: datetime | None) -> bool:
    allocation = claim.allocation
    if now is None or allocation is None or allocation.allocated_at is None:
        return False
    return any(map(_waits, allocation.devices)) and allocation.allocated_at + TIMEOUT < now


def _waits(device: HeldDevice) -> bool:
    return bool(device.binding_conditions)
