"""Attributes and capacity of devices: the types that Kubernetes allows, and their values for CEL."""

from functools import lru_cache
from typing import Any, Final

from engine.claims.quantity import Quantity, QuantityTextError, parse_quantity, read_quantity
from engine.claims.version import VersionError, parse_version
from engine.snapshot.fields import FieldError, Object, join, quote, read_list

_INT64_MAX: Final = 2**63 - 1
_MAX_REMEMBERED: Final = 64
"""Characters of a text whose check is remembered."""
_KINDS: Final = ("int", "bool", "string", "version")
_LIST_KINDS: Final = ("ints", "bools", "strings", "versions")


class AttributeValueError(ValueError):
    """An attribute that Kubernetes does not evaluate; the text is Kubernetes' own."""


def check_values(attributes: Object, capacity: Object) -> bool:
    """Check all values of a device; raise FieldError for one of a wrong type.

    Returns whether every attribute has a single value that every selector can read. The most frequent forms are passed
    over without a call, because a large cluster has 40,000 devices.
    """
    for name, amount in capacity.items():
        if type(amount) is not dict or type(text := amount.get("value")) is not str or not _is_quantity(text):
            read_capacity_value(amount, "", name)
    is_evaluable = True
    for name, attribute in attributes.items():
        if type(attribute) is dict and len(attribute) == 1:
            ((kind, value),) = attribute.items()
            if kind == "string":
                is_simple = type(value) is str
            elif kind == "version":
                is_simple = type(value) is str and _is_version(value)
            elif kind == "int":
                is_simple = type(value) is int and -_INT64_MAX <= value <= _INT64_MAX
            else:
                is_simple = kind == "bool" and type(value) is bool
            if is_simple:
                continue
        is_evaluable &= _is_evaluable(name, attribute)
    return is_evaluable


def _is_quantity(text: str) -> bool:
    return len(text) <= _MAX_REMEMBERED and _parses_as_quantity(text)


def _is_version(text: str) -> bool:
    return len(text) <= _MAX_REMEMBERED and _parses_as_version(text)


@lru_cache(maxsize=4096)
def _parses_as_quantity(text: str) -> bool:
    try:
        parse_quantity(text)
    except QuantityTextError:
        return False
    return True


@lru_cache(maxsize=4096)
def _parses_as_version(text: str) -> bool:
    try:
        parse_version(text)
    except VersionError:
        return False
    return True


def _is_evaluable(name: str, attribute: Any) -> bool:
    try:
        read_attribute(name, attribute, f"attributes[{name}]", with_lists=True)
        read_attribute(name, attribute, f"attributes[{name}]", with_lists=False)
    except AttributeValueError:
        return False
    return len(attribute) == 1


def read_capacity_value(amount: Any, path: str, name: str) -> Quantity:
    """Read the amount of a capacity."""
    # In resource.k8s.io/v1alpha3 a capacity was a bare quantity.
    value = amount.get("value") if isinstance(amount, dict) else amount
    try:
        return read_quantity(value)
    except QuantityTextError as error:
        field = f"capacity[{name}]" + (".value" if isinstance(amount, dict) else "")
        raise FieldError(join(path, field), f"is {quote(value)}, which is not a quantity: {error}") from None


def read_attributes(attributes: Object, path: str, *, with_lists: bool) -> dict[str, Any]:
    """Read attributes as values of CEL; raise AttributeValueError for one without a value that Kubernetes evaluates.

    Raises FieldError for a value of the wrong type. with_lists: the feature gate DRAListTypeAttributes.
    """
    return {
        name: read_attribute(name, attribute, f"{path}.attributes[{name}]", with_lists=with_lists)
        for name, attribute in attributes.items()
    }


def read_attribute(name: str, attribute: Any, path: str, *, with_lists: bool) -> Any:
    """Read one attribute as a value of CEL."""
    if not isinstance(attribute, dict):
        raise FieldError(path, f"is {quote(attribute)}, not a mapping")
    if with_lists:
        for kind in _LIST_KINDS:
            if attribute.get(kind) is not None:
                values = read_list(attribute, kind, path)
                return tuple(_convert(name, kind[:-1], value, f"{path}.{kind}") for value in values)
    for kind in _KINDS:
        if attribute.get(kind) is not None:
            return _convert(name, kind, attribute[kind], f"{path}.{kind}")
    raise AttributeValueError(f"attribute {name}: unsupported attribute value")


def _convert(name: str, kind: str, value: Any, path: str) -> Any:
    match kind, value:
        case ("bool", bool()) | ("string", str()):
            return value
        case ("int", int()) if not isinstance(value, bool) and -_INT64_MAX - 1 <= value <= _INT64_MAX:
            return value
        case ("version", str()):
            try:
                return parse_version(value)
            except VersionError as error:
                raise AttributeValueError(f"attribute {name}: parse semantic version: {error}") from None
    raise FieldError(path, f"is {quote(value)}, not a value of type {kind}")
