"""Nodes of a case with what pods hold of their devices: the answers of the API's ``/nodes`` and ``/occupancy``.

A node that registers devices with HAMi or Volcano, or has Koordinator's object Device, is answered by them, and what a
pod holds by its annotations. Of others only whole devices are counted, by the resource that their device plugin offers:
nobody records who holds which.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Final, NamedTuple

from engine.capacity.fleet import add_devices
from engine.device_parts.divisible import WHOLE_DEVICE, DivisibleDevice
from engine.device_parts.koordinator import DEVICE
from engine.device_parts.node_devices import list_node_devices
from engine.diagnosis.facts import NodeFacts
from engine.diagnosis.objects import to_node_facts
from engine.fit.devices.pod_usage import PodUse, has_ended, read_pod_use
from engine.hami.node_checks import REGISTRATION_MISSING
from engine.hami.node_registration import list_cordoned_devices, read_node
from engine.hami.quantities import parse_whole
from engine.hami.registration import Device
from engine.hami.vendor_catalog import list_vendors
from engine.snapshot import kinds
from engine.snapshot.case_objects import CaseObjects
from engine.summaries.node_pools import find_pool
from engine.summaries.trends import PoolOf
from runtime.kubernetes.object_fields import Fields, get_object, get_text, iterate_objects, list_conditions
from runtime.kubernetes.resources import NODES, Key
from schemas.answers.nodes import NodeListed, NodeLock, Nodes, RegistrationListed
from schemas.answers.placements import CheckLog, DeviceOccupancy, Holder, NodeOccupancy, NodeState, PodOnNode
from schemas.codec.records import format_rfc3339
from schemas.events import NodeProblem

_CLUSTER: Final = "cluster"
_HAMI: Final = "hami.io/"
_MODEL_LABELS: Final = ("nvidia.com/gpu.product", "amd.com/gpu.product-name")
_SYSTEM_DOMAIN: Final = "kubernetes.io"
_CONTAINERS: Final = ("containers", "initContainers")


class _Share(NamedTuple):
    """Share that a pod holds of one device."""

    pod: Fields
    memory_mib: int | None
    cores_percent: int | None
    slots: int


@dataclass(slots=True)
class _HeldDevice:
    """A device with the shares of pods. ``slots_total``: of a resource, the number of its devices."""

    uuid: str
    model: str
    memory_mib: int | None
    cores_percent: int | None
    slots_total: int | None
    is_healthy: bool | None
    is_cordoned: bool | None
    is_resource: bool = False
    """True for all devices of a resource together, of which nobody records who holds which."""
    shares: list[_Share] = field(default_factory=list)

    @property
    def slots_held(self) -> int:
        return sum(share.slots for share in self.shares)

    def sum_memory(self) -> int | None:
        """Sum the memory that pods hold; None where memory is not divided."""
        return None if self.memory_mib is None else sum(share.memory_mib or 0 for share in self.shares)

    def count_devices(self) -> int:
        """Count the devices behind the row."""
        return (self.slots_total or 0) if self.is_resource else 1

    def count_free(self) -> int:
        """Count the devices that a pod could get completely."""
        if self.is_healthy is False or self.is_cordoned:
            return 0
        return max(self.count_devices() - self.slots_held, 0) if self.is_resource else int(not self.shares)

    @property
    def memory_free_mib(self) -> int:
        """Free memory, of a device that is neither unhealthy nor cordoned."""
        if self.memory_mib is None or self.is_healthy is False or self.is_cordoned:
            return 0
        return max(self.memory_mib - (self.sum_memory() or 0), 0)


class CaseNodes:
    """Nodes of one case at ``now``. pool_of: pools by the names of nodes, which come before labels."""

    def __init__(self, objects: CaseObjects, now: datetime, pool_of: PoolOf | None = None) -> None:
        self._objects, self._now, self._pool_of = objects, now, pool_of

    def list_nodes(self, pool: str = "") -> Nodes:
        """List the nodes by their names: all, or those of one pool."""
        names = sorted(get_text(node, "metadata", "name") for node in self._objects.select(kinds.NODE))
        items = [self._to_listed(name) for name in names if not pool or self._find_pool(name)[0] == pool]
        return Nodes(total=len(items), items=items)

    def list_pools(self) -> list[str]:
        """List the pools that nodes are in."""
        names = (get_text(node, "metadata", "name") for node in self._objects.select(kinds.NODE))
        return sorted({pool for name in names if (pool := self._find_pool(name)[0])})

    def _find_pool(self, name: str) -> tuple[str, str]:
        labels = get_object(self._objects.find(kinds.NODE, name) or {}, "metadata", "labels")
        return find_pool(name, self._pool_of, labels)

    def build_occupancy(self, name: str) -> NodeOccupancy | None:
        """Build what is held of a node's devices and by whom; None for a node that does not exist."""
        node = self._objects.find(kinds.NODE, name)
        if node is None:
            return None
        devices = self._list_devices(node)
        is_cordoned = _is_cordoned(node)
        return NodeOccupancy(
            node=name,
            at=format_rfc3339(self._now),
            cordoned=is_cordoned,
            devices=[self._to_occupancy(device) for device in devices],
            free_devices=0 if is_cordoned else sum(device.count_free() for device in devices),
            pods=[self._to_pod(pod, devices) for pod in self._pods.get(name, ())],
            other_pods=0,
        )

    def build_state(self, name: str) -> NodeState | None:
        """Build the state of a node: the problems of its registration."""
        node = self._objects.find(kinds.NODE, name)
        if node is None:
            return None
        facts = to_node_facts(node, NODES.build_object_path(Key("", name)), self._now)
        now = format_rfc3339(self._now)
        check = CheckLog(observed_at=now, reported_by=_CLUSTER, problems=self._list_problems(facts))
        return NodeState(
            node=name, at=now, registrations=[], checks=[check], status=None, occupancy=f"/nodes/{name}/occupancy"
        )

    @cached_property
    def _pods(self) -> Mapping[str, Sequence[Fields]]:
        """Pods by their nodes, without those that have ended."""
        grouped: dict[str, list[Fields]] = {}
        for pod in self._objects.select(kinds.POD):
            if (node := get_text(pod, "spec", "nodeName")) and not has_ended(pod):
                grouped.setdefault(node, []).append(pod)
        return grouped

    def _list_devices(self, node: Fields) -> list[_HeldDevice]:
        annotations = get_object(node, "metadata", "annotations")
        vendors = list_vendors(annotations)
        registered = read_node(node, vendors).combine_devices(vendors)
        name = get_text(node, "metadata", "name")
        pods = self._pods.get(name, ())
        if registered is None and (divisible := list_node_devices(node, self._objects.find(DEVICE, name), pods)):
            return [_build_shared(device, pods) for device in divisible]
        if registered is None and self._is_unregistered(node):
            # Its resource counts shares of devices that nobody can get.
            return []
        if registered is None:
            return [_build_resource(node, name, amount, pods) for name, amount in _iterate_resources(node)]
        cordoned = list_cordoned_devices(annotations)
        devices = {
            device.uuid: _build_device(device, is_cordoned=device.uuid in cordoned)
            for device in registered.registration.devices
        }
        for pod in pods:
            if use := read_pod_use(pod, vendors, is_first_sight=False):
                _add_use(devices, pod, use)
        return list(devices.values())

    @cached_property
    def _has_hami(self) -> bool:
        """True if a node carries an annotation of HAMi."""
        nodes = self._objects.select(kinds.NODE)
        return any(key.startswith(_HAMI) for node in nodes for key in get_object(node, "metadata", "annotations"))

    def _list_problems(self, facts: NodeFacts) -> list[NodeProblem]:
        """List the problems of a node's registration; none in a cluster without HAMi, where no node registers."""
        return list(facts.problems or ()) if self._has_hami else []

    def _is_unregistered(self, node: Fields) -> bool:
        problems = self._list_problems(to_node_facts(node, "", self._now))
        return any(problem.code == REGISTRATION_MISSING for problem in problems)

    def _to_listed(self, name: str) -> NodeListed:
        node = self._objects.find(kinds.NODE, name) or {}
        facts = to_node_facts(node, NODES.build_object_path(Key("", name)), self._now)
        devices, is_cordoned = self._list_devices(node), _is_cordoned(node)
        usable = [] if is_cordoned else devices
        free_memory = [device.memory_free_mib for device in usable]
        has_memory = any(device.memory_mib is not None for device in devices)
        ready = next((entry.status for entry in list_conditions(node) if entry.type == "Ready"), None)
        now = format_rfc3339(self._now)
        registration = RegistrationListed(
            reported_by=_CLUSTER, observed_at=now, registered=True, cause="", handshake="", devices=facts.devices or 0
        )
        lock = facts.lock
        sums = add_devices([self._to_occupancy(device) for device in devices], is_closed=is_cordoned)
        pool, source = self._find_pool(name)
        return NodeListed(
            node=name,
            pool=pool,
            pool_source=source,
            registrations=[registration] if facts.devices else [],
            problems=self._list_problems(facts),
            ready=ready,
            cordoned=is_cordoned,
            lock=NodeLock(pod=lock.holder, locked_at=format_rfc3339(lock.since), seen_at=now) if lock else None,
            pods=len(self._pods.get(name, ())),
            devices=sum(device.count_devices() for device in devices),
            unhealthy_devices=sum(device.is_healthy is False for device in devices),
            cordoned_devices=sum(device.is_cordoned is True for device in devices),
            free_devices=sum(device.count_free() for device in usable),
            memory_free_mib=sum(free_memory) if has_memory else None,
            largest_free_mib=max(free_memory, default=0) if has_memory else None,
            fragmentation=_derive_fragmentation(usable) if has_memory else None,
            **sums._asdict(),
            path=f"/nodes/{name}",
            occupancy=f"/nodes/{name}/occupancy",
        )

    def _to_occupancy(self, device: _HeldDevice) -> DeviceOccupancy:
        cores = [share.cores_percent for share in device.shares if share.cores_percent is not None]
        return DeviceOccupancy(
            uuid=device.uuid,
            model=device.model,
            memory_total_mib=device.memory_mib,
            memory_held_mib=device.sum_memory(),
            cores_total_percent=device.cores_percent,
            cores_held_percent=None if device.cores_percent is None else sum(cores),
            slots_total=device.slots_total,
            slots_held=device.slots_held,
            healthy=device.is_healthy,
            cordoned=device.is_cordoned,
            held_by=[_to_holder(share) for share in device.shares],
        )

    def _to_pod(self, pod: Fields, devices: Sequence[_HeldDevice]) -> PodOnNode:
        namespace, name = get_text(pod, "metadata", "namespace"), get_text(pod, "metadata", "name")
        held = [device.uuid for device in devices if any(share.pod is pod for share in device.shares)]
        return PodOnNode(
            namespace=namespace,
            name=name,
            pod_uid=get_text(pod, "metadata", "uid"),
            phase=get_text(pod, "status", "phase"),
            started_at=get_text(pod, "status", "startTime"),
            devices=held,
            schedulerlog="",
        )


