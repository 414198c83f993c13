"""Requests of one container of a vendor other than NVIDIA, family by family (each `GenerateResourceRequests`).

The families differ in what drops a request: some drop one whose amounts don't fit into 32 bits or are negative, others
ignore the amount. Quantities are those of limits, else of requests.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from engine.hami.quantities import has_unit, parse_whole, round_up
from engine.hami.vendors import BY_SPECIFICATION, Family, Vendor

_INT32_MAX: Final = 2**31 - 1
_ALL_PERCENT: Final = 100
_XPU_SIZES: Final = (24576, 49152)
_XPU_MEMORY: Final = 98304
_NEURON_CORES: Final = 2
"""Cores of a Neuron device that HAMi gives at most by their number."""


class RequestedAmounts(NamedTuple):
    """Number of devices, and of each device MiB, percentage of the memory, and cores."""

    devices: int
    memory_mib: int
    memory_percentage: int
    cores: int


Quantities = Mapping[str, Any]
"""Quantities of the container by name of the resource."""
Reader = Callable[[Quantities, Quantities, Vendor], RequestedAmounts | None]


def read_vendor_request(limits: Quantities, requests: Quantities, vendor: Vendor) -> RequestedAmounts | None:
    """Read a request; None where the container requests nothing of the vendor, or in a way that drops the request."""
    return _READERS[vendor.family](limits, {**requests, **limits}, vendor)


def _with_memory(count: int, memory_mib: int, cores: int) -> RequestedAmounts:
    """Build the amounts; without memory, all of a device's memory."""
    return RequestedAmounts(count, memory_mib, 0 if memory_mib else _ALL_PERCENT, cores)


def _parse_positive(value: Any) -> int | None:
    count = parse_whole(value)
    return count if count is not None and 0 < count <= _INT32_MAX else None


def _fits(value: int) -> bool:
    return 0 <= value <= _INT32_MAX


def _scale_memory(amounts: Quantities, vendor: Vendor) -> int | None:
    """Scale to MiB; an amount that is no whole number counts as none, one outside of 32 bits drops the request."""
    memory = parse_whole(amounts.get(vendor.resources.memory))
    if memory is None:
        return 0
    scaled = memory * max(vendor.amounts.memory_unit_mib, 1)
    return scaled if _fits(memory) and _fits(scaled) else None


def _convert_memory(amounts: Quantities, vendor: Vendor) -> int | None:
    """Convert to MiB; an amount that is no whole number drops the request too."""
    if vendor.resources.memory not in amounts:
        return 0
    memory = parse_whole(amounts[vendor.resources.memory])
    unit = vendor.amounts.memory_unit_mib
    return None if memory is None or not 0 <= memory <= _INT32_MAX // unit else memory * unit


def _read_hygon(_: Quantities, amounts: Quantities, vendor: Vendor) -> RequestedAmounts | None:
    count, memory = _parse_positive(amounts.get(vendor.resources.count)), _scale_memory(amounts, vendor)
    cores = parse_whole(amounts.get(vendor.resources.cores))
    cores = vendor.amounts.default_cores if cores is None else cores
    return None if count is None or memory is None or not _fits(cores) else _with_memory(count, memory, cores)


def _read_ascend(_: Quantities, amounts: Quantities, vendor: Vendor) -> RequestedAmounts | None:
    names = vendor.resources
    count, memory = _parse_positive(amounts.get(names.count)), _scale_memory(amounts, vendor)
    is_negative = names.memory in amounts and round_up(amounts[names.memory]) < 0
    cores = round_up(amounts[names.cores]) if names.cores and names.cores in amounts else 0
    usable = count is not None and memory is not None and not is_negative and _fits(cores)
    return _with_memory(count or 0, memory or 0, cores) if usable else None


def _read_in_units(_: Quantities, amounts: Quantities, vendor: Vendor) -> RequestedAmounts | None:
    count, memory = parse_whole(amounts.get(vendor.resources.count)), _convert_memory(amounts, vendor)
    cores = parse_whole(amounts.get(vendor.resources.cores))
    cores = vendor.amounts.default_cores if cores is None else cores
    return None if count is None or memory is None else _with_memory(count, memory, cores)


