"""Devices that no annotation lists: `status.capacity` of a node says how many there are, and how much they share.

The sizes are constants of HAMi's code, vendor by vendor (`GetNodeDevices`). Allocations of running pods refer to
devices by a UUID that follows from the node's name.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from engine.hami.json_values import to_mapping
from engine.hami.quantities import parse_whole
from engine.hami.registration import Device
from engine.hami.vendors import Family, Vendor

_MAX_DEVICES: Final = 1024
"""Most devices that a node can have; a larger capacity is a mistake."""
_MTHREADS_CORES: Final = 16
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
NODE_TYPE: Final = "AWSNodeType"


def derive_devices(node: Mapping[str, Any], vendor: Vendor) -> tuple[Device, ...] | None:
    """Derive the devices of a vendor from the node's capacity; None where the capacity names none of them."""
    capacity = to_mapping(to_mapping(node.get("status")).get("capacity"))
    names = vendor.resources
    if not parse_whole(
        capacity.get(names.cores if vendor.family in (Family.CAMBRICON, Family.MTHREADS) else names.count)
    ):
        return None
    count, cores, memory = (parse_whole(capacity.get(name)) for name in (names.count, names.cores, names.memory))
    metadata = to_mapping(node.get("metadata"))
    name = f"{metadata.get('name', '')}-{vendor.node.register}"
    shares = _BUILDERS[vendor.family](vendor, count or 0, cores or 0, memory or 0)
    kind = str(to_mapping(metadata.get("labels")).get(INSTANCE_TYPE, ""))
    extra = ((NODE_TYPE, kind),) if vendor.family is Family.NEURON else ()
    return tuple(
        Device(uuid=f"{name}-{index}", index=index, model=vendor.word, is_healthy=True, extra=extra, **amounts)
        for index, amounts in enumerate(shares)
    )


Amounts = Mapping[str, Any]


def _build_equal(count: int, slots: int, memory_mib: int, cores: int) -> list[Amounts]:
    return [{"slots": slots, "memory_mib": memory_mib, "cores": cores}] * max(0, min(count, _MAX_DEVICES))


def _build_shared(vendor: Vendor, cores: int, memory: int, cores_each: int) -> list[Amounts]:
    """Build a device per `cores_each` cores, with equal shares of memory, in HAMi's 32 bits."""
    total = memory * vendor.amounts.memory_unit_mib * cores_each
    share = total // cores if total >= 0 < cores else 0
    return _build_equal(-(-cores // cores_each), 100, min(share, 2**31 - 1), cores_each)


def _build_kunlun(count: int) -> list[Amounts]:
    return [
        {**amounts, "numa": int(index >= count // 2)}
        for index, amounts in enumerate(_build_equal(count, 100, 98304, 100))
    ]


def _build_neuron(count: int, cores: int) -> list[Amounts]:
    """Build AWS Neuron's devices, whose cores are a mask: a bit per core."""
    device_cores = max(cores, 0) // count if count > 0 else 0
    return _build_equal(count, device_cores, 0, 2 ** min(device_cores, 31) - 1)


_BUILDERS: Final[Mapping[Family, Callable[[Vendor, int, int, int], Iterable[Amounts]]]] = {
    Family.CAMBRICON: lambda vendor, _, cores, memory: _build_shared(vendor, cores, memory, 100),
    Family.MTHREADS: lambda vendor, _, cores, memory: _build_shared(vendor, cores, memory, _MTHREADS_CORES),
    Family.METAX_GPU: lambda _, count, *__: _build_equal(count, 1, 65536, 100),
    Family.GCU: lambda _, count, *__: _build_equal(count, 1, 100, 100),
    Family.KUNLUN: lambda _, count, *__: _build_kunlun(count),
    Family.NEURON: lambda _, count, cores, __: _build_neuron(count, cores),
}