def _is_cordoned(node: Fields) -> bool:
    return get_object(node, "spec").get("unschedulable") is True


def _build_device(device: Device, *, is_cordoned: bool) -> _HeldDevice:
    return _HeldDevice(
        device.uuid, device.model, device.memory_mib, device.cores, device.slots, device.is_healthy, is_cordoned
    )


def _build_shared(device: DivisibleDevice, pods: Sequence[Fields]) -> _HeldDevice:
    by_name = {(get_text(pod, "metadata", "namespace"), get_text(pod, "metadata", "name")): pod for pod in pods}
    has_memory = device.memory_mib is not None
    shares = [
        _Share(
            by_name[share.namespace, share.pod], share.memory_mib if has_memory else None, share.cores_percent, slots=1
        )
        for share in device.shares
    ]
    return _HeldDevice(
        device.id, device.model, device.memory_mib, WHOLE_DEVICE, device.slots, device.is_healthy, None, shares=shares
    )


def _add_use(devices: dict[str, _HeldDevice], pod: Fields, use: PodUse) -> None:
    for uuid, share in use.by_uuid.items():
        # A device that is no longer registered is still held.
        device = devices.setdefault(uuid, _HeldDevice(uuid, "", None, None, None, None, None))
        device.shares.append(_Share(pod, share.memory_mib, share.cores, share.slots))


