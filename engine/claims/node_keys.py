"""Keys of nodes for one pod: the search has one outcome on all nodes with one key."""

from collections.abc import Sequence
from typing import Any, Final

from engine.claims.cel.reads import Path
from engine.claims.device_keys import PropertyNames, encode_values, list_names
from engine.claims.inventory import Inventory
from engine.claims.matching import DeviceMatcher, SelectorOrigin
from engine.claims.pod_claims import ClaimsOfPod
from engine.claims.request_plans import AskedClaim
from engine.claims.requests import ALL
from engine.claims.slices import Pool, PoolState, Slice
from engine.snapshot.fields import Object

NodeKey = tuple[object, ...]

_NOTHING: Final[Object] = {}


class NodeKeyMaker:
    """Makes the keys of nodes for the claims of one pod."""

    def __init__(
        self, inventory: Inventory, matcher: DeviceMatcher, pod_claims: ClaimsOfPod, *, with_held: bool = False
    ) -> None:
        """Collect what the requests of the pod look at; ``with_held``: nodes also differ by which devices are in use,
        as their explanations do."""
        self._inventory = inventory
        self._extended = pod_claims.extended
        self._paths = _collect_paths(matcher, pod_claims)
        # Devices in use decide only where a request is about every device, or for access next to others.
        self._counts_free_only = not with_held and not any(
            request.mode == ALL or request.has_admin_access
            for claim in pod_claims.unallocated
            for group in claim.spec.groups
            for request in group.choices
        )
        self._names: dict[str, PropertyNames] = {}
        self._of_shared_slices: dict[int, bytes] = {}

    def make_key(self, claims: Sequence[AskedClaim], pools: Sequence[Pool]) -> NodeKey | None:
        """Make the key of a node with these pools; None if more than the properties of devices decides."""
        inventory = self._inventory
        if inventory.taint_rules:
            return None
        key: list[object] = [claims[-1].spec] if self._extended else []
        shared_pools = inventory.allocated.shared_pools
        for pool in pools:
            if pool.state is PoolState.OUTDATED:
                continue
            if shared_pools and pool.id in shared_pools:
                return None
            key.append(pool.state)
            for slice_ in pool.slices:
                if not slice_.is_simple:
                    return None
                key.append(self._encode(slice_) if slice_.node_name else self._encode_shared(slice_))
        return tuple(key)

    def _encode_shared(self, slice_: Slice) -> bytes:
        encoded = self._of_shared_slices.get(id(slice_))
        if encoded is None:
            encoded = self._of_shared_slices[id(slice_)] = self._encode(slice_)
        return encoded

    def _encode(self, slice_: Slice) -> bytes:
        """Encode what is read of the devices of a slice, and which are in use."""
        driver, devices = slice_.driver, slice_.plain_devices
        taken = self._inventory.allocated.exclusive.get(slice_.pool_id)
        flags: list[bool] = []
        if taken and self._counts_free_only:
            devices = [device for device in devices if device.get("name") not in taken]
        elif taken:
            flags = [device.get("name") in taken for device in devices]
        return encode_values((driver, len(devices), flags, self._list_values(slice_, devices)))

    def _list_values(self, slice_: Slice, devices: Sequence[Object]) -> list[Any]:
        """List what is read of some devices of a slice; what all its devices have in common only once."""
        if self._paths is None:
            return [(device.get("attributes"), device.get("capacity")) for device in devices]
        names = self._names.get(slice_.driver)
        if names is None:
            names = self._names[slice_.driver] = list_names(self._paths, slice_.driver)
        values: list[Any] = []
        for kind, kind_names, summary in (
            ("attributes", names.attributes, slice_.attributes),
            ("capacity", names.capacity, slice_.capacity),
        ):
            for name in kind_names:
                if name in summary.others:
                    values.append([(device.get(kind) or _NOTHING).get(name) for device in devices])
                else:
                    values.append(summary.common.get(name))
        return values


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
