"""Pods and nodes as observations, from the objects of the API server."""

from collections import OrderedDict
from collections.abc import Collection
from datetime import datetime
from hashlib import blake2b
from typing import Any, Final

from engine.device_parts.node_devices import list_node_devices, list_part_allocations, to_registration
from engine.diagnosis.vendor_words import KAI_MEMORY
from engine.hami.allocation import list_allocations
from engine.hami.annotations import BIND_PHASE, GPU_CORES, GPU_COUNT, GPU_MEMORY, GPU_MEMORY_PERCENT, HANDSHAKE
from engine.hami.node_events import to_node_registered
from engine.hami.node_registration import list_cordoned_devices, read_node
from engine.hami.vendor_catalog import list_vendors
from engine.simulation.kai_shares import is_group_label
from ingest.readers.kube.node_verdicts import PodFacts
from ingest.readers.kube.pod_problems import find_start, list_problems
from runtime.kubernetes.object_fields import get_object, get_text, iterate_objects, list_conditions, parse_moment
from runtime.kubernetes.pod_description import describe_pod
from schemas.codec.records import encode_value
from schemas.events import DeviceAllocation, Event, NodeObserved, NodeRegistered, PodObserved, PodRef, Request
from schemas.json_types import JsonView

_MICROSECONDS: Final = 1_000_000
_CONTAINER: Final = "gpu-fraction-container-name"
# Kubernetes supports 150,000 pods in a cluster; what is forgotten is at worst observed once more.
MAX_REMEMBERED: Final = 200_000


def derive_change_time(resource: JsonView) -> datetime | None:
    """Derive the time of the last change from the object only, so that reading it again gives the same time.

    Kubernetes keeps whole seconds. The microseconds are taken from the resourceVersion, which grows with every change:
    two changes within a second stay two, and in order.
    """
    metadata = get_object(resource, "metadata")
    # Not deletionTimestamp: it is the time by which the object must be gone, not that of a change.
    stamps = [get_text(metadata, "creationTimestamp")]
    stamps += [get_text(entry, "time") for entry in iterate_objects(metadata, "managedFields")]
    stamps += [get_text(entry, "lastTransitionTime") for entry in iterate_objects(resource, "status", "conditions")]
    times = [time for stamp in stamps if stamp and (time := parse_moment(stamp))]
    version = get_text(metadata, "resourceVersion")
    if not times:
        return None
    # Kubernetes calls the version opaque; etcd's is a number that grows, and nothing else is used of it.
    micros = int(version[-6:]) % _MICROSECONDS if version[-6:].isdecimal() and version.isascii() else 0
    return max(times).replace(microsecond=micros)


def parse_pod_ref(pod: JsonView) -> PodRef | None:
    metadata = get_object(pod, "metadata")
    namespace, name = get_text(metadata, "namespace"), get_text(metadata, "name")
    return PodRef(namespace=namespace, name=name, uid=get_text(metadata, "uid")) if namespace and name else None


def observe_pod(pod: JsonView, cluster: str, label_names: Collection[str] = ()) -> PodObserved | None:
    """Observe a pod; None for an object that is not a pod."""
    ref, observed = parse_pod_ref(pod), derive_change_time(pod)
    if ref is None or observed is None:
        return None
    gates = [get_text(gate, "name") for gate in iterate_objects(pod, "spec", "schedulingGates")]
    return PodObserved(
        cluster=cluster, pod=ref, observed_at=observed, phase=get_text(pod, "status", "phase"),
        node=(node := get_text(pod, "spec", "nodeName")), conditions=list_conditions(pod),
        scheduler=get_text(pod, "spec", "schedulerName"), description=describe_pod(pod, label_names),
        # Without a node they may be those of a decision that was given up.
        allocations=[*list_allocations(pod), *read_kai_allocations(pod), *list_part_allocations(pod)] if node else [],
        gates=gates, requests=[] if node else [request for request in list_requests(pod) if request.count],
        started_at=find_start(pod), problems=list_problems(pod),
        bind_phase=get_text(pod, "metadata", "annotations", BIND_PHASE),
    )  # fmt: skip


def derive_pod_facts(pod: JsonView, observation: PodObserved) -> PodFacts:
    """Derive the facts of the pod that its attempts need."""
    scheduled = next((condition for condition in observation.conditions if condition.type == "PodScheduled"), None)
    return PodFacts(
        observation.pod, tuple(list_requests(pod)), get_text(pod, "status", "nominatedNodeName"),
        observation.node, scheduled.message if scheduled else "", observation.phase,
        observation.description if observation.phase == "Pending" else None, observation.observed_at,
    )  # fmt: skip


def read_amounts(resource: JsonView, name: str) -> dict[str, str]:
    amounts = get_object(resource, "status", name)
    return {key: str(amount) for key, amount in amounts.items() if isinstance(amount, str | int | float)}


