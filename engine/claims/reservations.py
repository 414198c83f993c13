"""Devices that a search has taken so far, and the checks that one more device has to pass."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from engine.claims.capacity import NOTHING, Amounts, Shortage, find_shortage, take_amount
from engine.claims.constraints import Conflict, ConstraintState
from engine.claims.counters import CounterAvailability, CounterLedger, CounterShortage
from engine.claims.device_details import DeviceTaint
from engine.claims.device_facts import find_untolerated
from engine.claims.quantity import Quantity
from engine.claims.request_plans import Candidate, ClaimPlan, RequestPlan, SearchSpace
from engine.claims.requests import ClaimRequest
from engine.claims.slices import DeviceId


@dataclass(frozen=True, slots=True)
class TakenDevice:
    """A device that is in use or that this search has given to a request already. title: of that request's claim."""

    title: str


Refusal = TakenDevice | DeviceTaint | CounterShortage | Shortage | Conflict
"""Cause for which a device that the selectors allow is not taken."""


@dataclass(frozen=True, slots=True, eq=False)
class GrantedDevice:
    """A device that a search takes for a request. consumed: capacity, of a device that is shared."""

    request: ClaimRequest
    candidate: Candidate
    consumed: dict[str, Quantity] | None


@dataclass(slots=True)
class _Reservation:
    """Changes that have to be undone when a device is given back."""

    claim: int
    plan: RequestPlan
    candidate: Candidate
    has_counters: bool = False
    constraints: int = 0
    is_marked: bool = False
    consumed: dict[str, Quantity] | None = None
    was_shared_before: bool = False
    is_granted: bool = False


_NO_AMOUNTS: Final[dict[str, int]] = {}


