"""ResourceSlices: the devices that drivers offer, read as far as every judgement needs them.

A cluster has tens of thousands of devices and a judgement looks at a few properties of each, so a device keeps its
object, and `device_details` reads the rest of the few devices that need it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
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


@dataclass(frozen=True, slots=True, eq=False)
class Slice:
    """A ResourceSlice."""

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
    devices: tuple[SliceDevice, ...]
    object: Object
    """The object as it was read."""
    has_counters: bool
    is_plain: bool
    """Plainness of all devices."""
    is_simple: bool
    """Plain and evaluable devices only, none with a node selection of its own."""
    has_unique_names: bool
    """A name for each device that no other has."""

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
    pool, devices = read_mapping(spec, "pool", "spec"), _read_devices(spec)
    is_plain = all(device.is_plain for device in devices)
    selects_per_device = read_bool(spec, "perDeviceNodeSelection", "spec")
    return Slice(
        name=name,
        driver=read_text(spec, "driver", "spec"),
        pool=read_text(pool, "name", "spec.pool"),
        generation=_read_number(pool, "generation", "spec.pool"),
        slice_count=_read_number(pool, "resourceSliceCount", "spec.pool"),
        node_name=read_text(spec, "nodeName", "spec"),
        is_for_all_nodes=read_bool(spec, "allNodes", "spec"),
        node_selector=read_node_selector(spec, "nodeSelector", "spec") if "nodeSelector" in spec else None,
        selects_per_device=selects_per_device,
        devices=devices,
        object=value,
        has_counters=bool(spec.get("sharedCounters")),
        is_plain=is_plain,
        is_simple=is_plain and not selects_per_device and all(device.is_evaluable for device in devices),
        has_unique_names=len({device.name for device in devices}) == len(devices),
    )


def _read_devices(spec: Object) -> tuple[SliceDevice, ...]:
    devices = spec.get("devices")
    if devices is None:
        return ()
    if not isinstance(devices, list):
        raise FieldError("spec.devices", f"is {quote(devices)}, not a list")
    return tuple([_read_device(position, device) for position, device in enumerate(devices)])


def _read_device(position: int, device: Any) -> SliceDevice:
    path = f"spec.devices[{position}]"
    if not isinstance(device, dict):
        raise FieldError(path, f"is {quote(device)}, not a mapping")
    if "basic" in device:
        # The form of resource.k8s.io/v1beta1, which has the properties one level deeper.
        device = {"name": device.get("name"), **read_mapping(device, "basic", path)}
    attributes, capacity = read_mapping(device, "attributes", path), read_mapping(device, "capacity", path)
    is_plain = device.keys() <= _PLAIN
    for amount in capacity.values():
        is_plain = is_plain and type(amount) is dict and len(amount) == 1
    name, is_evaluable = read_text(device, "name", path), check_values(attributes, capacity, path)
    return SliceDevice(name, attributes, capacity, is_plain, is_evaluable, device, path)


def _read_number(parent: Object, key: str, path: str) -> int:
    value = parent.get(key)
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or not -_INT64_MAX <= value <= _INT64_MAX:
        raise FieldError(f"{path}.{key}", f"is {quote(value)}, not a whole number of 64 bits")
    return value
