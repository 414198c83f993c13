"""Plan of a search for the claims of a pod, and the errors of kube-scheduler before it looks for devices."""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.claims import requests
from engine.claims.capacity import NOTHING, find_shortage
from engine.claims.inventory import Inventory
from engine.claims.matching import DeviceMatcher, SelectorOrigin
from engine.claims.pools import reaches_node
from engine.claims.requests import MAX_DEVICES, ClaimRequest, ClaimSpec, ConstraintSpec, RequestGroup
from engine.claims.slices import DeviceId, Pool, PoolState, Slice, SliceDevice
from engine.snapshot.nodes import Node


class DeviceSearchError(Exception):
    """An error that ends kube-scheduler's attempt; the text is kube-scheduler's own."""


@dataclass(frozen=True, slots=True)
class AskedClaim:
    """A claim for which devices are searched. title: namespace and name."""

    title: str
    spec: ClaimSpec

    @property
    def name(self) -> str:
        """Name without the namespace."""
        return self.title.partition("/")[2]


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A device that a node reaches."""

    device: SliceDevice
    slice: Slice
    pool: Pool
    position: int
    """Position among all devices of the node's usable pools."""

    @property
    def id(self) -> DeviceId:
        """Driver, pool and name."""
        return (*self.pool.id, self.device.name)

    @property
    def title(self) -> str:
        """Driver, pool and name as verdicts write them."""
        return "/".join(self.id)


@dataclass(frozen=True, slots=True, eq=False)
class RequestPlan:
    """A request with its selectors. count: of devices. every_device: those it needs, in the mode All."""

    request: ClaimRequest
    origins: Sequence[SelectorOrigin]
    count: int
    every_device: tuple[Candidate, ...] | None


@dataclass(frozen=True, slots=True, eq=False)
class ClaimPlan:
    """A claim with its requests; each is a list of alternatives."""

    claim: AskedClaim
    groups: tuple[tuple[RequestPlan, ...], ...]

    @property
    def constraints(self) -> tuple[ConstraintSpec, ...]:
        """Constraints between the devices of the claim."""
        return self.claim.spec.constraints


def list_candidates(pools: Sequence[Pool]) -> tuple[Candidate, ...]:
    """List the devices of usable pools in the order in which kube-scheduler tries them."""
    devices = [
        (device, slice_, pool)
        for pool in pools
        if pool.is_usable
        for slice_ in pool.slices
        for device in slice_.devices
    ]
    return tuple([Candidate(*item, position) for position, item in enumerate(devices)])


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """The devices of one node. pools: without outdated ones."""

    inventory: Inventory
    matcher: DeviceMatcher
    node: Node
    pools: tuple[Pool, ...]
    candidates: tuple[Candidate, ...]

    def is_selectable(self, plan_origins: Sequence[SelectorOrigin], candidate: Candidate) -> bool:
        """Return whether a device passes the selectors and is reached by the node."""
        device, slice_ = candidate.device, candidate.slice
        supports_binding = self.inventory.gates.binding_conditions or device.is_plain
        if not supports_binding and self.inventory.get_details(slice_, device).binding_conditions:
            return False
        if not self.matcher.selects(plan_origins, slice_, device):
            return False
        return not slice_.selects_per_device or reaches_node(self.inventory, slice_, device, self.node)


def plan_claims(space: SearchSpace, claims: Sequence[AskedClaim]) -> tuple[ClaimPlan, ...]:
    """Plan the search for claims; raise DeviceSearchError for what no search can meet."""
    return tuple([_plan_claim(space, claim) for claim in claims])


