"""Keys of nodes for one pod: the search has one outcome on all nodes with one key."""

import marshal
from collections.abc import Iterable, Sequence
from typing import Any

from engine.claims.cel.reads import Path
from engine.claims.device_keys import FORMAT, PropertyNames, list_names
from engine.claims.inventory import Inventory
from engine.claims.matching import DeviceMatcher, SelectorOrigin
from engine.claims.pod_claims import ClaimsOfPod
from engine.claims.request_plans import AskedClaim
from engine.claims.requests import ALL
from engine.claims.slices import Pool, PoolState, Slice, SliceDevice

NodeKey = tuple[object, ...]


class NodeKeyMaker:
    """Makes the keys of nodes for the claims of one pod."""

    def __init__(self, inventory: Inventory, matcher: DeviceMatcher, pod_claims: ClaimsOfPod) -> None:
        """Collect what the requests of the pod look at."""
        self._inventory = inventory
        self._extended = pod_claims.extended
        self._paths = _collect_paths(matcher, pod_claims)
        # Devices in use decide only where a request is about every device, or for access next to others.
        self._counts_free_only = not any(
            request.mode == ALL or request.has_admin_access
            for claim in pod_claims.unallocated
            for group in claim.spec.groups
            for request in group.choices
        )
        self._names: dict[str, PropertyNames | None] = {}
        self._of_shared_slices: dict[int, bytes] = {}

    def make_key(self, claims: Sequence[AskedClaim], pools: Sequence[Pool]) -> NodeKey | None:
        """Make the key of a node with these pools; None if more than the properties of devices decides."""
        inventory = self._inventory
        if inventory.taint_rules:
            return None
        key: list[object] = [claims[-1].spec] if self._extended else []
        for pool in pools:
            if pool.state is PoolState.OUTDATED:
                continue
            if pool.id in inventory.allocated.shared_pools:
                return None
            key.append(pool.state)
            for slice_ in pool.slices:
                if not slice_.is_simple:
                    return None
                key.append(self._describe_slice(slice_))
        return tuple(key)

    def _describe_slice(self, slice_: Slice) -> bytes:
        if slice_.node_name:
            return self._encode(slice_)
        encoded = self._of_shared_slices.get(id(slice_))
        if encoded is None:
            encoded = self._of_shared_slices[id(slice_)] = self._encode(slice_)
        return encoded

    def _encode(self, slice_: Slice) -> bytes:
        """Encode what is read of the devices of a slice, and which are in use."""
        driver, devices = slice_.driver, slice_.devices
        taken = self._inventory.allocated.exclusive.get(slice_.pool_id)
        flags: list[bool] = []
        if taken and self._counts_free_only:
            devices = tuple([device for device in devices if device.name not in taken])
        elif taken:
            flags = [device.name in taken for device in devices]
        if driver not in self._names:
            self._names[driver] = None if self._paths is None else list_names(self._paths, driver)
        values = _list_values(self._names[driver], devices)
        return marshal.dumps((driver, len(devices), flags, values), FORMAT)


def _list_values(names: PropertyNames | None, devices: Iterable[SliceDevice]) -> list[Any]:
    """List what is read of devices in one list, because a large cluster has 40,000 of them."""
    if names is None:
        return [(device.attributes, device.capacity) for device in devices]
    values = [device.attributes.get(name) for device in devices for name in names.attributes]
    return values + [device.capacity.get(name) for device in devices for name in names.capacity]


def _collect_paths(matcher: DeviceMatcher, pod_claims: ClaimsOfPod) -> tuple[Path, ...] | None:
    """Collect the properties that decide for a pod; None if any may."""
    origins: list[SelectorOrigin] = []
    paths: set[Path] = set()
    for claim in pod_claims.unallocated:
        paths.update(_make_path("attributes", constraint.attribute) for constraint in claim.spec.constraints)
        for group in claim.spec.groups:
            for request in group.choices:
                origins += matcher.list_origins(claim.title, request)
                paths.update(_make_path("capacity", name) for name in request.capacity or ())
    for class_name in set(pod_claims.extended.classes.values()) if pod_claims.extended else ():
        origins += matcher.list_class_origins(class_name)
    for origin in origins:
        if origin.selector.reads is None:
            return None
        paths.update(origin.selector.reads.paths)
    return tuple(sorted(paths))


def _make_path(kind: str, name: str) -> Path:
    domain, slash, short = name.partition("/")
    return (kind, domain, short) if slash else (kind, "", name)
