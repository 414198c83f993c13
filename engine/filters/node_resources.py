"""NodeResourcesFit: the pod's request against what a node has left."""

from dataclasses import dataclass
from typing import Final

from engine.filters.cycle import NodeCheck, SchedulingCycle
from engine.filters.verdicts import PluginRefusal, StatusCode, Unjudged, Verdict
from engine.snapshot import kinds
from engine.snapshot.fields import Object, read_items
from engine.snapshot.node_info import NodeInfo
from engine.snapshot.quantity import PODS
from engine.snapshot.requests import is_sidecar
from engine.snapshot.snapshot import Snapshot

NAME: Final = "NodeResourcesFit"
TOO_MANY_PODS: Final = "Too many pods"
_FIRST: Final = ("cpu", "memory", "ephemeral-storage")
_DEVICE_CLASS_PREFIX: Final = "deviceclass.resource.kubernetes.io/"


@dataclass(frozen=True, slots=True)
class ResourceCheck(NodeCheck):
    """Judges what a node has left."""

    request: tuple[tuple[str, int], ...]
    """Amounts above zero: CPU, memory and ephemeral storage first, then the others by name."""
    claimable: frozenset[str]
    """Extended resources that a DeviceClass provides where a node has none of its own."""
    unread: frozenset[str]
    marks_oversized: bool
    are_classes_unread: bool

    def judge(self, node: NodeInfo) -> Verdict:
        """Refuse a node that has too little of a resource, or as many pods as it may have."""
        allocatable, requested = node.node.allocatable, node.requested
        is_full = len(node.pods) + 1 > allocatable.get(PODS, 0)
        lacking = [
            (resource, amount)
            for resource, amount in self.request
            if amount > allocatable.get(resource, 0) - requested.get(resource, 0)
            and not (resource in self.claimable and allocatable.get(resource, 0) <= 0)
        ]
        if not lacking and not is_full:
            return Unjudged(NAME, self.unread) if self.unread else None
        if self.are_classes_unread and not is_full and not any(self._is_certain(name, node) for name, _ in lacking):
            return Unjudged(NAME, frozenset((kinds.DEVICE_CLASS,)))
        reasons = [TOO_MANY_PODS] if is_full else []
        reasons += [f"Insufficient {resource}" for resource, _ in lacking]
        is_oversized = any(amount > allocatable.get(resource, 0) for resource, amount in lacking)
        code = StatusCode.UNRESOLVABLE if is_oversized and self.marks_oversized else StatusCode.UNSCHEDULABLE
        return PluginRefusal(NAME, code, tuple(reasons))

    def _is_certain(self, resource: str, node: NodeInfo) -> bool:
        """Return whether no DeviceClass could provide a resource: native ones, and where the node has its own."""
        return "/" not in resource or node.node.allocatable.get(resource, 0) > 0


def prepare(cycle: SchedulingCycle) -> NodeCheck | PluginRefusal:
    """Order the request; refuse a sidecar where the release does not know any."""
    if not cycle.release.has("SidecarContainers") and _has_sidecar(cycle.spec):
        return _SIDECARS_DISABLED
    asks_devices = cycle.release.has("DRAExtendedResource")
    positive = {resource: amount for resource, amount in cycle.request.items() if amount > 0 and resource != PODS}
    order = [resource for resource in _FIRST if resource in positive] + sorted(positive.keys() - set(_FIRST))
    return ResourceCheck(
        request=tuple((resource, positive[resource]) for resource in order),
        claimable=frozenset(map_class_resources(cycle.snapshot)) if asks_devices else frozenset(),
        unread=cycle.snapshot.find_missing_kinds(kinds.POD),
        marks_oversized=cycle.release.marks_oversized_request,
        are_classes_unread=asks_devices and bool(cycle.snapshot.find_missing_kinds(kinds.DEVICE_CLASS)),
    )


def map_class_resources(snapshot: Snapshot) -> dict[str, str]:
    """Map extended resources to the device classes that provide them, by the field of the class and by its name."""
    classes: dict[str, str] = {}
    for (_, name), device_class in snapshot.get_objects(kinds.DEVICE_CLASS).items():
        classes[f"{_DEVICE_CLASS_PREFIX}{name}"] = name
        spec = device_class.get("spec")
        resource = spec.get("extendedResourceName") if isinstance(spec, dict) else None
        if isinstance(resource, str):
            classes[resource] = name
    return classes


def _has_sidecar(spec: Object) -> bool:
    return any(is_sidecar(container) for _, container in read_items(spec, "initContainers", "spec"))


_SIDECARS_DISABLED: Final = PluginRefusal(
    NAME,
    StatusCode.UNRESOLVABLE,
    ("Pod has a restartable init container and the SidecarContainers feature is disabled",),
)
