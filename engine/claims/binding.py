"""Devices that become ready after their allocation (DRADeviceBindingConditions)."""

from datetime import datetime, timedelta
from typing import Final

from engine.claims.claims import HeldDevice, ResourceClaim

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