def _read_mthreads(_: Quantities, amounts: Quantities, vendor: Vendor) -> RequestedAmounts | None:
    """Read amounts that are the sum over the container's devices."""
    count, memory = _parse_positive(amounts.get(vendor.resources.count)), _convert_memory(amounts, vendor)
    cores = parse_whole(amounts.get(vendor.resources.cores)) or 0
    if count is None or memory is None:
        return None
    # As Go divides: towards zero.
    share = abs(cores) // count * (1 if cores >= 0 else -1)
    return RequestedAmounts(count, memory // count, 0 if memory else _ALL_PERCENT, share)


def _read_metax_sgpu(limits: Quantities, _: Quantities, vendor: Vendor) -> RequestedAmounts | None:
    """Read only limits. Memory with a unit is in bytes, without one in GiB."""
    names = vendor.resources
    count, cores = _parse_positive(limits.get(names.count)), parse_whole(limits.get(names.cores))
    cores = vendor.amounts.default_cores if cores is None else cores
    amount, memory = parse_whole(limits.get(names.memory)), 0
    if amount is not None:
        if has_unit(limits[names.memory]):
            memory = abs(amount) // 2**20 * (1 if amount >= 0 else -1)
        else:
            memory = amount * vendor.amounts.memory_unit_mib
            memory = memory if _fits(memory) else -1
    return None if count is None or not _fits(cores) or not _fits(memory) else _with_memory(count, memory, cores)


def _make_whole_reader(memory_mib: int, cores: int) -> Reader:
    def read(_: Quantities, amounts: Quantities, vendor: Vendor) -> RequestedAmounts | None:
        count = parse_whole(amounts.get(vendor.resources.count))
        return None if count is None else RequestedAmounts(count, memory_mib, _ALL_PERCENT, cores)

    return read


def round_xpu_size(memory_mib: int) -> int:
    """Round a request of an XPU up to the size of the part that it gets."""
    return next((size for size in _XPU_SIZES if memory_mib <= size), _XPU_MEMORY)


def _read_xpu(_: Quantities, amounts: Quantities, vendor: Vendor) -> RequestedAmounts | None:
    count, memory = parse_whole(amounts.get(vendor.resources.count)), parse_whole(amounts.get(vendor.resources.memory))
    if count is None:
        return None
    if memory is None:
        return RequestedAmounts(count, _XPU_MEMORY, _ALL_PERCENT, _ALL_PERCENT)
    size = round_xpu_size(memory)
    return RequestedAmounts(count, size, 0, size * _ALL_PERCENT // _XPU_MEMORY)


def _read_enflame(_: Quantities, amounts: Quantities, vendor: Vendor) -> RequestedAmounts | None:
    """Read slices of a device, or memory and cores, from which a profile is chosen."""
    names = vendor.resources
    slices = parse_whole(amounts.get(names.count))
    if slices is not None and slices > 0:
        return RequestedAmounts(1, slices, 0, 0) if slices <= _INT32_MAX else None
    named = [name in amounts for name in (names.memory, names.cores)]
    memory, cores = (
        round_up(amounts[name]) if is_named else 0
        for name, is_named in zip((names.memory, names.cores), named, strict=True)
    )
    if not any(named) or max(memory, cores) > _INT32_MAX:
        return None
    return RequestedAmounts(1, memory, BY_SPECIFICATION, cores)


def split_cores(cores: int, vendor: Vendor) -> tuple[int, int] | None:
    """Split cores into Neuron devices and cores of each; None where the cores do not fill devices."""
    # HAMi learns the number of cores from the first node that registers.
    device_cores = min(vendor.amounts.default_cores or _NEURON_CORES, _NEURON_CORES)
    if cores <= device_cores:
        return 1, cores
    return None if cores % device_cores or cores // device_cores > _INT32_MAX else (cores // device_cores, device_cores)


def _read_neuron(_: Quantities, amounts: Quantities, vendor: Vendor) -> RequestedAmounts | None:
    names = vendor.resources
    if names.count in amounts:
        count = _parse_positive(amounts[names.count])
        return None if count is None else RequestedAmounts(count, 0, 0, vendor.amounts.default_cores)
    cores = parse_whole(amounts.get(names.cores))
    split = split_cores(cores, vendor) if cores is not None and 0 < cores <= _INT32_MAX * _NEURON_CORES else None
    return RequestedAmounts(split[0], 0, 0, split[1]) if split else None


def _read_amd(limits: Quantities, _: Quantities, vendor: Vendor) -> RequestedAmounts | None:
    """Read only limits. Without memory the container gets all of a device's, without cores all cores."""
    names = vendor.resources
    count = _parse_positive(limits.get(names.count))
    memory = parse_whole(limits[names.memory]) if names.memory in limits else 0
    cores = parse_whole(limits[names.cores]) if names.cores in limits else vendor.amounts.default_cores
    usable = count is not None and memory is not None and _fits(memory) and cores is not None and 1 <= cores <= 100
    return RequestedAmounts(count or 0, memory or 0, 0, cores or 0) if usable else None


_READERS: Final[Mapping[Family, Reader]] = {
    Family.HYGON: _read_hygon,
    Family.ASCEND: _read_ascend,
    Family.CAMBRICON: _read_in_units,
    Family.ILUVATAR: _read_in_units,
    Family.MTHREADS: _read_mthreads,
    Family.METAX_SGPU: _read_metax_sgpu,
    Family.METAX_GPU: _make_whole_reader(0, _ALL_PERCENT),
    Family.KUNLUN: _make_whole_reader(0, 0),
    Family.BIREN: _make_whole_reader(0, 0),
    Family.VASTAI: _make_whole_reader(0, 0),
    Family.AMD: _read_amd,
    Family.GCU: _make_whole_reader(100, _ALL_PERCENT),
    Family.XPU: _read_xpu,
    Family.ENFLAME: _read_enflame,
    Family.NEURON: _read_neuron,
}
