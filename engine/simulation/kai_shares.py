"""Shares of devices that KAI gives: a part of one device, next to what other pods have of it.

A pod asks by the annotation ``gpu-fraction`` or ``gpu-memory`` (MiB), perhaps of several devices. KAI puts pods that
share a device into a group, which is a label of theirs, and a pod of its own reserves each shared device on the node.
Nodes offer only whole devices to kube-scheduler's filters.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from engine.diagnosis.layers.reservations import RESERVATIONS
from engine.diagnosis.outcome import FoundObstacle, Word
from engine.diagnosis.vendor_words import KAI, KAI_FRACTION, KAI_MEMORY
from engine.diagnosis.wording import NOTHING, describe_share, shorten_list
from engine.filters.verdicts import PluginRefusal, StatusCode
from engine.hami.annotations import GPU_COUNT
from engine.snapshot.node_info import NodeInfo
from engine.snapshot.snapshot import Snapshot
from runtime.kubernetes.object_fields import get_object, get_text
from schemas.json_types import Json

_PLUGIN: Final = "KAI"
_DEVICES: Final = "gpu-fraction-num-devices"
_CONTAINER: Final = "gpu-fraction-container-name"
SHARE_ANNOTATIONS: Final = (KAI_FRACTION, KAI_MEMORY, _DEVICES, _CONTAINER)
"""Annotations of a pod that say which part of a device it asks for."""
_GROUP: Final = "runai-gpu-group"
_LABEL: Final = "nvidia.com/gpu.memory"
"""Label of a node: the MiB of each of its devices, as the GPU operator writes it."""
NO_DEVICES: Final = "node(s) didn't have enough resources: GPUs"
NO_MEMORY: Final = "node(s) didn't have enough resources: GPU memory"
_ROUNDING: Final = 1e-6
_RESERVED: Final = "reservation-"


class DeviceShare(NamedTuple):
    """A part of each of ``devices`` devices: a fraction of one, or MiB."""

    devices: int
    fraction: float
    memory_mib: float

    def resolve(self, total_mib: float) -> float | None:
        """Resolve the fraction of a device with ``total_mib``; None if that is not known and needed."""
        if self.fraction:
            return self.fraction
        return self.memory_mib / total_mib if total_mib > 0 else None


@dataclass(slots=True)
class DividedDevice:
    """A device that pods share: the fraction that is free, and the pods on it."""

    free: float = 1.0
    holders: list[str] = field(default_factory=list)

    def has_free(self, fraction: float) -> bool:
        """Tell whether the fraction is free."""
        return self.free >= fraction - _ROUNDING


@dataclass(frozen=True, slots=True)
class SharedNode:
    """Devices of a node as KAI divides them."""

    name: str
    total_mib: int
    """Memory of each device as KAI counts it; 0 without the label."""
    device_count: int
    idle: int
    """Number of devices that no pod has."""
    shared: Mapping[str, DividedDevice]
    """By group."""
    is_known: bool
    """False if a pod's share of a device can't be resolved."""

    @property
    def freest(self) -> float:
        """Largest fraction that a shared device has left."""
        return max((device.free for device in self.shared.values()), default=0.0)

    def pick_groups(self, fraction: float, devices: int) -> list[str] | None:
        """Pick devices for a share, the fullest that do first, as KAI packs them; None if they are too few.

        A device that nobody shared before gets a new group.
        """
        fitting = sorted((device.free, group) for group, device in self.shared.items() if device.has_free(fraction))
        groups = [group for _, group in fitting][:devices]
        missing = devices - len(groups)
        if missing > self.idle or fraction > 1 + _ROUNDING:
            return None
        return [*groups, *(f"{self.name}-{len(self.shared) + number}" for number in range(missing))]

    def take(self, fraction: float, groups: Sequence[str]) -> "SharedNode":
        """Return the node after a pod has taken a fraction of each of these groups."""
        shared = dict(self.shared)
        for group in groups:
            before = shared.get(group, DividedDevice())
            shared[group] = DividedDevice(before.free - fraction, before.holders)
        idle = self.idle - (len(shared) - len(self.shared))
        return SharedNode(self.name, self.total_mib, self.device_count, idle, shared, self.is_known)


def read_share(pod: Mapping[str, Any]) -> DeviceShare | None:
    """Read the share that a pod asks for; None for a pod that asks for none, or in a way that KAI refuses."""
    annotations = get_object(pod, "metadata", "annotations")
    fraction, memory = (_parse_positive(annotations.get(name)) for name in (KAI_FRACTION, KAI_MEMORY))
    if not (fraction or memory):
        return None
    return DeviceShare(int(_parse_positive(annotations.get(_DEVICES)) or 1), fraction, 0.0 if fraction else memory)


def asks_kai_share(pod: Mapping[str, Any]) -> bool:
    """Tell whether a pod asks KAI for a part of a device."""
    return get_text(pod, "spec", "schedulerName") == KAI and read_share(pod) is not None


def get_sharing_container(pod: Mapping[str, Any]) -> str:
    """Return the name of the container that gets the share; empty for the first."""
    return get_text(pod, "metadata", "annotations", _CONTAINER)


def floor_to_hundred(memory_mib: int) -> int:
    """Round the node's label ``nvidia.com/gpu.memory`` down to a multiple of 100 as KAI does: 40960 counts as 40900.

    So a pod that requests exactly what the label promises fits nowhere (seen with v0.13 and v0.17).
    """
    return memory_mib // 100 * 100


def _parse_positive(text: object) -> float:
    try:
        value = float(text) if isinstance(text, str) and len(text) < 32 else 0.0
    except ValueError:
        return 0.0
    return value if 0 < value < float("inf") else 0.0


class SharesRefused(NamedTuple):
    """Nodes without a device for the share, and what keeps the pod from them."""

    share: DeviceShare
    nodes: Mapping[str, PluginRefusal]
    too_small: Mapping[str, SharedNode]
    """Nodes whose devices are smaller than the share."""
    in_use: Mapping[str, SharedNode]
    """Nodes on which other pods have the devices."""
    total: int
    """Nodes of the cluster."""

    def count_beyond_all(self) -> int:
        """Count the nodes with devices that are too small even all together."""
        return sum(self.share.memory_mib > node.total_mib * node.device_count for node in self.too_small.values())

    def describe(self) -> FoundObstacle:
        """Describe the obstacle of these nodes, with the device that has most left."""
        nearest = max(self.in_use.values(), key=lambda node: node.freest, default=None)
        return _describe(self.share, sorted(self.nodes), self.total, nearest)


def refuse_shares(
    snapshot: Snapshot, pod: Mapping[str, Any], offered: Sequence[str], total: int
) -> SharesRefused | None:
    """Refuse the ``offered`` nodes that have no device left for the share of a pod of KAI; None if there are none.

    A node of which a share can't be resolved, since its label is missing, is not refused. total: nodes of the cluster.
    """
    share = read_share(pod)
    if share is None or not asks_kai_share(pod):
        return None
    too_small, in_use = dict[str, SharedNode](), dict[str, SharedNode]()
    for info in (snapshot.nodes[name] for name in offered if name in snapshot.nodes):
        node = read_shared_node(info)
        fraction = share.resolve(node.total_mib)
        if fraction is None or not node.is_known:
            continue
        if fraction > 1 + _ROUNDING:
            too_small[info.name] = node
        elif node.pick_groups(fraction, share.devices) is None:
            in_use[info.name] = node
    nodes = {name: PluginRefusal(_PLUGIN, StatusCode.UNRESOLVABLE, (NO_MEMORY,)) for name in too_small}
    nodes |= {name: PluginRefusal(_PLUGIN, StatusCode.UNSCHEDULABLE, (NO_DEVICES,)) for name in in_use}
    return SharesRefused(share, nodes, too_small, in_use, total) if nodes else None


def count_share_copies(info: NodeInfo, pod: Mapping[str, Any], limit: int) -> int:
    """Count the copies of a pod with a share that a node takes, one after the other, at most ``limit``.

    A node whose devices can't be divided, since its label is missing, takes one copy for each idle device.
    """
    share, node = read_share(pod), read_shared_node(info)
    fraction = share.resolve(node.total_mib) if share else None
    if share is None:
        return limit
    if fraction is None or not node.is_known:
        return min(limit, max(node.idle // share.devices, 1))
    for number in range(limit):
        groups = node.pick_groups(fraction, share.devices)
        if groups is None:
            return number
        node = node.take(fraction, groups)
    return limit


def hold_share(info: NodeInfo, pod: Json) -> list[Json]:
    """Build the pod with the groups of its devices, and the pods that reserve those that nobody shared before."""
    share, node = read_share(pod), read_shared_node(info)
    fraction = share.resolve(node.total_mib) if share else None
    groups = node.pick_groups(fraction, share.devices) if share and fraction else None
    if groups is None:
        return [pod]
    metadata = get_object(pod, "metadata")
    labels = {_GROUP: groups[0]} if len(groups) == 1 else {f"{_GROUP}/{group}": group for group in groups}
    placed = {**pod, "metadata": {**metadata, "labels": {**get_object(metadata, "labels"), **labels}}}
    return [placed, *(_build_reservation(info.name, group) for group in groups if group not in node.shared)]


def _build_reservation(node: str, group: str) -> Json:
    name, amounts = f"{_RESERVED}{group}", {GPU_COUNT: "1"}
    resources = {"limits": amounts, "requests": amounts}
    metadata = {"namespace": RESERVATIONS, "name": name, "uid": name, "labels": {_GROUP: group}}
    spec = {"nodeName": node, "schedulerName": KAI, "containers": [{"name": "hold", "resources": resources}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": "Running"}}


def _list_groups(pod: Mapping[str, Any]) -> Iterator[str]:
    for label, value in get_object(pod, "metadata", "labels").items():
        if is_group_label(label):
            yield str(value)


def is_group_label(label: str) -> bool:
    """Tell whether a label of a pod names a shared device: one label, or for several devices one each."""
    return label == _GROUP or label.startswith(f"{_GROUP}/")


def read_shared_node(info: NodeInfo) -> SharedNode:
    """Read how the pods on a node divide its devices."""
    total_mib = floor_to_hundred(int(_parse_positive(info.node.labels.get(_LABEL))))
    shared: dict[str, DividedDevice] = {}
    is_known = True
    for pod in info.pods:
        groups = list(_list_groups(pod.object)) if pod.labels else []
        devices = [shared.setdefault(group, DividedDevice()) for group in groups]
        if not groups or pod.namespace == RESERVATIONS:
            continue
        share = read_share(pod.object)
        fraction = share.resolve(total_mib) if share else None
        is_known = is_known and fraction is not None
        for device in devices:
            device.free -= fraction or 0.0
            device.holders.append(f"{pod.namespace}/{pod.name}")
    # Each shared device is held as a whole by the pod that reserves it.
    count = info.node.allocatable.get(GPU_COUNT, 0)
    idle = max(count - info.requested.get(GPU_COUNT, 0), 0)
    return SharedNode(info.name, total_mib, count, idle, shared, is_known)


def _describe(share: DeviceShare, nodes: Sequence[str], total: int, nearest: SharedNode | None) -> FoundObstacle:
    words: dict[str, Word] = {
        "asked": f"{share.fraction:g} GPU" if share.fraction else f"{share.memory_mib:,.0f} MiB",
        "devices": share.devices,
        "share": describe_share(len(nodes), total, NOTHING),
        "refused": len(nodes),
        "of": total,
        "nodes": shorten_list(nodes),
    }
    numbers = {"nodes": len(nodes), "of_nodes": total, "devices": share.devices}
    if nearest is None:
        return FoundObstacle("KaiShareTooLarge", words, numbers, nodes, len(nodes))
    held = [device for device in nearest.shared.values() if device.holders]
    if not held:
        return FoundObstacle("KaiShareInUse", words, numbers, nodes, len(nodes))
    freest = max(held, key=lambda device: device.free)
    holders = shorten_list(sorted(freest.holders))
    words |= {"free": f"{max(freest.free, 0.0):.2g}", "node": nearest.name, "holders": holders}
    return FoundObstacle("KaiShareInUse", words, numbers, nodes, len(nodes), clauses=["nearest"])