def _plan_claim(space: SearchSpace, claim: AskedClaim) -> ClaimPlan:
    groups, least = [], 0
    for group in claim.spec.groups:
        _check_gates(space, claim, group)
        if not group.choices:
            raise DeviceSearchError(f"claim {claim.title}, request {group.name}: unknown request type")
        plans = tuple([_plan_request(space, claim, request) for request in group.choices])
        least += min([plan.count for plan in plans], default=0)
        groups.append(plans)
    if least > MAX_DEVICES:
        cause = f"number of requested devices {least} exceeds the claim limit of {MAX_DEVICES}"
        raise DeviceSearchError(f"claim {claim.title}: {cause}")
    for position, constraint in enumerate(claim.spec.constraints):
        if not constraint.kind:
            cause = "empty constraint (unsupported constraint type?)"
            raise DeviceSearchError(f"claim {claim.title}, constraint #{position}: {cause}")
    return ClaimPlan(claim, tuple(groups))


def _check_gates(space: SearchSpace, claim: AskedClaim, group: RequestGroup) -> None:
    gates = space.inventory.gates
    if not gates.prioritized_list and group.alternatives:
        cause = "has subrequests, but the DRAPrioritizedList feature is disabled"
        raise DeviceSearchError(f"claim {claim.title}, request {group.name}: {cause}")
    if gates.consumable_capacity:
        return
    cause = "has capacity requests, but the DRAConsumableCapacity feature is disabled"
    if group.exact and group.exact.capacity is not None:
        raise DeviceSearchError(f"claim {claim.title}, request {group.name}: {cause}")
    for alternative in group.alternatives:
        if alternative.capacity is not None:
            raise DeviceSearchError(f"claim {claim.title}, subrequest {alternative.name}: {cause}")


def _plan_request(space: SearchSpace, claim: AskedClaim, request: ClaimRequest) -> RequestPlan:
    where = f"claim {claim.title}, request {request.name}"
    for position, selector in enumerate(request.selectors):
        if selector is None:
            cause = "CEL expression empty (unsupported selector type?)"
            raise DeviceSearchError(f"{where}, selector #{position}: {cause}")
    if not space.inventory.gates.admin_access and request.admin_access is not None:
        raise DeviceSearchError(f"{where}: admin access is requested, but the feature is disabled")
    if not request.class_name:
        raise DeviceSearchError(f"{where}: missing device class name (unsupported request type?)")
    if request.class_name not in space.inventory.classes:
        cause = f'deviceclass.resource.k8s.io "{request.class_name}" not found'
        raise DeviceSearchError(f"{where}: could not retrieve device class {request.class_name}: {cause}")
    origins = space.matcher.list_origins(claim.title, request)
    match request.mode:
        case requests.EXACT_COUNT:
            return RequestPlan(request, origins, request.count, None)
        case requests.ALL:
            every_device = _list_every_device(space, where, request, origins)
            return RequestPlan(request, origins, len(every_device), every_device)
    raise DeviceSearchError(f"{where}: unsupported count mode {request.mode}")


def _list_every_device(
    space: SearchSpace, where: str, request: ClaimRequest, origins: Sequence[SelectorOrigin]
) -> tuple[Candidate, ...]:
    """List every device that a request selects, those in use as well; raise DeviceSearchError if a pool hides some."""
    candidates = iter(space.candidates)
    selected: list[Candidate] = []
    for pool in space.pools:
        if not pool.is_usable:
            state = "being updated" if pool.state is PoolState.INCOMPLETE else "invalid"
            raise DeviceSearchError(
                f"{where}: asks for all devices, but resource pool {pool.title} is currently {state}"
            )
        for _ in range(sum([len(slice_.plain_devices) for slice_ in pool.slices])):
            candidate = next(candidates)
            if space.is_selectable(origins, candidate) and _has_capacity(space, request, candidate):
                selected.append(candidate)
    return tuple(selected)


def _has_capacity(space: SearchSpace, request: ClaimRequest, candidate: Candidate) -> bool:
    if not space.inventory.gates.consumable_capacity:
        return True
    details = space.inventory.get_details(candidate.slice, candidate.device)
    consumed = space.inventory.allocated.consumed.get(candidate.id, NOTHING)
    return find_shortage(details.capacity, request.capacity, consumed, NOTHING) is None
