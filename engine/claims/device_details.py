"""Properties that few devices have or few judgements need: capacity, taints, counters, nodes, conditions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.claims.device_values import read_capacity_value
from engine.claims.quantity import Quantity, QuantityTextError, read_quantity
from engine.claims.slices import Counters, Slice, SliceDevice
from engine.snapshot.fields import (
    FieldError,
    Object,
    quote,
    read_bool,
    read_items,
    read_list,
    read_mapping,
    read_text,
    read_texts,
)
from engine.snapshot.selectors import NodeSelector, read_node_selector


@dataclass(frozen=True, slots=True)
class DeviceTaint:
    """A taint of a device. rule: the DeviceTaintRule that it comes from, or ""."""

    key: str
    value: str
    effect: str
    rule: str = ""

    def __str__(self) -> str:
        """Write the taint as Kubernetes writes those of nodes."""
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


@dataclass(frozen=True, slots=True)
class RequestPolicy:
    """The amounts of a capacity that one share may take."""

    default: Quantity | None
    minimum: Quantity | None
    maximum: Quantity | None
    step: Quantity | None
    has_range: bool
    values: tuple[Quantity, ...]


@dataclass(frozen=True, slots=True)
class Capacity:
    """One capacity of a device."""

    value: Quantity
    policy: RequestPolicy | None


@dataclass(frozen=True, slots=True)
class DeviceDetails:
    """The properties of a device, read in full."""

    capacity: Mapping[str, Capacity]
    is_shared: bool
    """Permission for several allocations to share the device."""
    taints: tuple[DeviceTaint, ...]
    counters: tuple[tuple[str, Mapping[str, int]], ...]
    """Sets of counters that the device consumes, with the amounts in billionths."""
    node_name: str
    is_for_all_nodes: bool
    node_selector: NodeSelector | None
    has_binding_conditions: bool
    """Presence of the list of binding conditions, even of an empty one."""
    binding_conditions: tuple[str, ...]
    binds_to_node: bool

    @property
    def consumed(self) -> Counters:
        """Amounts that the device consumes, by set and counter."""
        return dict(self.counters)


def read_details(device: SliceDevice) -> DeviceDetails:
    """Read a device in full; raise FieldError if a field has the wrong type."""
    value, path = device.object, device.path
    return DeviceDetails(
        capacity={name: _read_capacity(amount, path, name) for name, amount in device.capacity.items()},
        is_shared=read_bool(value, "allowMultipleAllocations", path),
        taints=tuple(read_taint(taint, item_path) for item_path, taint in read_items(value, "taints", path)),
        counters=tuple(
            (read_text(consumption, "counterSet", item_path), read_counters(consumption, item_path))
            for item_path, consumption in read_items(value, "consumesCounters", path)
        ),
        node_name=read_text(value, "nodeName", path),
        is_for_all_nodes=read_bool(value, "allNodes", path),
        node_selector=read_node_selector(value, "nodeSelector", path),
        has_binding_conditions=value.get("bindingConditions") is not None,
        binding_conditions=read_texts(value, "bindingConditions", path),
        binds_to_node=read_bool(value, "bindsToNode", path),
    )


def read_counters(parent: Object, path: str) -> Mapping[str, int]:
    """Read ``counters`` of a set of counters, in billionths."""
    return {
        name: _read_amount(counter, f"{path}.counters[{name}]").nano
        for name, counter in read_mapping(parent, "counters", path).items()
    }


def read_counter_sets(slice_: Slice) -> list[tuple[str, Mapping[str, int]]]:
    """Read the sets of counters of a slice with their names, in its order."""
    return [
        (read_text(counters, "name", item_path), read_counters(counters, item_path))
        for item_path, counters in read_items(slice_.spec, "sharedCounters", "spec")
    ]


def _read_capacity(amount: Any, path: str, name: str) -> Capacity:
    value = read_capacity_value(amount, path, name)
    if not isinstance(amount, dict):
        return Capacity(value, None)
    item_path = f"{path}.capacity[{name}]"
    return Capacity(value, _read_policy(read_mapping(amount, "requestPolicy", item_path), item_path))


def _read_policy(policy: Object, path: str) -> RequestPolicy | None:
    if not policy:
        return None
    item_path = f"{path}.requestPolicy"
    bounds = read_mapping(policy, "validRange", item_path)
    default, minimum, maximum, step = (
        _parse(parent[key], f"{item_path}.{key}") if parent.get(key) is not None else None
        for parent, key in ((policy, "default"), (bounds, "min"), (bounds, "max"), (bounds, "step"))
    )
    values = read_list(policy, "validValues", item_path)
    return RequestPolicy(
        default,
        minimum,
        maximum,
        step,
        bool(bounds),
        tuple(_parse(value, f"{item_path}.validValues") for value in values),
    )


def _read_amount(parent: Any, path: str) -> Quantity:
    if not isinstance(parent, dict):
        raise FieldError(path, f"is {quote(parent)}, not a mapping")
    return _parse(parent.get("value"), f"{path}.value")


def _parse(value: Any, path: str) -> Quantity:
    try:
        return read_quantity(value)
    except QuantityTextError as error:
        raise FieldError(path, f"is {quote(value)}, which is not a quantity: {error}") from None


def read_taint(taint: Object, path: str, rule: str = "") -> DeviceTaint:
    """Read a taint of a device or of a rule."""
    key, value, effect = (read_text(taint, field, path) for field in ("key", "value", "effect"))
    return DeviceTaint(key, value, effect, rule)
