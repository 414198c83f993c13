"""Capacity that an allocation takes from a device, and whether enough is left (DRAConsumableCapacity)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from engine.claims.device_details import Capacity, RequestPolicy
from engine.claims.quantity import INT64_MAX, NANO, Quantity, make_integer

Amounts = Mapping[str, int]
"""Capacities in billionths, by name."""
NOTHING: Final[Amounts] = {}


class CapacityUnjudgedError(ValueError):
    """An amount beyond 64 bits, which Kubernetes computes with wrapped around."""


@dataclass(frozen=True, slots=True)
class Shortage:
    """A capacity of a device that a request cannot have. All amounts in billionths.

    is_undefined: the device has no such capacity. amount: what the request takes. left: what others leave of it.
    breaks_policy: whether the amount is none that the device allows.
    """

    name: str
    is_undefined: bool = False
    amount: int = 0
    left: int = 0
    total: int = 0
    breaks_policy: bool = False


def find_shortage(
    capacity: Mapping[str, Capacity],
    requested: Mapping[str, Quantity] | None,
    consumed: Amounts,
    allocating: Amounts,
) -> Shortage | None:
    """Find the first capacity that is not there or not enough; None if the request fits.

    consumed, allocating: amounts that other allocations and this search have taken of the device already.
    """
    for name in requested or ():
        if name not in capacity:
            return Shortage(name, is_undefined=True)
    for name, available in capacity.items():
        requested_amount = take_amount((requested or {}).get(name), available)
        taken = consumed.get(name, 0) + allocating.get(name, 0)
        total = available.value.nano
        if _is_disallowed(requested_amount, available.policy):
            return Shortage(name, amount=requested_amount.nano, left=total - taken, total=total, breaks_policy=True)
        if requested_amount.nano + taken > total:
            return Shortage(name, amount=requested_amount.nano, left=total - taken, total=total)
    return None


def take_amount(requested: Quantity | None, capacity: Capacity) -> Quantity:
    """Calculate what an allocation takes of a capacity: the request rounded up by the device's policy.

    Without a request the policy's default counts; without one, all of it.
    """
    policy = capacity.policy
    if requested is None:
        return policy.default if policy and policy.default else capacity.value
    if policy is None:
        return requested
    if policy.has_range and policy.minimum is not None:
        return _round_to_step(requested, policy.minimum, policy.step)
    return next((value for value in policy.values if requested.nano <= value.nano), requested)


def _round_to_step(requested: Quantity, minimum: Quantity, step: Quantity | None) -> Quantity:
    if requested.nano < minimum.nano:
        return minimum
    if step is None:
        return requested
    start, width = _to_int64(minimum), _to_int64(step)
    if not width:
        raise CapacityUnjudgedError("a step of 0")
    steps = -(-(_to_int64(requested) - start) // width)
    return make_integer(_check(start + width * steps))


def _is_disallowed(amount: Quantity, policy: RequestPolicy | None) -> bool:
    """Return whether the device does not allow an amount."""
    if policy is None or (policy.default is not None and policy.default == amount):
        return False
    if policy.has_range:
        return _is_outside(amount, policy)
    return bool(policy.values) and all(amount.nano != value.nano for value in policy.values)


def _is_outside(amount: Quantity, policy: RequestPolicy) -> bool:
    if policy.maximum is not None and amount.nano > policy.maximum.nano:
        return True
    if policy.step is None:
        return False
    width = _to_int64(policy.step)
    if not width:
        raise CapacityUnjudgedError("a step of 0")
    start = _to_int64(policy.minimum) if policy.minimum is not None else 0
    return (_to_int64(amount) - start) % width != 0


def _to_int64(quantity: Quantity) -> int:
    """Return the value in whole units, rounded up."""
    return _check(quantity.round_up())


def _check(value: int) -> int:
    if abs(value) > INT64_MAX:
        raise CapacityUnjudgedError(f"the amount {value} is beyond 64 bits")
    return value


def format_nano(nano: int) -> str:
    """Print an amount in billionths with a binary suffix where that is exact."""
    return str(Quantity(nano, "BinarySI" if nano % (1024 * NANO) == 0 else "DecimalSI"))
