"""Enflame's annotation of a node: its devices, and the profiles into which each can be cut (`1g.12gb`).

{"devices": [{"index": "0", "minor": "0", "capacity": 6}], "profiles": {"1g.12gb": "3", "2g.24gb": "4"}}
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from engine.hami.go_values import (
    InvalidValueError,
    describe_kind,
    parse_integer,
    parse_json,
    read_array,
    read_fields,
    read_string,
)
from engine.hami.registration import Device, Malformed, Registration

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
