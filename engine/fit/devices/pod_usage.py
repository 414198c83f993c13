"""Devices that one pod holds, from its annotations and status (HAMi's `getNodesUsage`, `initContainer.go`).

App containers run at the same time, so their shares add up. Init containers run before them, one after the other, so
per device the biggest counts. A pod holds the larger of the two, and only the app containers' part once every init
container has succeeded. Since v2.11 an init container with `restartPolicy: Always`, a sidecar, runs next to all that
start after it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from engine.hami import allocation
from engine.hami.allocation import AllocatedDevice, AllocationError, MigAllocation
from engine.hami.annotations import ASSIGNED_NODE, MIG_ALLOCATIONS
from engine.hami.go_values import to_mapping
from engine.hami.mig import Placement
from engine.hami.quantities import parse_whole
from engine.hami.vendor_annotations import METAX_CLASS
from engine.hami.vendors import NVIDIA, Vendors, get_rules

_ENDED: Final = frozenset({"Succeeded", "Failed"})
SIDECAR_POLICY: Final = "Always"
"""`restartPolicy` of an init container that runs as long as its pod."""


Held = Mapping[str, Sequence[Sequence[AllocatedDevice]]]
"""Devices of each container, by vendor; init containers come first."""
Instance = tuple[str, Placement]
"""MIG instance on a device: the name of its profile, and its placement."""


class DeviceUse(NamedTuple):
    """Effective share of one device: MiB, percent of the device, slots, and the MIG instances on it.

    The instances belong to all containers, ended init containers included: HAMi keeps them until the pod ends.
    """

    memory_mib: int
    cores: int
    slots: int
    instances: tuple[Instance, ...] = ()
    vendor: str = NVIDIA.word


@dataclass(frozen=True, slots=True)
class PodUse:
    """Use that one pod makes of its node's devices."""

    node: str
    namespace: str
    by_uuid: Mapping[str, DeviceUse]
    # For metrics alone: nothing is counted by them, so a difference in them changes no state.
    name: str = field(default="", compare=False)
    app_class: str = ""
    """Metax' `sgpu-app-class`: online or offline; "" for none."""
    held: Held = field(default_factory=dict, compare=False)

    def sum_quota_use(self) -> dict[str, tuple[int, int]]:
        """Sum the amounts that count against the namespace's quotas, by vendor: MiB, and percent of one device."""
        used: dict[str, tuple[int, int]] = {}
        for share in self.by_uuid.values():
            memory_mib, cores = used.get(share.vendor, (0, 0))
            used[share.vendor] = (memory_mib + share.memory_mib, cores + share.cores)
        return used


def has_ended(pod: Mapping[str, Any]) -> bool:
    """Tell whether the pod succeeded or failed: then it holds nothing, although its annotations remain."""
    phase = to_mapping(pod.get("status")).get("phase")
    return isinstance(phase, str) and phase in _ENDED


def is_leaving(pod: Mapping[str, Any]) -> bool:
    """Tell whether the pod is being deleted."""
    return to_mapping(pod.get("metadata")).get("deletionTimestamp") is not None


def read_pod_use(pod: Mapping[str, Any], vendors: Vendors, *, is_first_sight: bool) -> PodUse | None:
    """Read what the pod holds of the vendors' devices by its annotations; None for a pod that was never placed.

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
    rules = get_rules(vendors)
    held = {word: allocation.decode_devices(_read_text(annotations, key), rules) for word, key in present.items()}
    sidecars = list_sidecars(pod) if rules.counts_sidecars else frozenset()
    return build_pod_use(
        node,
        namespace if isinstance(namespace, str) else "",
        str(metadata.get("name", "")),
        held,
        _read_mig_allocations(annotations),
        init_containers=_count_init_containers(pod),
        init_done=not is_first_sight and _has_init_succeeded(pod, sidecars),
        sidecars=sidecars,
        app_class=_read_text(annotations, METAX_CLASS),
    )


def explain_overclaim(pod: Mapping[str, Any], vendors: Vendors) -> str:
    """Explain why no scheduler wrote the pod's annotations: pods' authors may write any. Empty where one may have.

    HAMi believes them all. A pod must have requested as many devices as it holds, and no amount is negative.
    """
    annotations, spec = to_mapping(to_mapping(pod.get("metadata")).get("annotations")), to_mapping(pod.get("spec"))
    # Most pods hold nothing.
    if ASSIGNED_NODE not in annotations:
        return ""
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    for vendor in vendors:
        try:
            listed = allocation.decode_devices(_read_text(annotations, vendor.pod.allocated), vendor.rules)
        except AllocationError as error:
            return str(error)
        devices = [device for container in listed for device in container]
        if any(device.memory_mib < 0 or device.cores < 0 for device in devices):
            return "an amount is negative"
        requested = sum(_read_count(container, vendor.resources.count) for container in containers) if devices else 0
        if len(devices) > requested:
            return f"it names {len(devices)} devices of {vendor.word}, the pod asks for {requested}"
    return ""


def _read_count(container: Any, resource: str) -> int:
    resources = to_mapping(to_mapping(container).get("resources"))
    for amounts in (to_mapping(resources.get("limits")), to_mapping(resources.get("requests"))):
        if resource in amounts:
            return parse_whole(amounts[resource]) or 0
    return 0


def build_pod_use(
    node: str,
    namespace: str,
    name: str,
    held: Held,
    mig: Sequence[MigAllocation],
    *,
    init_containers: int,
    init_done: bool,
    sidecars: frozenset[int] = frozenset(),
    app_class: str = "",
) -> PodUse:
    """Build the use of a pod from the devices that each of its containers holds by vendor.

    init_containers: the number of containers in `held` that come first and are init containers. init_done: these ended.
    sidecars: positions of those among them that run on next to the app containers.
    """
    by_uuid: dict[str, DeviceUse] = {}
    for vendor, containers in held.items():
        # `hami.io/vgpu-mig-allocations` has no vendor: only NVIDIA's devices have MIG.
        placed = mig if vendor == NVIDIA.word else ()
        running = [] if init_done else range(init_containers)
        phases = _Phases(frozenset(range(init_containers)) - sidecars, sidecars, frozenset(running) - sidecars)
        by_uuid |= _list_shares(vendor, containers, placed, phases)
    return PodUse(node, namespace, by_uuid, name, app_class, held)


class _Phases(NamedTuple):
    """Positions of a pod's containers: init containers that end, sidecars, and init containers that still count."""

    init: frozenset[int]
    sidecars: frozenset[int]
    counting: frozenset[int]