def _iterate_resources(node: Fields) -> Iterator[tuple[str, int]]:
    """Iterate over the resources of device plugins that a node offers, with their amounts."""
    for name, amount in get_object(node, "status", "allocatable").items():
        domain, slash, _ = name.partition("/")
        number = parse_whole(str(amount))
        if slash and number and not domain.endswith(_SYSTEM_DOMAIN):
            yield name, number


def _build_resource(node: Fields, name: str, amount: int, pods: Sequence[Fields]) -> _HeldDevice:
    model = next((text for label in _MODEL_LABELS if (text := get_text(node, "metadata", "labels", label))), "")
    shares = [_Share(pod, None, None, count) for pod in pods if (count := _count_requested(pod, name))]
    return _HeldDevice(name, model, None, None, amount, None, None, is_resource=True, shares=shares)


def _count_requested(pod: Fields, resource: str) -> int:
    """Count the devices that a pod requests: of its containers together, or of the largest init container."""
    sums = [
        [
            parse_whole(str(get_object(container, "resources", "limits").get(resource, "0"))) or 0
            for container in iterate_objects(pod, "spec", containers)
        ]
        for containers in _CONTAINERS
    ]
    return max(sum(sums[0]), max(sums[1], default=0))


def _to_holder(share: _Share) -> Holder:
    started = get_text(share.pod, "status", "startTime") or get_text(share.pod, "metadata", "creationTimestamp")
    return Holder(
        namespace=get_text(share.pod, "metadata", "namespace"),
        name=get_text(share.pod, "metadata", "name"),
        container="",
        init=False,
        memory_mib=share.memory_mib,
        cores_percent=share.cores_percent,
        slots=share.slots,
        started_at=started or format_rfc3339(datetime.min.replace(tzinfo=UTC)),
        attempt_id="",
    )


def _derive_fragmentation(devices: Sequence[_HeldDevice]) -> float:
    """Derive the share of the free memory that lies on devices of which pods hold some."""
    total = sum(device.memory_free_mib for device in devices)
    partly = sum(device.memory_free_mib for device in devices if device.shares)
    return round(partly / total, 4) if total else 0.0
