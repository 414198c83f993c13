"""Devices of vendors that register in another form: in the capacity of the node, or as Enflame's shares (DRS)."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from engine.hami.go_values import (
    InvalidValueError,
    describe_kind,
    parse_integer,
    parse_json,
    read_array,
    read_fields,
    read_string,
    to_mapping,
)
from engine.hami.quantities import parse_whole
from engine.hami.registration import Device, Malformed, Registration
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


PROFILES: Final = "profiles"
LARGEST: Final = "maxSlice"
INDEX: Final = "index"
MINOR: Final = "minor"
_INT32: Final = (-(2**31), 2**31 - 1)
_DIGITS: Final = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)


def decode_drs(text: object, annotation: str, node: str, model: str) -> Registration | Malformed:
    """Decode the devices of a node."""
    if not isinstance(text, str):
        return Malformed(annotation, "", f"is {describe_kind(text)}, write a string")
    try:
        spec = read_fields(parse_json(text), _SPEC, "")
        profiles = spec.get("profiles", {})
        sizes = [parse_profile_size(name) for name in profiles]
        largest = max((slices for slices, _ in sizes), default=0)
        memory_gib = max((memory for _, memory in sizes), default=0)
        memory_mib = (memory_gib if memory_gib > 0 else largest) * 1024
        extra = (PROFILES, tuple(sorted(profiles.items()))), (LARGEST, largest)
        devices = tuple(_build_devices(spec.get("devices", []), node, model, memory_mib, extra))
    except InvalidValueError as wrong:
        return Malformed(annotation, wrong.location, wrong.problem)
    if largest <= 0:
        return Malformed(annotation, PROFILES, "has no profile, write for example 1g.12gb")
    return Registration(devices, "json") if devices else Malformed(annotation, "devices", "lists no device")


def parse_profile_size(name: str) -> tuple[int, int]:
    """Parse slices and GiB from the name of a profile (`2g.24gb`); 0 where it does not say."""
    parts = name.strip().lower().split(".")
    if len(parts) < 2:
        return 0, 0
    slices, memory = (
        _parse_number(parts[0].strip().removesuffix("g")),
        _parse_number(parts[1].strip().removesuffix("gb")),
    )
    return (0, 0) if slices is None else (slices, memory or 0)


def _parse_number(text: str) -> int | None:
    return int(text) if _DIGITS.fullmatch(text) else None


def _build_devices(
    rows: list[Mapping[str, Any]], node: str, model: str, memory_mib: int, extra: tuple[tuple[str, Any], ...]
) -> Iterator[Device]:
    for position, row in enumerate(rows):
        number = _parse_number(row.get("index", ""))
        index = position if number is None else number
        slots = _read_capacity(row.get("capacity"), f"device {position}")
        minor = row.get("minor", "").strip() or str(index)
        yield Device(
            uuid=f"{node}-enflame-drs-{index}",
            index=index,
            slots=slots,
            memory_mib=memory_mib,
            cores=100,
            model=model,
            is_healthy=True,
            extra=(*extra, (INDEX, str(index)), (MINOR, minor)),
        )


def _read_capacity(value: Any, location: str) -> int:
    """Read a number, or the text of a number."""
    number = value
    if isinstance(value, str):
        number = parse_integer(value.strip(), -(2**63), 2**63 - 1)
        number = number and max(_INT32[0], min(number, _INT32[1]))
    if isinstance(number, bool) or not isinstance(number, int | float) or not 1 <= number <= _INT32[1]:
        raise InvalidValueError(f"{location}, field capacity", f"is {value!r:.40}, write a whole number from 1")
    return int(number)


def _read_devices(value: Any, location: str) -> list[dict[str, Any]]:
    return [read_fields(item, _DEVICE, f"{location}[{i}]") for i, item in enumerate(read_array(value, location))]


def _read_profiles(value: Any, location: str) -> dict[str, str]:
    if not isinstance(value, dict):
        raise InvalidValueError(location, f"is {describe_kind(value)}, write a JSON object")
    return {name: "" if text is None else read_string(text, location) for name, text in value.items()}


_DEVICE: Final = {
    "index": ("index", read_string),
    "minor": ("minor", read_string),
    "capacity": ("capacity", lambda value, _: value),
}
_SPEC: Final = {"devices": ("devices", _read_devices), "profiles": ("profiles", _read_profiles)}
