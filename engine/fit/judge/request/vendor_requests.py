"""What one container requests of a vendor other than NVIDIA, family by family (each `GenerateResourceRequests`).

The families differ in what drops a request: some drop one whose amounts don't fit into 32 bits or are negative, others
ignore the amount. Quantities are those of limits, else of requests.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from engine.hami.quantities import has_unit, parse_whole, round_up
from engine.hami.requests import BY_SPECIFICATION
from engine.hami.vendors import Family, Vendor

_INT32_MAX: Final = 2**31 - 1
_WHOLE: Final = 100
_XPU_SIZES: Final = (24576, 49152)
_XPU_MEMORY: Final = 98304
_NEURON_CORES: Final = 2
"""HAMi gives at most two cores of a Neuron device by their number."""


class Asked(NamedTuple):
    """Devices, and of each MiB, percentage of the memory, and cores."""

    devices: int
    memory_mib: int
    memory_percentage: int
    cores: int


Amounts = Mapping[str, Any]
"""The container's quantities by name of the resource."""
Reader = Callable[[Amounts, Amounts, Vendor], Asked | None]


def vendor_request(limits: Amounts, requests: Amounts, vendor: Vendor) -> Asked | None:
    """None where the container requests nothing of the vendor, or in a way that drops the request."""
    return _READERS[vendor.family](limits, {**requests, **limits}, vendor)


def _with_memory(count: int, memory_mib: int, cores: int) -> Asked:
    """Without memory, all of it."""
    return Asked(count, memory_mib, 0 if memory_mib else _WHOLE, cores)


def _positive(value: Any) -> int | None:
    count = parse_whole(value)
    return count if count is not None and 0 < count <= _INT32_MAX else None


def _fits(value: int) -> bool:
    return 0 <= value <= _INT32_MAX


def _scaled_memory(amounts: Amounts, vendor: Vendor) -> int | None:
    """MiB; an amount that is no whole number counts as none, one outside of 32 bits drops the request."""
    memory = parse_whole(amounts.get(vendor.resources.memory))
    if memory is None:
        return 0
    scaled = memory * max(vendor.amounts.memory_unit_mib, 1)
    return scaled if _fits(memory) and _fits(scaled) else None


def _unit_memory(amounts: Amounts, vendor: Vendor) -> int | None:
    """MiB; an amount that is no whole number drops the request too."""
    if vendor.resources.memory not in amounts:
        return 0
    memory = parse_whole(amounts[vendor.resources.memory])
    unit = vendor.amounts.memory_unit_mib
    return None if memory is None or not 0 <= memory <= _INT32_MAX // unit else memory * unit


def _hygon(_: Amounts, amounts: Amounts, vendor: Vendor) -> Asked | None:
    count, memory = _positive(amounts.get(vendor.resources.count)), _scaled_memory(amounts, vendor)
    cores = parse_whole(amounts.get(vendor.resources.cores))
    cores = vendor.amounts.default_cores if cores is None else cores
    return None if count is None or memory is None or not _fits(cores) else _with_memory(count, memory, cores)


def _ascend(_: Amounts, amounts: Amounts, vendor: Vendor) -> Asked | None:
    names = vendor.resources
    count, memory = _positive(amounts.get(names.count)), _scaled_memory(amounts, vendor)
    is_negative = names.memory in amounts and round_up(amounts[names.memory]) < 0
    cores = round_up(amounts[names.cores]) if names.cores and names.cores in amounts else 0
    usable = count is not None and memory is not None and not is_negative and _fits(cores)
    return _with_memory(count or 0, memory or 0, cores) if usable else None


def _in_units(_: Amounts, amounts: Amounts, vendor: Vendor) -> Asked | None:
    count, memory = parse_whole(amounts.get(vendor.resources.count)), _unit_memory(amounts, vendor)
    cores = parse_whole(amounts.get(vendor.resources.cores))
    cores = vendor.amounts.default_cores if cores is None else cores
    return None if count is None or memory is None else _with_memory(count, memory, cores)


