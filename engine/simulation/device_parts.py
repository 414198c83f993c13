"""Parts of devices that Koordinator or Volcano gives, next to what other pods hold of them.

Both look at devices after kube-scheduler's filters have let a node pass, and count the nodes with one reason.
Not judged are NUMA nodes, partitions and topologies: a node that has enough devices may still be refused for them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from engine.device_parts import koordinator, volcano
from engine.device_parts.divisible import DivisibleDevice, PartRequest
from engine.device_parts.node_devices import list_node_devices
from engine.diagnosis.facts import Evidence
from engine.diagnosis.outcome import FoundObstacle, Word
from engine.diagnosis.texts import write_phrase
from engine.diagnosis.wording import NOTHING, describe_share, shorten_list
from engine.filters.verdicts import PluginRefusal, StatusCode
from engine.hami.reason_codes import ReasonCode
from engine.snapshot.snapshot import Snapshot
from runtime.kubernetes.object_fields import get_text
from schemas.answers.diagnosis import InBothLanguages

_KOORDINATOR, _VOLCANO = "Koordinator", "Volcano"
_PLUGIN: Final = "DeviceShare"
_OTHERS: Final = ("default-scheduler", "kai-scheduler", "yunikorn")
"""Schedulers that give no parts of devices by these rules."""
_OBSTACLES: Final = {_KOORDINATOR: "DeviceShareShort", _VOLCANO: "DeviceShareRefused"}
MAX_EVIDENCE: Final = 5
"""Limit of the nodes that are evidence."""


class LackingNode(NamedTuple):
    """Devices of a node that does not meet a request."""

    request: PartRequest
    devices: Sequence[DivisibleDevice]
    """All devices of the request's kind."""

    def count_reasons(self) -> str:
        """Count the devices by the reason for which they do not meet the request."""
        counts = Counter(reason.value for device in self.devices if (reason := self.request.find_reason(device)))
        parts = [f"{count}/{len(self.devices)} {reason}" for reason, count in counts.most_common()]
        return ", ".join(parts) or f"{len(self.devices)} of {self.request.count} devices"


class PartsRefused(NamedTuple):
    """Nodes without enough devices that meet a pod's request."""

    system: str
    namespace: str
    """Namespace of the pod: holders of others are not named."""
    nodes: Mapping[str, PluginRefusal]
    devices: Mapping[str, LackingNode]
    """By refused node."""
    total: int
    """Nodes of the cluster."""

    def describe_nodes(self) -> Mapping[str, str]:
        """Describe for each node the reasons of its devices."""
        return {name: of_node.count_reasons() for name, of_node in self.devices.items()}

    def describe(self) -> FoundObstacle:
        """Describe the obstacle of these nodes."""
        request = next(iter(self.devices.values())).request
        same_kind = [of_node for of_node in self.devices.values() if of_node.request.kind == request.kind]
        devices = [device for of_node in same_kind for device in of_node.devices]
        names = sorted(self.nodes)
        largest_count = max(len(of_node.devices) for of_node in same_kind)
        words: dict[str, Word] = {
            "system": self.system, "share": describe_share(len(names), self.total, NOTHING), "refused": len(names),
            "of": self.total, "nodes": shorten_list(names), "count": request.count, "cards": len(devices),
            "on_nodes": len(same_kind), "most": largest_count, "kind": request.kind,
        }  # fmt: skip
        numbers = {"nodes": len(names), "of_nodes": self.total, "cards": len(devices)}
        details = self.describe_nodes()
        evidence = [Evidence("node", f"/api/v1/nodes/{name}", words=details[name]) for name in names[:MAX_EVIDENCE]]
        built = FoundObstacle(_OBSTACLES[self.system], words, numbers, names, len(names), evidence)
        if devices and all(request.is_beyond(device) for device in devices):
            largest = max(devices, key=lambda device: device.memory_mib or 0)
            amounts: dict[str, Word] = {"asked": request.measure_memory(largest), "largest": largest.memory_mib or 0}
            return built._replace(code="SharedDeviceTooSmall", words={**words, **amounts})
        if largest_count < request.count:
            return built._replace(code="SharedDevicesTooFew")
        return _add_nearest(built, request, devices, self.namespace)


