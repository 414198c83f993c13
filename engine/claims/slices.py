"""ResourceSlices: the devices that drivers offer, read as far as every judgement needs them.

A cluster has tens of thousands of devices and a judgement looks at a few properties of each, so a device keeps its
object, and `device_details` reads the rest of the few devices that need it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple

from engine.claims.device_values import check_values
from engine.snapshot.fields import FieldError, Object, quote, read_bool, read_mapping, read_text
from engine.snapshot.selectors import NodeSelector, read_node_selector

PoolId = tuple[str, str]
"""Driver and name of a pool."""
DeviceId = tuple[str, str, str]
"""Driver, pool and name of a device."""
Counters = Mapping[str, Mapping[str, int]]
"""Amounts in billionths by set of counters and counter."""

_NOTHING: Final[Object] = {}
_NO_NAMES: Final[frozenset[str]] = frozenset()
_PLAIN: Final = frozenset({"name", "attributes", "capacity"})
_INT64_MAX: Final = 2**63 - 1


class SliceDevice(NamedTuple):
    """One device of a slice. attributes, capacity: as they were read, by name."""

    name: str
    attributes: Object
    capacity: Object
    is_plain: bool
    """Absence of everything else, so that no taint, counter, node or condition of its own matters."""
    is_evaluable: bool
    """A single value in every attribute, which every selector can read."""
    object: Object
    path: str
    """Path in the slice, such as ``spec.devices[3]``."""


class PropertySummary(NamedTuple):
    """Properties of the devices of a slice: values that all have in common, and names of the others."""

    common: Object
    others: frozenset[str]


@dataclass(frozen=True, eq=False)
class Slice:
    """A ResourceSlice. plain_devices: its devices as they were read, each in the form of resource.k8s.io/v1."""

    name: str
    driver: str
    pool: str
    generation: int
    slice_count: int
    """Number of slices that the pool has in this generation."""
    node_name: str
    is_for_all_nodes: bool
    node_selector: NodeSelector | None
    selects_per_device: bool
    """Node selection by each device instead of the slice."""
    plain_devices: Sequence[Object]
    object: Object
    """The object as it was read."""
    has_counters: bool
    is_plain: bool
    """Plainness of all devices."""
    is_simple: bool
    """Plain and evaluable devices only, none with a node selection of its own."""
    attributes: PropertySummary
    capacity: PropertySummary
    has_unique_names: bool
    """A name for each device that no other has."""

    @cached_property
    def devices(self) -> tuple[SliceDevice, ...]:
        """Devices in their order, built when a search first looks at them: most are never looked at one by one."""
        build = _build_simple_device if self.is_simple else _build_device
        return tuple([build(position, device) for position, device in enumerate(self.plain_devices)])

    @property
    def spec(self) -> Object:
        """Return the spec as it was read."""
        return read_mapping(self.object, "spec")

    @property
    def pool_id(self) -> PoolId:
        """Driver and name of the pool."""
        return self.driver, self.pool


class PoolState(Enum):
    """Usability of a pool: devices are taken from usable ones only."""

    USABLE = "usable"
    INCOMPLETE = "incomplete"
    INVALID = "invalid"
    OUTDATED = "outdated"


class Pool(NamedTuple):
    """A pool as one node sees it.

    slices: those with devices that the node reaches, by name; empty unless the pool is usable. relevant: all slices
    that concern the node, of any generation. other_slices: slices of the pool that the node does not reach, whose
    devices consume its counters as well. counter_sets: amounts in billionths. expected: number of slices of the
    generation. cause: why the pool is invalid, in Kubernetes' words.
    """

    id: PoolId
    state: PoolState
    slices: tuple[Slice, ...]
    relevant: tuple[Slice, ...]
    other_slices: tuple[Slice, ...] = ()
    counter_sets: Mapping[str, Mapping[str, int]] | None = None
    generation: int = 0
    seen: int = 0
    expected: int = 0
    cause: str = ""

    @property
    def title(self) -> str:
        """Driver and name, as verdicts write them."""
        return "/".join(self.id)

    @property
    def is_usable(self) -> bool:
        """Return whether devices are taken from the pool."""
        return self.state is PoolState.USABLE


def read_slice(name: str, value: Object) -> Slice:
    """Read a ResourceSlice; raise FieldError if a field has the wrong type."""
    spec = read_mapping(value, "spec")
    pool, driver, devices = read_mapping(spec, "pool", "spec"), read_text(spec, "driver", "spec"), _list_devices(spec)
    traits = _check_devices(devices)
    selects_per_device = read_bool(spec, "perDeviceNodeSelection", "spec")
    return Slice(
        name=name,
        driver=driver,
        pool=read_text(pool, "name", "spec.pool"),
        generation=_read_number(pool, "generation", "spec.pool"),
        slice_count=_read_number(pool, "resourceSliceCount", "spec.pool"),
        node_name=read_text(spec, "nodeName", "spec"),
        is_for_all_nodes=read_bool(spec, "allNodes", "spec"),
        node_selector=read_node_selector(spec, "nodeSelector", "spec") if "nodeSelector" in spec else None,
        selects_per_device=selects_per_device,
        plain_devices=devices,
        object=value,
        has_counters=bool(spec.get("sharedCounters")),
        is_plain=traits.is_plain,
        is_simple=traits.is_plain and traits.is_evaluable and not selects_per_device,
        attributes=_summarize([device.get("attributes") or _NOTHING for device in devices]),
        capacity=_summarize([device.get("capacity") or _NOTHING for device in devices]),
        has_unique_names=len({device.get("name") for device in devices}) == len(devices),
    )


def _list_devices(spec: Object) -> Sequence[Object]:
    """List the devices of a slice; those of resource.k8s.io/v1beta1 have their properties one level deeper."""
    devices = spec.get("devices")
    if devices is None:
        return ()
    if not isinstance(devices, list):
        raise FieldError("spec.devices", f"is {quote(devices)}, not a list")
    for position, device in enumerate(devices):
        if not isinstance(device, dict):
            raise FieldError(f"spec.devices[{position}]", f"is {quote(device)}, not a mapping")
        if "basic" in device:
            return [_flatten(position, device) for position, device in enumerate(devices)]
    return devices


def _flatten(position: int, device: Any) -> Object:
    path = f"spec.devices[{position}]"
    if not isinstance(device, dict):
        raise FieldError(path, f"is {quote(device)}, not a mapping")
    return {"name": device.get("name"), **read_mapping(device, "basic", path)}


class _DeviceTraits(NamedTuple):
    """Traits that all devices of a slice have."""

    is_plain: bool
    is_evaluable: bool


def _check_devices(devices: Iterable[Object]) -> _DeviceTraits:
    """Check the values of devices; raise FieldError for one of a wrong type."""
    is_plain, is_evaluable = True, True
    for position, device in enumerate(devices):
        try:
            read_text(device, "name")
            attributes, capacity = read_mapping(device, "attributes"), read_mapping(device, "capacity")
            is_evaluable = check_values(attributes, capacity) and is_evaluable
        except FieldError as error:
            raise FieldError(f"spec.devices[{position}].{error.path}", error.cause) from None
        is_plain = is_plain and _is_plain(device, capacity)
    return _DeviceTraits(is_plain, is_evaluable)


def _summarize(properties: Sequence[Object]) -> PropertySummary:
    """Summarize properties of devices, one mapping for each device."""
    if not properties:
        return PropertySummary(_NOTHING, _NO_NAMES)
    common, names = properties[0], set(properties[0])
    for of_device in properties[1:]:
        names.update(of_device)
        common = {name: value for name, value in common.items() if of_device.get(name) == value}
    return PropertySummary(common, _intern(frozenset(names.difference(common))))


@lru_cache(maxsize=256)
def _intern(names: frozenset[str]) -> frozenset[str]:
    """Return one object for equal names: slices of a driver have the same."""
    return names


def _is_plain(device: Object, capacity: Object) -> bool:
    if not device.keys() <= _PLAIN:
        return False
    return all(type(amount) is dict and len(amount) == 1 for amount in capacity.values())


def _build_simple_device(position: int, device: Object) -> SliceDevice:
    """Build a device of a slice that has only plain and evaluable ones, without checking it again."""
    attributes, capacity = device.get("attributes") or _NOTHING, device.get("capacity") or _NOTHING
    return SliceDevice(device.get("name") or "", attributes, capacity, True, True, device, f"spec.devices[{position}]")


def _build_device(position: int, device: Object) -> SliceDevice:
    """Build a device whose values have been checked."""
    attributes, capacity = read_mapping(device, "attributes"), read_mapping(device, "capacity")
    return SliceDevice(
        name=read_text(device, "name"),
        attributes=attributes,
        capacity=capacity,
        is_plain=_is_plain(device, capacity),
        is_evaluable=check_values(attributes, capacity),
        object=device,
        path=f"spec.devices[{position}]",
    )


def _read_number(parent: Object, key: str, path: str) -> int:
    value = parent.get(key)
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or not -_INT64_MAX <= value <= _INT64_MAX:
        raise FieldError(f"{path}.{key}", f"is {quote(value)}, not a whole number of 64 bits")
    return value
