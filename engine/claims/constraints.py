"""Constraints between the devices of a claim, as kube-scheduler tracks them while it searches."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from engine.claims.requests import ClaimRequest, ConstraintSpec
from engine.claims.slices import SliceDevice

_KINDS: Final = ("string", "int", "bool", "version")
"""Types of attributes in the order in which Kubernetes looks at them."""

AttributeValue = tuple[str, Any]
"""Type and value; ("", None) for a type that constraints do not compare."""


def find_attribute(device: SliceDevice, driver: str, name: str) -> AttributeValue | None:
    """Find an attribute by its full name, or by the short name in the driver's own domain; None without it."""
    attribute = device.attributes.get(name)
    if attribute is None:
        domain, slash, short = name.partition("/")
        if not slash or domain != driver:
            return None
        attribute = device.attributes.get(short)
        if attribute is None:
            return None
    return read_value(attribute)


def read_value(attribute: Any) -> AttributeValue:
    """Read the type and value of an attribute."""
    if isinstance(attribute, Mapping):
        for kind in _KINDS:
            value = attribute.get(kind)
            if value is not None:
                return kind, value
    return "", None


@dataclass(frozen=True, slots=True)
class Conflict:
    """A constraint that a device does not meet. value: the device's; None if it has no such attribute.

    others: values of devices that the search has taken already.
    """

    spec: ConstraintSpec
    value: AttributeValue | None
    others: tuple[AttributeValue, ...] = ()


def covers(spec: ConstraintSpec, request: ClaimRequest) -> bool:
    """Return whether a constraint is about a request, itself or its parent."""
    names = spec.requests
    return not names or (request.parent or request.name) in names or request.full_name in names


class ConstraintState:
    """A constraint with the devices of the search so far."""

    __slots__ = ("_count", "_distinct", "_match", "_spec")

    def __init__(self, spec: ConstraintSpec) -> None:
        """Begin without devices."""
        self._spec = spec
        self._count = 0
        self._match: AttributeValue = ("", None)
        self._distinct: dict[str, AttributeValue] = {}

    def add(self, request: ClaimRequest, device: SliceDevice, driver: str) -> Conflict | None:
        """Add a device, or say why the constraint does not allow it."""
        if not covers(self._spec, request):
            return None
        value = find_attribute(device, driver, self._spec.attribute)
        if value is None:
            return Conflict(self._spec, None)
        if self._spec.kind == "matchAttribute":
            return self._add_match(value)
        return self._add_distinct(request.parent or request.name, value)

    def _add_match(self, value: AttributeValue) -> Conflict | None:
        if not self._count:
            self._match = value
        elif not value[0] or value != self._match:
            return Conflict(self._spec, value, (self._match,))
        self._count += 1
        return None

    def _add_distinct(self, name: str, value: AttributeValue) -> Conflict | None:
        if self._count and any(not value[0] or value == other for other in self._distinct.values()):
            return Conflict(self._spec, value, tuple(self._distinct.values()))
        # kube-scheduler remembers one value per request: the last one.
        self._distinct[name] = value
        self._count += 1
        return None

    def remove(self, request: ClaimRequest) -> None:
        """Remove a device that was added for a request."""
        if covers(self._spec, request):
            self._count -= 1
            self._distinct.pop(request.parent or request.name, None)
