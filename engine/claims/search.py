"""The search for devices on one node: every combination in kube-scheduler's order, up to the first that fits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from engine.claims.constraints import Conflict
from engine.claims.counters import CounterAvailability
from engine.claims.request_plans import AskedClaim, Candidate, DeviceSearchError, RequestPlan, SearchSpace, plan_claims
from engine.claims.requests import MAX_DEVICES
from engine.claims.reservations import GrantedDevice, Refusal, Reservations
from engine.snapshot.fields import read_list, read_mapping

MAX_STEPS: Final = 3_000_000
"""Devices looked at for one judgement, before the rest of it is left open."""
_MAX_STEPS_OF_NODE: Final = 300_000
"""Devices looked at for one node; kube-scheduler stops after 10 s a node."""
_COST_OF_TAKING: Final = 8

OnRefusal = Callable[[int, RequestPlan, Candidate, Refusal], None]
"""Called with a device that is not taken: position of the claim, request, device, cause."""


class SearchTooLongError(Exception):
    """A search that tries more combinations than it may."""


class _TooManyDevicesError(Exception):
    """A combination with more devices than a claim may have, which kube-scheduler leaves as a whole."""


@dataclass(slots=True)
class SearchBudget:
    """Steps that the searches of a judgement may still take together."""

    left: int = MAX_STEPS
    _least: int = 0

    def begin(self) -> None:
        """Begin the search on another node."""
        self._least = max(0, self.left - _MAX_STEPS_OF_NODE)

    def spend(self, steps: int) -> None:
        """Take steps; raise SearchTooLongError if there are none left."""
        self.left -= steps
        if self.left < self._least:
            raise SearchTooLongError


@dataclass(frozen=True, slots=True)
class _Step:
    """The next device to find: position of the claim, the request, the alternative and the device in it."""

    claim: int
    group: int
    alternative: int | None = None
    device: int = 0


class AllocationSearch:
    """One search for the devices of claims on a node."""

    __slots__ = ("_budget", "_on_refusal", "_plans", "_reservations", "_selectable", "_space")

    def __init__(
        self,
        space: SearchSpace,
        claims: Sequence[AskedClaim],
        availability: CounterAvailability,
        budget: SearchBudget,
        on_refusal: OnRefusal | None = None,
    ) -> None:
        """Plan the search; raise DeviceSearchError for what no search can meet."""
        self._space = space
        self._plans = plan_claims(space, claims)
        self._reservations = Reservations(space, self._plans, availability)
        self._selectable: dict[tuple[int, int], bool] = {}
        self._budget = budget
        self._on_refusal = on_refusal

    def run(self) -> list[list[GrantedDevice]] | None:
        """Search; None if nothing fits. Raises DeviceSearchError or SelectorError for kube-scheduler's errors."""
        self._budget.begin()
        try:
            is_complete = self._find(_Step(0, 0), 0)
        except _TooManyDevicesError:
            raise DeviceSearchError("allocation max size exceeded") from None
        if not is_complete:
            return None
        for plan, devices in zip(self._plans, self._reservations.granted, strict=True):
            _check_node_selectors(self._space, plan.claim, devices)
        return self._reservations.granted

    def _find(self, step: _Step, start: int) -> bool:
        """Find the rest of the devices from a step on. start: position of the first device to try."""
        self._budget.spend(1)
        if step.claim >= len(self._plans):
            return True
        groups = self._plans[step.claim].groups
        if step.group >= len(groups):
            return self._find_next_claim(step)
        plans = groups[step.group]
        if step.alternative is None:
            if self._plans[step.claim].claim.spec.groups[step.group].alternatives:
                return self._find_alternative(step, len(plans))
            return self._find_devices(step, plans[0], start)
        return self._find_devices(step, plans[step.alternative], start)

    def _find_next_claim(self, step: _Step) -> bool:
        try:
            return self._find(_Step(step.claim + 1, 0), 0)
        except _TooManyDevicesError:
            return False  # Another alternative of this claim may leave room.

    def _find_alternative(self, step: _Step, count: int) -> bool:
        """Try the alternatives of a request in their order."""
        have_all_too_many = True
        for alternative in range(count):
            try:
                if self._find(_Step(step.claim, step.group, alternative), 0):
                    return True
            except _TooManyDevicesError:
                continue
            have_all_too_many = False
        if have_all_too_many:
            raise _TooManyDevicesError
        return False

    def _find_devices(self, step: _Step, plan: RequestPlan, start: int) -> bool:
        if plan.every_device is not None and not plan.every_device:
            return False
        if step.device >= plan.count:
            return self._find(_Step(step.claim, step.group + 1), 0)
        if len(self._reservations.granted[step.claim]) + plan.count - step.device > MAX_DEVICES:
            raise _TooManyDevicesError
        if plan.every_device is not None:
            return self._take_every_device(step, plan, plan.every_device[step.device])
        following = _Step(step.claim, step.group, step.alternative, step.device + 1)
        for candidate in self._space.candidates[start:]:
            if self._is_candidate(step.claim, plan, candidate) and self._take(
                step.claim, plan, candidate, following, candidate.position + 1
            ):
                return True
        return False

    def _take_every_device(self, step: _Step, plan: RequestPlan, candidate: Candidate) -> bool:
        following = _Step(step.claim, step.group, step.alternative, step.device + 1)
        return self._take(step.claim, plan, candidate, following, 0, must=True)

    def _is_candidate(self, claim: int, plan: RequestPlan, candidate: Candidate) -> bool:
        """Return whether a device is free, selected, and has the capacity."""
        self._budget.spend(1)
        refusal: Refusal | None = self._reservations.find_user(claim, plan.request, candidate.id)
        if refusal is None:
            if not self._select(plan, candidate):
                return False
            refusal = self._reservations.find_capacity_shortage(plan.request, candidate)
        if refusal is None:
            return True
        self._report(claim, plan, candidate, refusal)
        return False

    def _select(self, plan: RequestPlan, candidate: Candidate) -> bool:
        key = id(plan), candidate.position
        is_selectable = self._selectable.get(key)
        if is_selectable is None:
            is_selectable = self._selectable[key] = self._space.is_selectable(plan.origins, candidate)
        return is_selectable

    def _take(
        self, claim: int, plan: RequestPlan, candidate: Candidate, following: _Step, start: int, *, must: bool = False
    ) -> bool:
        """Take a device and find the rest; give it back if there is no rest."""
        self._budget.spend(_COST_OF_TAKING)
        reservation = self._reservations.reserve(claim, plan, candidate)
        if isinstance(reservation, Refusal):
            self._report(claim, plan, candidate, reservation)
            if must and isinstance(reservation, Conflict):
                cause = f"cannot add device {candidate.title} because a claim constraint would not be satisfied"
                raise DeviceSearchError(f"claim {self._plans[claim].claim.title}, request {plan.request.name}: {cause}")
            return False
        is_complete = False
        try:
            is_complete = self._find(following, start)
        finally:
            if not is_complete:
                self._reservations.undo(reservation)
        return is_complete

    def _report(self, claim: int, plan: RequestPlan, candidate: Candidate, refusal: Refusal) -> None:
        if self._on_refusal:
            self._on_refusal(claim, plan, candidate, refusal)


def _check_node_selectors(space: SearchSpace, claim: AskedClaim, devices: Sequence[GrantedDevice]) -> None:
    """Raise DeviceSearchError if kube-scheduler cannot write down which nodes reach the devices."""
    for granted in devices:
        slice_, device = granted.candidate.slice, granted.candidate.device
        parent, name = slice_.spec, slice_.node_name
        if slice_.selects_per_device:
            parent, name = device.object, space.inventory.get_details(slice_, device).node_name
        if name or (not device.is_plain and space.inventory.get_details(slice_, device).binds_to_node):
            return
        terms = read_list(read_mapping(parent, "nodeSelector"), "nodeSelectorTerms")
        if len(terms) > 1:
            cause = f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms"
            raise DeviceSearchError(f"create NodeSelector for claim {claim.name}: {cause}")
