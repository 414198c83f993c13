"""Devices that claims hold, with the claims that hold them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from engine.claims.claims import ResourceClaim
from engine.claims.quantity import Quantity
from engine.claims.slices import DeviceId, PoolId


@dataclass(frozen=True, slots=True)
class DeviceHolder:
    """A claim that holds a device, and whom the claim is reserved for."""

    claim: ResourceClaim
    request: str

    def to_text(self) -> str:
        """Name the claim and its pods: ``claim team/gpu, reserved for pod train-0``."""
        pods = [f"{consumer.resource.removesuffix('s')} {consumer.name}" for consumer in self.claim.reserved_for]
        names = ", ".join(pods[:3]) + (f" and {len(pods) - 3} more" if len(pods) > 3 else "")
        return f"claim {self.claim.title}" + (f", reserved for {names}" if names else ", reserved for nobody")


@dataclass(frozen=True, slots=True)
class Share:
    """A share of a device, and the capacity that it takes."""

    holder: DeviceHolder
    consumed: Mapping[str, Quantity]


@dataclass(frozen=True, slots=True)
class AllocatedDevices:
    """Devices that are in use. Access for monitoring does not count.

    exclusive: holders by pool and device. shares: by device. consumed: capacity in billionths that shares of a device
    take, by device; a device whose shares state no capacity is not in it.
    """

    exclusive: Mapping[PoolId, Mapping[str, DeviceHolder]]
    shares: Mapping[DeviceId, tuple[Share, ...]]
    consumed: Mapping[DeviceId, Mapping[str, int]]
    shared_pools: frozenset[PoolId]
    """Pools with devices that have shares."""

    def find_holder(self, device: DeviceId) -> DeviceHolder | None:
        """Return the claim that holds a device for itself."""
        return self.exclusive.get(device[:2], {}).get(device[2])

    def is_allocated(self, device: DeviceId) -> bool:
        """Return whether a device is in use, for one claim or by shares."""
        return device in self.shares or self.find_holder(device) is not None


def collect_allocated(claims: Iterable[ResourceClaim], *, with_shares: bool) -> AllocatedDevices:
    """Collect the devices of all claims. with_shares: the feature gate DRAConsumableCapacity."""
    exclusive: dict[PoolId, dict[str, DeviceHolder]] = {}
    shares: dict[DeviceId, list[Share]] = {}
    for claim in claims:
        if claim.allocation is None:
            continue
        for device in claim.allocation.devices:
            if device.has_admin_access:
                continue
            holder = DeviceHolder(claim, device.request)
            if device.share and with_shares:
                shares.setdefault(device.id, []).append(Share(holder, device.consumed))
            else:
                exclusive.setdefault(device.id[:2], {})[device.id[2]] = holder
    return AllocatedDevices(
        exclusive,
        {device: tuple(items) for device, items in shares.items()},
        {
            device: _to_nanos(add_shares(items))
            for device, items in shares.items()
            if any(share.consumed for share in items)
        },
        frozenset([device[:2] for device in shares]),
    )


def add_shares(shares: Iterable[Share]) -> Mapping[str, Quantity]:
    """Add up the capacity that shares take."""
    total: dict[str, Quantity] = {}
    for share in shares:
        for name, amount in share.consumed.items():
            total[name] = total[name].add(amount) if name in total else amount
    return total


def _to_nanos(amounts: Mapping[str, Quantity]) -> Mapping[str, int]:
    return {name: amount.nano for name, amount in amounts.items()}
