"""ResourceClaims with their status: the devices that were allocated, for whom, and what the claim asks for."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from engine.claims.quantity import Quantity, QuantityTextError, read_quantity
from engine.claims.requests import ClaimSpec, read_claim_spec
from engine.claims.slices import DeviceId
from engine.snapshot.fields import FieldError, Object, quote, read_bool, read_items, read_mapping, read_text, read_texts
from engine.snapshot.selectors import NodeSelector, read_node_selector


@dataclass(frozen=True, slots=True)
class HeldDevice:
    """A device that a claim holds. share: id of the share, or "". consumed: capacity that the share takes."""

    id: DeviceId
    request: str
    has_admin_access: bool
    share: str
    consumed: Mapping[str, Quantity]
    binding_conditions: tuple[str, ...]
    failure_conditions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Consumer:
    """A pod, or another object, that a claim is reserved for."""

    resource: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class AllocationStatus:
    """The devices of a claim and the nodes that reach them; no selector for all nodes."""

    devices: tuple[HeldDevice, ...]
    node_selector: NodeSelector | None
    allocated_at: datetime | None


@dataclass(frozen=True, slots=True, eq=False)
class ResourceClaim:
    """A ResourceClaim."""

    namespace: str
    name: str
    uid: str
    spec: ClaimSpec
    is_deleted: bool
    owner: tuple[str, str]
    """Name and uid of the object that controls the claim."""
    is_for_extended_resources: bool
    has_requests: bool
    allocation: AllocationStatus | None
    reserved_for: tuple[Consumer, ...]
    conditions: Mapping[DeviceId, Mapping[str, str]]
    """Status of the conditions of allocated devices, by device and type of condition."""
    object: Object
    """The object as it was read."""

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.namespace, self.name

    @property
    def title(self) -> str:
        """Namespace and name as verdicts write them."""
        return f"{self.namespace}/{self.name}"


EXTENDED_RESOURCE_CLAIM = "resource.kubernetes.io/extended-resource-claim"


def read_claim(namespace: str, name: str, value: Object) -> ResourceClaim:
    """Read a ResourceClaim; raise FieldError if a field has the wrong type."""
    metadata, spec, status = (read_mapping(value, key) for key in ("metadata", "spec", "status"))
    annotations = read_mapping(metadata, "annotations", "metadata")
    allocation = status.get("allocation")
    return ResourceClaim(
        namespace=namespace,
        name=name,
        uid=read_text(metadata, "uid", "metadata"),
        spec=read_claim_spec(spec),
        is_deleted=metadata.get("deletionTimestamp") is not None,
        owner=_read_owner(metadata),
        is_for_extended_resources=annotations.get(EXTENDED_RESOURCE_CLAIM) == "true",
        has_requests=read_mapping(spec, "devices", "spec").get("requests") is not None,
        allocation=None if allocation is None else _read_allocation(read_mapping(status, "allocation", "status")),
        reserved_for=tuple(
            Consumer(*(read_text(consumer, field, item_path) for field in ("resource", "name", "uid")))
            for item_path, consumer in read_items(status, "reservedFor", "status")
        ),
        conditions=dict(
            _read_conditions(device, item_path) for item_path, device in read_items(status, "devices", "status")
        ),
        object=value,
    )


def _read_owner(metadata: Object) -> tuple[str, str]:
    for item_path, owner in read_items(metadata, "ownerReferences", "metadata"):
        if read_bool(owner, "controller", item_path):
            return read_text(owner, "name", item_path), read_text(owner, "uid", item_path)
    return "", ""


def _read_allocation(allocation: Object) -> AllocationStatus:
    path = "status.allocation"
    devices = read_mapping(allocation, "devices", path)
    return AllocationStatus(
        tuple(
            _read_result(result, item_path) for item_path, result in read_items(devices, "results", f"{path}.devices")
        ),
        read_node_selector(allocation, "nodeSelector", path),
        _read_time(allocation, "allocationTimestamp", path),
    )


def _read_result(result: Object, path: str) -> HeldDevice:
    return HeldDevice(
        id=_read_id(result, path),
        request=read_text(result, "request", path),
        has_admin_access=read_bool(result, "adminAccess", path),
        share=read_text(result, "shareID", path),
        consumed={
            name: _read_quantity(amount, f"{path}.consumedCapacity[{name}]")
            for name, amount in read_mapping(result, "consumedCapacity", path).items()
        },
        binding_conditions=read_texts(result, "bindingConditions", path),
        failure_conditions=read_texts(result, "bindingFailureConditions", path),
    )


def _read_conditions(device: Object, path: str) -> tuple[DeviceId, Mapping[str, str]]:
    conditions = {
        read_text(condition, "type", item_path): read_text(condition, "status", item_path)
        for item_path, condition in read_items(device, "conditions", path)
    }
    return _read_id(device, path), conditions


def _read_id(value: Object, path: str) -> DeviceId:
    driver, pool, device = (read_text(value, field, path) for field in ("driver", "pool", "device"))
    return driver, pool, device


def _read_quantity(value: Any, path: str) -> Quantity:
    try:
        return read_quantity(value)
    except QuantityTextError as error:
        raise FieldError(path, f"is {quote(value)}, which is not a quantity: {error}") from None


def _read_time(parent: Object, key: str, path: str) -> datetime | None:
    text = read_text(parent, key, path)
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise FieldError(f"{path}.{key}", f"is {quote(text)}, not a time such as 2026-11-25T11:00:00Z") from None
    if moment.tzinfo is None:
        raise FieldError(f"{path}.{key}", f"is {quote(text)}, which has no time zone")
    return moment
