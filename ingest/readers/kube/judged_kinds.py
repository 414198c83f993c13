"""Kinds of objects that refused pods are judged on, and the rights that reading them needs."""

from typing import Final, NamedTuple

from engine.device_parts import koordinator
from engine.snapshot import kinds
from runtime.kubernetes.resources import NODES, PODS, Resource

CLAIMS: Final = Resource("/apis/resource.k8s.io/v1", "resourceclaims")
"""Claims of dynamic resource allocation, in Kubernetes since 1.34."""


class JudgedKind(NamedTuple):
    """A kind of objects, and where the API server lists them."""

    kind: str
    resource: Resource

    @property
    def right(self) -> str:
        """The kind as a right names it: ``nodes``, ``resourceslices.resource.k8s.io``."""
        group = self.resource.root.removeprefix("/apis/").partition("/")[0]
        return self.resource.plural if self.resource.root.startswith("/api/") else f"{self.resource.plural}.{group}"


_CORE: Final = "/api/v1"
_STORAGE: Final = "/apis/storage.k8s.io/v1"
_DEVICES: Final = "/apis/resource.k8s.io/v1"
_KOORDINATOR: Final = "/apis/scheduling.koordinator.sh/v1alpha1"
WATCHED_ANYWAY: Final = {
    "pod": JudgedKind(kinds.POD, PODS),
    "node": JudgedKind(kinds.NODE, NODES),
    "claim": JudgedKind(kinds.RESOURCE_CLAIM, CLAIMS),
}
"""Kinds that the reader watches for its own events, by its name for them."""
WATCHED_TO_JUDGE: Final = (
    JudgedKind(kinds.NAMESPACE, Resource(_CORE, "namespaces", is_namespaced=False)),
    JudgedKind(kinds.VOLUME_CLAIM, Resource(_CORE, "persistentvolumeclaims")),
    JudgedKind(kinds.VOLUME, Resource(_CORE, "persistentvolumes", is_namespaced=False)),
    JudgedKind(kinds.STORAGE_CLASS, Resource(_STORAGE, "storageclasses", is_namespaced=False)),
    JudgedKind(kinds.CSI_NODE, Resource(_STORAGE, "csinodes", is_namespaced=False)),
    JudgedKind(kinds.CSI_DRIVER, Resource(_STORAGE, "csidrivers", is_namespaced=False)),
    JudgedKind(kinds.STORAGE_CAPACITY, Resource(_STORAGE, "csistoragecapacities")),
    JudgedKind(kinds.VOLUME_ATTACHMENT, Resource(_STORAGE, "volumeattachments", is_namespaced=False)),
    JudgedKind(kinds.RESOURCE_SLICE, Resource(_DEVICES, "resourceslices", is_namespaced=False)),
    JudgedKind(kinds.DEVICE_CLASS, Resource(_DEVICES, "deviceclasses", is_namespaced=False)),
    JudgedKind(koordinator.DEVICE, Resource(_KOORDINATOR, "devices", is_namespaced=False)),
)
"""Kinds that are watched only to judge refused pods."""
RIGHTS: Final = {entry.kind: entry.right for entry in (*WATCHED_ANYWAY.values(), *WATCHED_TO_JUDGE)}
"""Right by kind."""