def _mthreads(_: Amounts, amounts: Amounts, vendor: Vendor) -> Asked | None:
    """The container names the sum over its devices."""
    count, memory = _positive(amounts.get(vendor.resources.count)), _unit_memory(amounts, vendor)
    cores = parse_whole(amounts.get(vendor.resources.cores)) or 0
    if count is None or memory is None:
        return None
    # As Go divides: towards zero.
    share = abs(cores) // count * (1 if cores >= 0 else -1)
    return Asked(count, memory // count, 0 if memory else _WHOLE, share)


def _metax_sgpu(limits: Amounts, _: Amounts, vendor: Vendor) -> Asked | None:
    """Limits alone. Memory with a unit is in bytes, without one in GiB."""
    names = vendor.resources
    count, cores = _positive(limits.get(names.count)), parse_whole(limits.get(names.cores))
    cores = vendor.amounts.default_cores if cores is None else cores
    amount, memory = parse_whole(limits.get(names.memory)), 0
    if amount is not None:
        if has_unit(limits[names.memory]):
            memory = abs(amount) // 2**20 * (1 if amount >= 0 else -1)
        else:
            memory = amount * vendor.amounts.memory_unit_mib
            memory = memory if _fits(memory) else -1
    return None if count is None or not _fits(cores) or not _fits(memory) else _with_memory(count, memory, cores)


def _whole_devices(memory_mib: int, cores: int) -> Reader:
    def read(_: Amounts, amounts: Amounts, vendor: Vendor) -> Asked | None:
        count = parse_whole(amounts.get(vendor.resources.count))
        return None if count is None else Asked(count, memory_mib, _WHOLE, cores)

    return read


def xpu_size(memory_mib: int) -> int:
    """The size of the part that a request of an XPU gets."""
    return next((size for size in _XPU_SIZES if memory_mib <= size), _XPU_MEMORY)


def _xpu(_: Amounts, amounts: Amounts, vendor: Vendor) -> Asked | None:
    count, memory = parse_whole(amounts.get(vendor.resources.count)), parse_whole(amounts.get(vendor.resources.memory))
    if count is None:
        return None
    if memory is None:
        return Asked(count, _XPU_MEMORY, _WHOLE, _WHOLE)
    size = xpu_size(memory)
    return Asked(count, size, 0, size * _WHOLE // _XPU_MEMORY)


def _enflame(_: Amounts, amounts: Amounts, vendor: Vendor) -> Asked | None:
    """Slices of a device, or memory and cores from which a profile is found."""
    names = vendor.resources
    slices = parse_whole(amounts.get(names.count))
    if slices is not None and slices > 0:
        return Asked(1, slices, 0, 0) if slices <= _INT32_MAX else None
    named = [name in amounts for name in (names.memory, names.cores)]
    memory, cores = (
        round_up(amounts[name]) if is_named else 0
        for name, is_named in zip((names.memory, names.cores), named, strict=True)
    )
    if not any(named) or max(memory, cores) > _INT32_MAX:
        return None
    return Asked(1, memory, BY_SPECIFICATION, cores)


def split_cores(cores: int, vendor: Vendor) -> tuple[int, int] | None:
    """Neuron devices and cores of each; None where the cores do not fill devices."""
    # HAMi learns the number of cores from the first node that registers.
    device_cores = min(vendor.amounts.default_cores or _NEURON_CORES, _NEURON_CORES)
    if cores <= device_cores:
        return 1, cores
    return None if cores % device_cores or cores // device_cores > _INT32_MAX else (cores // device_cores, device_cores)


def _neuron(_: Amounts, amounts: Amounts, vendor: Vendor) -> Asked | None:
    names = vendor.resources
    if names.count in amounts:
        count = _positive(amounts[names.count])
        return None if count is None else Asked(count, 0, 0, vendor.amounts.default_cores)
    cores = parse_whole(amounts.get(names.cores))
    split = split_cores(cores, vendor) if cores is not None and 0 < cores <= _INT32_MAX * _NEURON_CORES else None
    return Asked(split[0], 0, 0, split[1]) if split else None


_READERS: Final[Mapping[Family, Reader]] = {
    Family.HYGON: _hygon,
    Family.ASCEND: _ascend,
    Family.CAMBRICON: _in_units,
    Family.ILUVATAR: _in_units,
    Family.MTHREADS: _mthreads,
    Family.METAX_SGPU: _metax_sgpu,
    Family.METAX_GPU: _whole_devices(0, _WHOLE),
    Family.KUNLUN: _whole_devices(0, 0),
    Family.GCU: _whole_devices(100, _WHOLE),
    Family.XPU: _xpu,
    Family.ENFLAME: _enflame,
    Family.NEURON: _neuron,
}