class _Load:
    """Amounts of one device while the containers start in their order: MiB, percent and slots."""

    def __init__(self) -> None:
        self._sidecars = self._apps = (0, 0, 0)
        self._peak: tuple[int, int, int] | None = None

    def start(self, held: AllocatedDevice, position: int, phases: _Phases) -> None:
        """Count the device of a container that starts now."""
        amounts = held.memory_mib, held.cores, held.slots
        if position in phases.sidecars:
            self._sidecars = _add(self._sidecars, amounts)
        elif position not in phases.init:
            self._apps = _add(self._apps, amounts)
        else:
            amounts = _add(self._sidecars, amounts)
            self._peak = _choose_larger(self._peak, amounts) if self._peak else amounts

    def to_use(self, instances: tuple[Instance, ...], vendor: str) -> DeviceUse:
        running = _add(self._sidecars, self._apps)
        memory_mib, cores, slots = _choose_larger(self._peak, running) if self._peak else running
        return DeviceUse(memory_mib, cores, slots, instances, vendor)


def _add(some: tuple[int, int, int], more: tuple[int, int, int]) -> tuple[int, int, int]:
    return some[0] + more[0], some[1] + more[1], some[2] + more[2]


def _choose_larger(some: tuple[int, int, int], others: tuple[int, int, int]) -> tuple[int, int, int]:
    return max(some[0], others[0]), max(some[1], others[1]), max(some[2], others[2])


def _list_shares(
    vendor: str, containers: Sequence[Sequence[AllocatedDevice]], mig: Sequence[MigAllocation], phases: _Phases
) -> dict[str, DeviceUse]:
    loads: dict[str, _Load] = {}
    for position, container in enumerate(containers):
        if position in phases.init and position not in phases.counting:
            continue
        for held in container:
            loads.setdefault(held.uuid, _Load()).start(held, position, phases)
    return {
        uuid: loads.get(uuid, _Load()).to_use(
            tuple((row.profile, row.placement) for row in mig if row.uuid == uuid), vendor
        )
        for uuid in dict.fromkeys([*loads, *(row.uuid for row in mig)])
    }


def _count_init_containers(pod: Mapping[str, Any]) -> int:
    listed = to_mapping(pod.get("spec")).get("initContainers")
    return len(listed) if isinstance(listed, list) else 0


def list_sidecars(pod: Mapping[str, Any]) -> frozenset[int]:
    """List the positions of the init containers that run next to the app containers."""
    listed = to_mapping(pod.get("spec")).get("initContainers")
    return frozenset(
        position
        for position, container in enumerate(listed if isinstance(listed, list) else ())
        if to_mapping(container).get("restartPolicy") == SIDECAR_POLICY
    )


def _has_init_succeeded(pod: Mapping[str, Any], sidecars: frozenset[int]) -> bool:
    """Tell whether the init containers that end have succeeded; False for a pod without init containers."""
    statuses = to_mapping(pod.get("status")).get("initContainerStatuses")
    rows = statuses if isinstance(statuses, list) else []
    if not sidecars:
        ended = [_read_exit_code(status) for status in rows]
        return 0 < _count_init_containers(pod) <= len(ended) and all(code == 0 for code in ended)
    # Up to v2.10 HAMi counts the statuses; since v2.11 it looks for each container's own.
    codes = {to_mapping(status).get("name"): _read_exit_code(status) for status in rows}
    listed = to_mapping(pod.get("spec")).get("initContainers") or ()
    ending = [container for position, container in enumerate(listed) if position not in sidecars]
    return all(codes.get(to_mapping(container).get("name")) == 0 for container in ending)


def _read_exit_code(status: Any) -> Any:
    return to_mapping(to_mapping(to_mapping(status).get("state")).get("terminated")).get("exitCode")


def _read_mig_allocations(annotations: Mapping[str, Any]) -> tuple[MigAllocation, ...]:
    """Read the MIG allocations; unreadable ones count as none: the device annotation has the shares themselves."""
    try:
        return allocation.decode_mig(_read_text(annotations, MIG_ALLOCATIONS))
    except allocation.AllocationError:
        return ()


def _read_text(annotations: Mapping[str, Any], key: str) -> str:
    value = annotations.get(key, "")
    return value if isinstance(value, str) else ""