@dataclass(slots=True)
class Reservations:
    """State of one search. granted: devices by claim, in the order in which they were taken."""

    space: SearchSpace
    claims: Sequence[ClaimPlan]
    availability: CounterAvailability
    granted: list[list[GrantedDevice]] = field(init=False)
    _constraints: list[list[ConstraintState]] = field(init=False)
    _counters: CounterLedger = field(init=False)
    _taken: dict[DeviceId, set[int]] = field(init=False, default_factory=dict)
    _allocating: dict[DeviceId, dict[str, int]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Begin with nothing taken."""
        self.granted = [[] for _ in self.claims]
        self._constraints = [[ConstraintState(spec) for spec in plan.constraints] for plan in self.claims]
        self._counters = CounterLedger(self.space.inventory, self.availability)

    def find_user(self, claim: int, request: ClaimRequest, device: DeviceId) -> TakenDevice | None:
        """Find out whether a device is in use: by any claim, or for access next to others by this claim."""
        takers = self._taken.get(device)
        if request.has_admin_access:
            return TakenDevice(self.claims[claim].claim.title) if takers and claim in takers else None
        holder = self.space.inventory.allocated.find_holder(device)
        if holder:
            return TakenDevice(holder.claim.title)
        return TakenDevice(self.claims[min(takers)].claim.title) if takers else None

    def find_capacity_shortage(self, request: ClaimRequest, candidate: Candidate) -> Shortage | None:
        """Find the first capacity of which a device has not enough left."""
        inventory, device = self.space.inventory, candidate.device
        if not inventory.gates.consumable_capacity:
            return None
        consumed = inventory.allocated.consumed.get(candidate.id, NOTHING) if inventory.allocated.consumed else NOTHING
        if device.is_plain and not request.capacity and not consumed:
            return None  # All of each capacity is asked for, and all of it is left.
        details = inventory.get_details(candidate.slice, device)
        allocating = self._allocating.get(candidate.id, _NO_AMOUNTS)
        return find_shortage(details.capacity, request.capacity, consumed, allocating)

    def reserve(self, claim: int, plan: RequestPlan, candidate: Candidate) -> _Reservation | Refusal:
        """Take a device, or say why not; what was taken on the way is given back."""
        reservation = _Reservation(claim, plan, candidate)
        refusal = self._take(reservation)
        if refusal is None:
            return reservation
        self.undo(reservation)
        return refusal

    def _take(self, reservation: _Reservation) -> Refusal | None:
        """Check a device in kube-scheduler's order, and take it."""
        claim, request, candidate = reservation.claim, reservation.plan.request, reservation.candidate
        is_shared = self._is_shared(candidate)
        # A shared device may be taken twice by one claim, for access next to others as well.
        user = None if is_shared and request.has_admin_access else self.find_user(claim, request, candidate.id)
        refusal = user or self._reserve_counters(reservation, is_shared=is_shared) or self._find_taint(reservation)
        refusal = refusal or self._add_constraints(reservation)
        if refusal:
            return refusal
        if not is_shared:
            self._taken.setdefault(candidate.id, set()).add(claim)
            reservation.is_marked = True
        shortage = self.find_capacity_shortage(request, candidate)
        if shortage:
            return shortage
        if is_shared:
            self._consume(reservation)
        self.granted[claim].append(GrantedDevice(request, candidate, reservation.consumed))
        reservation.is_granted = True
        return None

    def _is_shared(self, candidate: Candidate) -> bool:
        if candidate.device.is_plain or not self.space.inventory.gates.consumable_capacity:
            return False
        return self.space.inventory.get_details(candidate.slice, candidate.device).is_shared

    def _reserve_counters(self, reservation: _Reservation, *, is_shared: bool) -> Refusal | None:
        candidate = reservation.candidate
        device, inventory = candidate.device, self.space.inventory
        if device.is_plain or not inventory.get_details(candidate.slice, device).counters:
            return None
        if not inventory.gates.partitionable_devices:
            return CounterShortage("", "", 0, 0)
        if is_shared and (candidate.id in inventory.allocated.consumed or candidate.id in self._allocating):
            return None  # The first share of the device has taken its counters.
        shortage = self._counters.reserve(candidate.pool, candidate.slice, device)
        reservation.has_counters = shortage is None
        return shortage

    def _find_taint(self, reservation: _Reservation) -> DeviceTaint | None:
        inventory, candidate = self.space.inventory, reservation.candidate
        if not inventory.gates.device_taints or (candidate.device.is_plain and not inventory.taint_rules):
            return None
        taints = inventory.list_taints(candidate.slice, candidate.device)
        return next(iter(find_untolerated(taints, reservation.plan.request.tolerations)), None)

    def _add_constraints(self, reservation: _Reservation) -> Conflict | None:
        candidate = reservation.candidate
        for constraint in self._constraints[reservation.claim]:
            conflict = constraint.add(reservation.plan.request, candidate.device, candidate.slice.driver)
            if conflict:
                return conflict
            reservation.constraints += 1
        return None

    def _consume(self, reservation: _Reservation) -> None:
        """Take the share of a request from a device that several share."""
        candidate, request = reservation.candidate, reservation.plan.request
        details = self.space.inventory.get_details(candidate.slice, candidate.device)
        amounts = request.capacity or {}
        consumed = {name: take_amount(amounts.get(name), capacity) for name, capacity in details.capacity.items()}
        reservation.consumed = consumed
        reservation.was_shared_before = candidate.id in self._allocating
        allocating = self._allocating.setdefault(candidate.id, {})
        for name, amount in consumed.items():
            allocating[name] = allocating.get(name, 0) + amount.nano

    def undo(self, reservation: _Reservation) -> None:
        """Give a device back."""
        claim, plan, candidate = reservation.claim, reservation.plan, reservation.candidate
        if reservation.is_granted:
            self.granted[claim].pop()
        if reservation.consumed is not None:
            self._return_share(reservation, reservation.consumed)
        if reservation.is_marked:
            self._taken[candidate.id].discard(claim)
        for constraint in reversed(self._constraints[claim][: reservation.constraints]):
            constraint.remove(plan.request)
        if reservation.has_counters:
            self._counters.release(candidate.pool, candidate.slice, candidate.device)

    def _return_share(self, reservation: _Reservation, consumed: dict[str, Quantity]) -> None:
        device = reservation.candidate.id
        amounts: Amounts = self._allocating.get(device, _NO_AMOUNTS)
        remaining = {
            name: amount - consumed[name].nano if name in consumed else amount for name, amount in amounts.items()
        }
        if any(remaining.values()):
            self._allocating[device] = remaining
        elif reservation.was_shared_before:
            self._allocating[device] = {}
        else:
            self._allocating.pop(device, None)
