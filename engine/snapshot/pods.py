"""One Pod object, as far as it matters to the pods that are judged next to it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from engine.snapshot.affinity_terms import AffinityTerm, read_required_terms
from engine.snapshot.fields import Object, read_int32, read_items, read_labels, read_mapping, read_text
from engine.snapshot.requests import Amounts, is_sidecar, request_on_node
from engine.snapshot.selectors import Labels
from engine.snapshot.volumes import PodVolume, read_pod_volumes

ANY_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - an address in an object, not one to listen on
_ENDED: Final = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class HostPortBinding:
    """A port of the node that a container takes."""

    address: str
    protocol: str
    port: int
    is_of_sidecar: bool = False

    def is_conflicting(self, other: "HostPortBinding") -> bool:
        """Return whether both cannot be taken on one node."""
        if (self.protocol, self.port) != (other.protocol, other.port):
            return False
        return self.address == other.address or ANY_ADDRESS in (self.address, other.address)


@dataclass(frozen=True, slots=True, eq=False)
class Pod:
    """A pod that has not ended."""

    namespace: str
    name: str
    uid: str
    labels: Labels
    node: str
    """Name of the node that the pod is bound to; "" while it waits."""
    nominated_node: str
    """Name of the node that preemption has set apart for the pod, or ""."""
    scheduler: str
    priority: int
    is_deleted: bool
    """True if the deletion of the pod has begun; it holds everything until it has ended."""
    is_preempted: bool
    """True if the pod is being deleted because kube-scheduler preempted it."""
    started_at: str
    """Start of the pod as the API server wrote it, its creation until then; "" if neither is there."""
    request: Amounts
    """Request that counts on the pod's node."""
    host_ports: tuple[HostPortBinding, ...]
    volumes: tuple[PodVolume, ...]
    anti_affinity: tuple[AffinityTerm, ...]
    object: Any
    """The object as it was read."""

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.namespace, self.name


def has_ended(pod: Object) -> bool:
    """Return whether a Pod object is of a pod that has ended, which kube-scheduler never sees."""
    status = pod.get("status")
    return isinstance(status, dict) and status.get("phase") in _ENDED


def read_pod(pod: Object) -> Pod:
    """Read a Pod object; raise FieldError if a field has the wrong type."""
    metadata, spec, status = (read_mapping(pod, key) for key in ("metadata", "spec", "status"))
    namespace, name = read_text(metadata, "namespace", "metadata") or "default", read_text(metadata, "name", "metadata")
    return Pod(
        namespace=namespace,
        name=name,
        uid=read_text(metadata, "uid", "metadata"),
        labels=read_labels(metadata, "labels", "metadata"),
        node=read_text(spec, "nodeName", "spec"),
        nominated_node=read_text(status, "nominatedNodeName", "status"),
        scheduler=read_text(spec, "schedulerName", "spec") or "default-scheduler",
        priority=read_int32(spec, "priority", "spec"),
        is_deleted=metadata.get("deletionTimestamp") is not None,
        is_preempted=metadata.get("deletionTimestamp") is not None and _names_preemption(status),
        started_at=read_text(status, "startTime", "status") or read_text(metadata, "creationTimestamp", "metadata"),
        request=request_on_node(pod),
        host_ports=tuple(_iterate_host_ports(spec)),
        volumes=read_pod_volumes(spec, name),
        anti_affinity=read_required_terms(spec, "podAntiAffinity", namespace) if "affinity" in spec else (),
        object=pod,
    )


def _names_preemption(status: Object) -> bool:
    for _, condition in read_items(status, "conditions", "status"):
        if condition.get("type") == "DisruptionTarget":
            return condition.get("status") == "True" and condition.get("reason") == "PreemptionByScheduler"
    return False


def _iterate_host_ports(spec: Object) -> Iterator[HostPortBinding]:
    """Yield the host ports of sidecars and containers, which are taken as long as the pod runs."""
    for location, container in read_items(spec, "initContainers", "spec"):
        if is_sidecar(container):
            yield from _iterate_container_ports(container, location, is_of_sidecar=True)
    for location, container in read_items(spec, "containers", "spec"):
        if "ports" in container:
            yield from _iterate_container_ports(container, location)


def _iterate_container_ports(container: Object, path: str, *, is_of_sidecar: bool = False) -> Iterator[HostPortBinding]:
    for location, port in read_items(container, "ports", path):
        number = read_int32(port, "hostPort", location)
        if number > 0:
            address = read_text(port, "hostIP", location) or ANY_ADDRESS
            protocol = read_text(port, "protocol", location) or "TCP"
            yield HostPortBinding(address, protocol, number, is_of_sidecar)
