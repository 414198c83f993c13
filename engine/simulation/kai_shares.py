"""Shares of devices that KAI gives: a part of one device, next to what other pods have of it.

A pod asks by the annotation ``gpu-fraction`` or ``gpu-memory`` (MiB), perhaps of several devices. KAI puts pods that
share a device into a group, which is a label of theirs, and a pod of its own reserves each shared device on the node.
Nodes offer only whole devices to kube-scheduler's filters.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from engine.diagnosis.layers.reservations import RESERVATIONS
from engine.diagnosis.outcome import FoundObstacle, Word
from engine.diagnosis.wording import NOTHING, describe_share, shorten_list
from engine.filters.verdicts import PluginRefusal, StatusCode
from engine.hami.annotations import GPU_COUNT
from engine.simulation.cluster import SimulationCluster
from engine.snapshot.node_info import NodeInfo
from runtime.kubernetes.object_fields import get_object, get_text

SCHEDULER: Final = "kai-scheduler"
_PLUGIN: Final = "KAI"
_FRACTION: Final = "gpu-fraction"
MEMORY: Final = "gpu-memory"
"""Annotation with the MiB of a share. A pod with ``gpu-fraction`` names no amount."""
_DEVICES: Final = "gpu-fraction-num-devices"
SHARE_ANNOTATIONS: Final = (_FRACTION, MEMORY, _DEVICES)
"""Annotations of a pod that say which part of a device it asks for."""
_GROUP: Final = "runai-gpu-group"
_LABEL: Final = "nvidia.com/gpu.memory"
"""Label of a node: the MiB of each of its devices, as the GPU operator writes it."""
_NO_DEVICES: Final = "node(s) didn't have enough resources: GPUs"
_NO_MEMORY: Final = "node(s) didn't have enough resources: GPU memory"
_ROUNDING: Final = 1e-6


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


class _SharedNode(NamedTuple):
    """Free devices of a node: of each shared one its fraction by group, and the number of those that no pod has."""

    name: str
    free: Mapping[str, float]
    idle: int
    holders: Mapping[str, list[str]]
    """Pods by group."""
    is_known: bool
    """False if a pod's share of a device can't be resolved."""

    @property
    def freest(self) -> float:
        """Largest fraction that a shared device has left."""
        return max(self.free.values(), default=0.0)


def read_share(pod: Mapping[str, Any]) -> DeviceShare | None:
    """Read the share that a pod asks for; None for a pod that asks for none, or in a way that KAI refuses."""
    annotations = get_object(pod, "metadata", "annotations")
    fraction, memory = (_parse_positive(annotations.get(name)) for name in (_FRACTION, MEMORY))
    if not (fraction or memory):
        return None
    return DeviceShare(int(_parse_positive(annotations.get(_DEVICES)) or 1), fraction, 0.0 if fraction else memory)


def asks_kai_share(pod: Mapping[str, Any]) -> bool:
    """Tell whether a pod asks KAI for a part of a device."""
    return get_text(pod, "spec", "schedulerName") == SCHEDULER and read_share(pod) is not None


def _parse_positive(text: object) -> float:
    try:
        value = float(text) if isinstance(text, str) and len(text) < 32 else 0.0
    except ValueError:
        return 0.0
    return value if 0 < value < float("inf") else 0.0


class SharesRefused(NamedTuple):
    """Nodes without a device for the share, and what keeps the pod from them."""

    nodes: Mapping[str, PluginRefusal]
    obstacle: FoundObstacle


def refuse_shares(cluster: SimulationCluster, pod: Mapping[str, Any], offered: Sequence[str]) -> SharesRefused | None:
    """Refuse the ``offered`` nodes that have no device left for the share of a pod of KAI; None if there are none.

    A node of which a share can't be resolved, since its label is missing, is not refused.
    """
    share = read_share(pod)
    if share is None or get_text(pod, "spec", "schedulerName") != SCHEDULER:
        return None
    pods = _group_pods(cluster)
    refused: dict[str, PluginRefusal] = {}
    nearest: _SharedNode | None = None
    for info in (cluster.snapshot.nodes[name] for name in offered if name in cluster.snapshot.nodes):
        total = _parse_positive(info.node.labels.get(_LABEL))
        fraction, node = share.resolve(total), _read_node(info, pods.get(info.name, ()), total)
        if fraction is None or not node.is_known:
            continue
        fitting = sum(free >= fraction - _ROUNDING for free in node.free.values())
        if fraction > 1 + _ROUNDING:
            refused[info.name] = PluginRefusal(_PLUGIN, StatusCode.UNRESOLVABLE, (_NO_MEMORY,))
        elif fitting + node.idle < share.devices:
            refused[info.name] = PluginRefusal(_PLUGIN, StatusCode.UNSCHEDULABLE, (_NO_DEVICES,))
            nearest = node if nearest is None or node.freest > nearest.freest else nearest
    return SharesRefused(refused, _describe(share, sorted(refused), cluster.node_count, nearest)) if refused else None


def _group_pods(cluster: SimulationCluster) -> dict[str, list[Mapping[str, Any]]]:
    """Group the pods that share devices by node, without those that reserve the devices."""
    grouped: dict[str, list[Mapping[str, Any]]] = {}
    for pod in cluster.list_kind("Pod"):
        node = get_text(pod, "spec", "nodeName")
        is_over = get_text(pod, "status", "phase") in ("Succeeded", "Failed")
        if node and not is_over and get_text(pod, "metadata", "namespace") != RESERVATIONS and any(_list_groups(pod)):
            grouped.setdefault(node, []).append(pod)
    return grouped


def _list_groups(pod: Mapping[str, Any]) -> Iterator[str]:
    for label, value in get_object(pod, "metadata", "labels").items():
        if is_group_label(label):
            yield str(value)


def is_group_label(label: str) -> bool:
    """Tell whether a label of a pod names a shared device: one label, or for several devices one each."""
    return label == _GROUP or label.startswith(f"{_GROUP}/")


def _read_node(info: NodeInfo, pods: Sequence[Mapping[str, Any]], total_mib: float) -> _SharedNode:
    free: dict[str, float] = {}
    holders: dict[str, list[str]] = {}
    is_known = True
    for pod in pods:
        share = read_share(pod)
        fraction = share.resolve(total_mib) if share else None
        is_known = is_known and fraction is not None
        metadata = get_object(pod, "metadata")
        for group in _list_groups(pod):
            free[group] = free.get(group, 1.0) - (fraction or 0.0)
            holders.setdefault(group, []).append(f"{metadata.get('namespace', '')}/{metadata.get('name', '')}")
    # Each shared device is held as a whole by the pod that reserves it.
    idle = info.node.allocatable.get(GPU_COUNT, 0) - info.requested.get(GPU_COUNT, 0)
    return _SharedNode(info.name, free, max(idle, 0), holders, is_known)


def _describe(share: DeviceShare, nodes: Sequence[str], total: int, nearest: _SharedNode | None) -> FoundObstacle:
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
    if not nearest.free:
        return FoundObstacle("KaiShareInUse", words, numbers, nodes, len(nodes))
    group = max(nearest.free, key=lambda name: nearest.free[name])
    holders = shorten_list(sorted(nearest.holders[group]))
    words |= {"free": f"{max(nearest.freest, 0.0):.2g}", "node": nearest.name, "holders": holders}
    return FoundObstacle("KaiShareInUse", words, numbers, nodes, len(nodes), clauses=["nearest"])