def observe_node(node: JsonView, cluster: str) -> NodeObserved | None:
    """Observe a node; None for an object that is not a node."""
    name, observed = get_text(node, "metadata", "name"), derive_change_time(node)
    if not name or observed is None:
        return None
    return NodeObserved(
        cluster=cluster, node=name, observed_at=observed, capacity=read_amounts(node, "capacity"),
        allocatable=read_amounts(node, "allocatable"), conditions=list_conditions(node),
        unschedulable=get_object(node, "spec").get("unschedulable") is True,
    )  # fmt: skip


def observe_registration(node: JsonView, cluster: str) -> NodeRegistered | None:
    """Observe the devices in the node's registrations, of all vendors; None if there is none.

    It shows the annotations as they stand. A scheduler may count fewer devices: it also applies the handshake's rules.
    """
    name, observed = get_text(node, "metadata", "name"), derive_change_time(node)
    annotations = get_object(node, "metadata", "annotations")
    vendors = list_vendors(annotations)
    reading = read_node(node, vendors)
    devices = reading.combine_devices(vendors)
    if not name or observed is None:
        return None
    if devices is None and reading.problem is None:
        divisible = list_node_devices(node, None)
        return to_node_registered(cluster, name, observed, to_registration(divisible)) if divisible else None
    return to_node_registered(
        cluster, name, observed, devices.registration if devices else None,
        cause=str(reading.problem or ""), handshake=get_text(annotations, HANDSHAKE),
        cordoned=list_cordoned_devices(annotations),
    )  # fmt: skip


def observe_shared_devices(device: JsonView, cluster: str) -> NodeRegistered | None:
    """Observe the devices of a node in Koordinator's object of them; None if it lists none."""
    name, observed = get_text(device, "metadata", "name"), derive_change_time(device)
    devices = list_node_devices({}, device)
    return (
        to_node_registered(cluster, name, observed, to_registration(devices)) if name and observed and devices else None
    )


def list_requests(pod: JsonView) -> list[Request]:
    """List the devices that each container requests, init containers first. Amounts must be whole numbers to count."""
    spec = get_object(pod, "spec")
    init = [_request(container, is_init=True) for container in iterate_objects(spec, "initContainers")]
    return init + [_request(container, is_init=False) for container in iterate_objects(spec, "containers")]


def _request(container: JsonView, *, is_init: bool) -> Request:
    # Of an extended resource the limit is the request: Kubernetes allows no other.
    amounts = {**get_object(container, "resources", "requests"), **get_object(container, "resources", "limits")}
    count = _parse_count(amounts.get(GPU_COUNT)) or 0
    memory = _parse_count(amounts.get(GPU_MEMORY)) if count else None
    percent = _parse_count(amounts.get(GPU_MEMORY_PERCENT)) if count and memory is None else None
    return Request(
        container=get_text(container, "name"), init=is_init, vendor="NVIDIA" if count else "", count=count,
        memory_mib=memory, memory_percent=percent,
        cores_percent=(_parse_count(amounts.get(GPU_CORES)) or 0) if count else 0,
    )  # fmt: skip


def _parse_count(amount: Any) -> int | None:
    digits = str(amount) if isinstance(amount, str | int) and not isinstance(amount, bool) else ""
    return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 16 else None


def read_kai_allocations(pod: JsonView) -> list[DeviceAllocation]:
    """Read an allocation for each group of the pod; none if it shares no device. Pods do not name whole devices."""
    labels, annotations = get_object(pod, "metadata", "labels"), get_object(pod, "metadata", "annotations")
    groups = {value for key, value in labels.items() if isinstance(value, str) and is_group_label(key)}
    memory = get_text(annotations, KAI_MEMORY)
    first = next(iterate_objects(pod, "spec", "containers"), {})
    container = get_text(annotations, _CONTAINER) or get_text(first, "name")
    amount = int(memory) if memory.isascii() and memory.isdecimal() and len(memory) < 16 else None
    return [DeviceAllocation(uuid=group, container=container, memory_mib=amount) for group in sorted(groups) if group]


def digest_observation(observation: Event) -> bytes:
    """Digest an observation without its time, and with only the step of a handshake: HAMi keeps renewing its time."""
    content = {name: value for name, value in observation.__dict__.items() if name != "observed_at"}
    if isinstance(observation, NodeRegistered):
        content["handshake"] = observation.handshake.partition("_")[0].partition(" ")[0]
    return blake2b(encode_value(content), digest_size=16).digest()


def remember(entries: OrderedDict[str, Any], key: str, value: Any) -> None:
    """Set a value as the newest; the oldest goes where there are more than ``MAX_REMEMBERED``."""
    entries.pop(key, None)
    entries[key] = value
    if len(entries) > MAX_REMEMBERED:
        entries.popitem(last=False)