def _add_nearest(
    obstacle: FoundObstacle, request: PartRequest, devices: Sequence[DivisibleDevice], namespace: str
) -> FoundObstacle:
    """Add the device that lacks least, sick devices, and the holders of the pod's own namespace."""
    reasons = {device.id: request.find_reason(device) for device in devices}
    sick = sum(reason is ReasonCode.CARD_NOT_HEALTH for reason in reasons.values())
    held = [device for device in devices if device.shares and reasons[device.id]]
    holders = sorted({f"{share.namespace}/{share.pod}" for device in held for share in device.shares})
    named = [holder for holder in holders if holder.startswith(f"{namespace}/")]
    words: dict[str, Word] = {"sick": sick, "holders": shorten_list(named)}
    clauses = []
    if held:
        nearest = max(held, key=lambda device: _rank_device(request, device))
        words |= {
            "near": nearest.name, "near_node": nearest.node,
            "asked": _describe_amounts(request, request.measure_memory(nearest), request.cores_percent),
            "free": _describe_amounts(request, nearest.free_memory_mib, nearest.free_cores),
            "each": write_phrase("card_each" if request.count > 1 else "card_alone", count=request.count),
        }  # fmt: skip
        clauses.append("nearest")
    clauses += ["sick"] if sick else []
    clauses += ["holders"] if named else []
    return obstacle._replace(words={**obstacle.words, **words}, clauses=clauses)


def _rank_device(request: PartRequest, device: DivisibleDevice) -> tuple[float, str, str]:
    """Rank a device by the share of the request that it has free."""
    asked_memory = request.measure_memory(device)
    parts = [
        min(device.free_memory_mib / asked_memory, 1.0) if asked_memory else 1.0,
        min(device.free_cores / request.cores_percent, 1.0) if request.cores_percent else 1.0,
    ]
    return min(parts), device.node, device.name


def _describe_amounts(request: PartRequest, memory_mib: int, cores_percent: int) -> InBothLanguages:
    """Describe amounts of a device of what the request asks for."""
    parts = [write_phrase("card_mib", memory=memory_mib)] if request.asks_memory else []
    if request.cores_percent:
        name = "card_compute" if request.kind == koordinator.GPU else "card_part"
        parts.append(write_phrase(name, cores=cores_percent))
    return InBothLanguages(en=" and ".join(part.en for part in parts), zh="、".join(part.zh for part in parts))


def refuse_parts(snapshot: Snapshot, pod: Mapping[str, Any], offered: Iterable[str], total: int) -> PartsRefused | None:
    """Refuse the ``offered`` nodes that have too few devices for what a pod asks of Koordinator or Volcano.

    None if there are none. A node that lists no devices is not refused: the schedulers look at its resources only.
    """
    system, requests = _read_requests(snapshot, pod)
    nodes, devices = dict[str, PluginRefusal](), dict[str, LackingNode]()
    for name in offered if requests else ():
        if lacking := _find_lacking(snapshot, name, system, requests):
            words = f"Insufficient {lacking.request.kind} devices" if system == _KOORDINATOR else volcano.REFUSAL
            nodes[name] = PluginRefusal(_PLUGIN, StatusCode.UNSCHEDULABLE, (words,))
            devices[name] = lacking
    namespace = get_text(pod, "metadata", "namespace") or "default"
    return PartsRefused(system, namespace, nodes, devices, total) if nodes else None


def _read_requests(snapshot: Snapshot, pod: Mapping[str, Any]) -> tuple[str, list[PartRequest]]:
    """Read what the pod asks of the system whose scheduler it names."""
    scheduler = get_text(pod, "spec", "schedulerName")
    if scheduler in ("", *_OTHERS):
        return "", []
    if snapshot.get_objects(koordinator.DEVICE) and scheduler != "volcano":
        return _KOORDINATOR, koordinator.list_requests(pod)
    return _VOLCANO, volcano.list_requests(pod)


def _find_lacking(snapshot: Snapshot, name: str, system: str, requests: Sequence[PartRequest]) -> LackingNode | None:
    """Find the first request that a node does not meet, each by itself."""
    info = snapshot.nodes.get(name)
    if info is None:
        return None
    device = snapshot.get_objects(koordinator.DEVICE).get(("", name)) if system == _KOORDINATOR else None
    devices = list_node_devices(info.node.object, device, (held.object for held in info.pods))
    for request in requests if devices else ():
        of_kind = [device for device in devices if device.kind == request.kind]
        if sum(request.find_reason(device) is None for device in of_kind) < request.count:
            return LackingNode(request, of_kind)
    return None
