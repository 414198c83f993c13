"""Steps from a value to one inside it: a field, a key, an index; and a device as such a value."""

from collections.abc import Mapping
from typing import Any, Final

from engine.claims.cel.values import (
    ABSENT,
    NUMBERS,
    EvaluationError,
    MapValue,
    OptionalValue,
    Uint,
    Value,
    name_type,
)
from engine.claims.quantity import Quantity


def qualify(value: Value, key: Value) -> Value:
    """Return the value at a key; raise EvaluationError if there is none."""
    if type(value) is MapValue:
        present = value.get(key)
        if present.has_value:
            return present.value
    elif type(value) is tuple:
        position = _read_index(key)
        if 0 <= position < len(value):
            return value[position]
        raise EvaluationError(f"index out of bounds: {_print(key)}")
    raise EvaluationError(f"no such key: {_print(key)}")


def qualify_if_present(value: Value, key: Value) -> OptionalValue:
    """Return the value at a key, or absent."""
    if type(value) is MapValue:
        return value.get(key)
    if type(value) is tuple:
        position = _read_index(key)
        return OptionalValue(value[position], has_value=True) if 0 <= position < len(value) else ABSENT
    return ABSENT


def _read_index(key: Value) -> int:
    kind = type(key)
    if kind is int or kind is Uint:
        return int(key)
    if kind is float:
        if key.is_integer():
            return int(key)
        raise EvaluationError(f"unsupported index value {_print(key)} in list")
    raise EvaluationError(f"unsupported index type '{name_type(key)}' in list")


def _print(key: Value) -> str:
    if type(key) is bool:
        return "true" if key else "false"
    if type(key) in NUMBERS:
        return f"{key:g}" if type(key) is float else str(int(key))
    return str(key)


EMPTY: Final = MapValue({})


def make_string_map(values: Mapping[str, Value], default: Value | None = None) -> MapValue:
    """Make a map with texts as keys, in the order of the keys."""
    return MapValue({key: (key, values[key]) for key in sorted(values)}, default)


def make_device(
    driver: str, attributes: Mapping[str, Any], capacity: Mapping[str, Quantity], *, is_shared: bool
) -> MapValue:
    """Make the value of the variable ``device``.

    attributes, capacity: by name, which is a domain and a short name or, in the driver's own domain, a short name only.
    A domain that the device has no values in is an empty map.
    """
    return make_string_map(
        {
            "driver": driver,
            "allowMultipleAllocations": is_shared,
            "attributes": _group_by_domain(driver, attributes),
            "capacity": _group_by_domain(driver, capacity),
        }
    )


def _group_by_domain(driver: str, values: Mapping[str, Value]) -> MapValue:
    domains: dict[str, dict[str, Value]] = {}
    for name, value in values.items():
        domain, slash, short = name.partition("/")
        if not slash:
            domain, short = driver, name
        domains.setdefault(domain, {})[short] = value
    return make_string_map({domain: make_string_map(names) for domain, names in domains.items()}, EMPTY)
