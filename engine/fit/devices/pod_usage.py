"""What one pod holds of each device, from its annotations and status (HAMi's `getNodesUsage`, `initContainer.go`).

App containers run side by side, so their shares add up. Init containers run before them, one after the other, so per
device the biggest counts. A pod holds the larger of the two, and only the app containers' part once every init
container has succeeded.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from engine.hami import allocation
from engine.hami.allocation import AllocatedDevice, AllocationError, MigAllocation
from engine.hami.annotations import ASSIGNED_NODE, MIG_ALLOCATIONS
from engine.hami.json_values import to_mapping
from engine.hami.mig import Placement
from engine.hami.quantities import parse_whole
from engine.hami.vendor_annotations import METAX_CLASS
from engine.hami.vendors import NVIDIA, Vendors

_ENDED: Final = frozenset({"Succeeded", "Failed"})


Held = Mapping[str, Sequence[Sequence[AllocatedDevice]]]
"""What each container was given, by vendor; init containers come first."""
Instance = tuple[str, Placement]
"""A MIG instance on a device: the name of its profile, and its placement."""


class DeviceUse(NamedTuple):
    """The effective share of one device: MiB, percent of the device, slots, and the MIG instances on it.

    Instances are those of all containers, ended init containers included: HAMi keeps them until the pod ends.
    """

    memory_mib: int
    cores: int
    slots: int
    instances: tuple[Instance, ...] = ()
    vendor: str = NVIDIA.word


@dataclass(frozen=True, slots=True)
class PodUse:
    """What one pod holds of its node's devices."""

    node: str
    namespace: str
    by_uuid: Mapping[str, DeviceUse]
    # For metrics alone: nothing is counted by them, so a difference in them changes no state.
    name: str = field(default="", compare=False)
    app_class: str = ""
    """Metax' `sgpu-app-class`: online or offline; "" for none."""
    held: Held = field(default_factory=dict, compare=False)

    def quota_use(self) -> dict[str, tuple[int, int]]:
        """What counts against the namespace's quotas, by vendor: MiB, and percent of one device."""
        used: dict[str, tuple[int, int]] = {}
        for share in self.by_uuid.values():
            memory_mib, cores = used.get(share.vendor, (0, 0))
            used[share.vendor] = (memory_mib + share.memory_mib, cores + share.cores)
        return used


def has_ended(pod: Mapping[str, Any]) -> bool:
    """Whether the pod succeeded or failed: then it holds nothing, although its annotations remain."""
    return to_mapping(pod.get("status")).get("phase") in _ENDED


def is_leaving(pod: Mapping[str, Any]) -> bool:
    """Whether the pod is being deleted."""
    return to_mapping(pod.get("metadata")).get("deletionTimestamp") is not None


def pod_use(pod: Mapping[str, Any], vendors: Vendors, *, is_first_sight: bool) -> PodUse | None:
    """What the pod holds of the vendors' devices by its annotations; None for a pod that was never placed.

    is_first_sight: the pod was unknown before. HAMi then counts its init containers even if they have ended, until the
    next event about the pod. Raises AllocationError where the device annotation can't be read.
    """
    metadata = to_mapping(pod.get("metadata"))
    annotations = to_mapping(metadata.get("annotations"))
    node = annotations.get(ASSIGNED_NODE)
    if not isinstance(node, str):
        return None
    namespace = metadata.get("namespace")
    keys = {vendor.word: vendor.pod.allocated for vendor in vendors}
    present = {word: key for word, key in keys.items() if key in annotations or word == NVIDIA.word}
    held = {word: allocation.decode_devices(_text(annotations, key)) for word, key in present.items()}
    return use_of(
        node,
        namespace if isinstance(namespace, str) else "",
        str(metadata.get("name", "")),
        held,
        _mig_allocations(annotations),
        init_containers=_init_count(pod),
        init_done=not is_first_sight and _init_succeeded(pod),
        app_class=_text(annotations, METAX_CLASS),
    )


