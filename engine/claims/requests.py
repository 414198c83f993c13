"""ResourceClaims and DeviceClasses: the devices that are asked for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from engine.claims.quantity import Quantity, QuantityTextError, read_quantity
from engine.snapshot.fields import FieldError, Object, quote, read_bool, read_items, read_mapping, read_text, read_texts

ALL: Final = "All"
EXACT_COUNT: Final = "ExactCount"
"""Modes of allocation: every device that fits, or a number of them."""
MAX_DEVICES: Final = 32
"""Devices that Kubernetes allocates for one claim at most."""

_INT64_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class DeviceToleration:
    """A toleration of device taints."""

    key: str
    operator: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class DeviceClass:
    """A DeviceClass. selectors: expressions; None for a selector of an unknown type."""

    name: str
    selectors: tuple[str | None, ...]
    extended_resource: str
    created: str


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """A request for devices, or one alternative of one.

    parent: name of the request that this is an alternative of, or "". count: of devices, in the mode ExactCount.
    """

    name: str
    parent: str
    class_name: str
    mode: str
    count: int
    admin_access: bool | None
    selectors: tuple[str | None, ...]
    tolerations: tuple[DeviceToleration, ...]
    capacity: Mapping[str, Quantity] | None

    @property
    def full_name(self) -> str:
        """Name with that of the parent in front, as results and verdicts write it."""
        return f"{self.parent}/{self.name}" if self.parent else self.name

    @property
    def has_admin_access(self) -> bool:
        """Return whether the request is for access next to other users."""
        return self.admin_access is True


@dataclass(frozen=True, slots=True)
class RequestGroup:
    """A request of a claim. alternatives: those of a prioritized request, in the order of preference.

    Neither is there for a request of a type that Kubernetes 1.36 does not know.
    """

    name: str
    exact: ClaimRequest | None
    alternatives: tuple[ClaimRequest, ...]

    @property
    def choices(self) -> tuple[ClaimRequest, ...]:
        """Requests of which one has to be met."""
        return self.alternatives or ((self.exact,) if self.exact else ())


@dataclass(frozen=True, slots=True)
class ConstraintSpec:
    """A constraint between devices. kind: "" for one of an unknown type. requests: those it is about; none for all."""

    kind: Literal["matchAttribute", "distinctAttribute", ""]
    attribute: str
    requests: frozenset[str]


@dataclass(frozen=True, slots=True)
class ClaimSpec:
    """The devices that a claim asks for."""

    groups: tuple[RequestGroup, ...]
    constraints: tuple[ConstraintSpec, ...]


def read_class(name: str, value: Object) -> DeviceClass:
    """Read a DeviceClass; raise FieldError if a field has the wrong type."""
    spec, metadata = read_mapping(value, "spec"), read_mapping(value, "metadata")
    return DeviceClass(
        name,
        _read_selectors(spec, "spec"),
        read_text(spec, "extendedResourceName", "spec"),
        read_text(metadata, "creationTimestamp", "metadata"),
    )


def read_claim_spec(value: Object, path: str = "spec") -> ClaimSpec:
    """Read the spec of a claim; raise FieldError if a field has the wrong type."""
    devices, item_path = read_mapping(value, "devices", path), f"{path}.devices"
    return ClaimSpec(
        tuple(_read_group(request, where) for where, request in read_items(devices, "requests", item_path)),
        tuple(
            _read_constraint(constraint, where) for where, constraint in read_items(devices, "constraints", item_path)
        ),
    )


def _read_group(request: Object, path: str) -> RequestGroup:
    name = read_text(request, "name", path)
    alternatives = tuple(
        _read_request(alternative, where, name) for where, alternative in read_items(request, "firstAvailable", path)
    )
    if request.get("exactly") is not None:
        exactly = read_mapping(request, "exactly", path)
        return RequestGroup(name, _read_request({**exactly, "name": name}, f"{path}.exactly", ""), alternatives)
    if not alternatives and "deviceClassName" in request:
        # The form of resource.k8s.io/v1beta1, which has one level less.
        return RequestGroup(name, _read_request(request, path, ""), ())
    return RequestGroup(name, None, alternatives)


def _read_request(request: Object, path: str, parent: str) -> ClaimRequest:
    capacity = request.get("capacity")
    mode = read_text(request, "allocationMode", path) or EXACT_COUNT
    return ClaimRequest(
        name=read_text(request, "name", path),
        parent=parent,
        class_name=read_text(request, "deviceClassName", path),
        mode=mode,
        count=_read_count(request, path, mode),
        admin_access=read_bool(request, "adminAccess", path) if request.get("adminAccess") is not None else None,
        selectors=_read_selectors(request, path),
        tolerations=tuple(_read_toleration(item, where) for where, item in read_items(request, "tolerations", path)),
        capacity=None if capacity is None else _read_amounts(read_mapping(request, "capacity", path), path),
    )


def _read_count(request: Object, path: str, mode: str) -> int:
    count = request.get("count")
    if count is None or (count == 0 and mode == EXACT_COUNT):
        return 1
    if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= _INT64_MAX:
        raise FieldError(f"{path}.count", f"is {quote(count)}, not a count of 64 bits")
    return count


def _read_amounts(capacity: Object, path: str) -> Mapping[str, Quantity]:
    amounts = read_mapping(capacity, "requests", f"{path}.capacity")
    return {name: _read_quantity(value, f"{path}.capacity.requests[{name}]") for name, value in amounts.items()}


def _read_quantity(value: Any, path: str) -> Quantity:
    try:
        return read_quantity(value)
    except QuantityTextError as error:
        raise FieldError(path, f"is {quote(value)}, which is not a quantity: {error}") from None


def _read_selectors(parent: Object, path: str) -> tuple[str | None, ...]:
    return tuple(_read_selector(selector, item_path) for item_path, selector in read_items(parent, "selectors", path))


def _read_selector(selector: Object, path: str) -> str | None:
    if selector.get("cel") is None:
        return None
    return read_text(read_mapping(selector, "cel", path), "expression", f"{path}.cel")


def _read_toleration(toleration: Object, path: str) -> DeviceToleration:
    key, operator, value, effect = (
        read_text(toleration, field, path) for field in ("key", "operator", "value", "effect")
    )
    return DeviceToleration(key, operator, value, effect)


def _read_constraint(constraint: Object, path: str) -> ConstraintSpec:
    requests = frozenset(read_texts(constraint, "requests", path))
    if constraint.get("matchAttribute") is not None:
        return ConstraintSpec("matchAttribute", read_text(constraint, "matchAttribute", path), requests)
    if constraint.get("distinctAttribute") is not None:
        return ConstraintSpec("distinctAttribute", read_text(constraint, "distinctAttribute", path), requests)
    return ConstraintSpec("", "", requests)