def overclaim(pod: Mapping[str, Any], vendors: Vendors) -> str:
    """Why the pod's annotations can't be those of a scheduler: who may create pods may write any. Empty if they can.

    HAMi believes them all. A pod must have asked for as many devices as it holds, and no amount is negative.
    """
    annotations, spec = to_mapping(to_mapping(pod.get("metadata")).get("annotations")), to_mapping(pod.get("spec"))
    # Most pods hold nothing.
    if ASSIGNED_NODE not in annotations:
        return ""
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    for vendor in vendors:
        try:
            listed = allocation.decode_devices(_text(annotations, vendor.pod.allocated))
        except AllocationError as error:
            return str(error)
        devices = [device for container in listed for device in container]
        if any(device.memory_mib < 0 or device.cores < 0 for device in devices):
            return "an amount is negative"
        asked = sum(_count(container, vendor.resources.count) for container in containers) if devices else 0
        if len(devices) > asked:
            return f"it names {len(devices)} devices of {vendor.word}, the pod asks for {asked}"
    return ""


def _count(container: Any, resource: str) -> int:
    resources = to_mapping(to_mapping(container).get("resources"))
    for amounts in (to_mapping(resources.get("limits")), to_mapping(resources.get("requests"))):
        if resource in amounts:
            return parse_whole(amounts[resource]) or 0
    return 0


def use_of(
    node: str,
    namespace: str,
    name: str,
    held: Held,
    mig: Sequence[MigAllocation],
    *,
    init_containers: int,
    init_done: bool,
    app_class: str = "",
) -> PodUse:
    """What the pod holds, from what each of its containers holds by vendor.

    init_containers: so many of the containers in `held` come first and are init containers. init_done: these ended.
    """
    by_uuid: dict[str, DeviceUse] = {}
    for vendor, containers in held.items():
        # `hami.io/vgpu-mig-allocations` has no vendor: only NVIDIA's devices have MIG.
        placed = mig if vendor == NVIDIA.word else ()
        by_uuid |= _shares(vendor, containers, placed, init_containers, init_done=init_done)
    return PodUse(node, namespace, by_uuid, name, app_class, held)


def _shares(
    vendor: str,
    containers: Sequence[Sequence[AllocatedDevice]],
    mig: Sequence[MigAllocation],
    init_containers: int,
    *,
    init_done: bool,
) -> dict[str, DeviceUse]:
    first_app = min(init_containers, len(containers))
    init = [] if init_done else [held for container in containers[:first_app] for held in container]
    apps = [held for container in containers[first_app:] for held in container]
    uuids = dict.fromkeys([*(held.uuid for held in (*init, *apps)), *(row.uuid for row in mig)])
    return {
        uuid: _device_use(
            vendor,
            [held for held in init if held.uuid == uuid],
            [held for held in apps if held.uuid == uuid],
            tuple((row.profile, row.placement) for row in mig if row.uuid == uuid),
        )
        for uuid in uuids
    }


def _device_use(
    vendor: str, init: list[AllocatedDevice], apps: list[AllocatedDevice], instances: tuple[Instance, ...]
) -> DeviceUse:
    memory_mib, cores = _totals(apps)
    return DeviceUse(
        max(memory_mib, *(held.memory_mib for held in init)) if init else memory_mib,
        max(cores, *(held.cores for held in init)) if init else cores,
        # HAMi: a slot for each share of an app container, and one for all init containers together.
        max(len(apps), 1) if init or apps else 0,
        instances,
        vendor,
    )


def _totals(held: Iterable[AllocatedDevice]) -> tuple[int, int]:
    rows = list(held)
    return sum(row.memory_mib for row in rows), sum(row.cores for row in rows)


def _init_count(pod: Mapping[str, Any]) -> int:
    listed = to_mapping(pod.get("spec")).get("initContainers")
    return len(listed) if isinstance(listed, list) else 0


def _init_succeeded(pod: Mapping[str, Any]) -> bool:
    statuses = to_mapping(pod.get("status")).get("initContainerStatuses")
    ended = [_exit_code(status) for status in statuses] if isinstance(statuses, list) else []
    return 0 < _init_count(pod) <= len(ended) and all(code == 0 for code in ended)


def _exit_code(status: Any) -> Any:
    return to_mapping(to_mapping(to_mapping(status).get("state")).get("terminated")).get("exitCode")


def _mig_allocations(annotations: Mapping[str, Any]) -> tuple[MigAllocation, ...]:
    """Unreadable placements count as none: the shares themselves are in the device annotation."""
    try:
        return allocation.decode_mig(_text(annotations, MIG_ALLOCATIONS))
    except allocation.AllocationError:
        return ()


def _text(annotations: Mapping[str, Any], key: str) -> str:
    value = annotations.get(key, "")
    return value if isinstance(value, str) else ""
