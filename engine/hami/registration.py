"""Register annotations: the devices that a node offers, in the forms in which device plugins write them.

`hami.io/node-nvidia-register` is a JSON array (HAMi >= v2.8) in which zero values are absent. Up to v2.7 it was
`uuid,count,memory,cores,type,numa,health[,index,mode]:` repeated, and some vendors still write that form. This module
reads both. A node registers here exactly when it registers with HAMi; two deliberate differences, the form up to v2.7
and null entries, are in docs/hami-differences.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from engine.hami.annotations import REGISTER
from engine.hami.go_values import (
    INT32,
    INT64,
    UINT32,
    UINT64,
    Fields,
    InvalidValueError,
    describe_kind,
    make_integer_reader,
    parse_boolean,
    parse_integer,
    parse_json,
    read_array,
    read_boolean,
    read_fields,
    read_string,
)
from engine.hami.mig import MigProfile, Placement
from engine.hami.vendors import Form

DEFAULT_MODE: Final = "hami-core"
"""Mode of a device in the form of seven fields. A device in JSON without a mode has an empty one, as with HAMi."""


@dataclass(frozen=True, slots=True)
class Device:
    """Device as its node registers it. cores: percent of one device; slots: how many containers may share it."""

    uuid: str = ""
    index: int = 0
    slots: int = 0
    memory_mib: int = 0
    cores: int = 0
    model: str = ""
    numa: int = 0
    mode: str = ""
    is_healthy: bool = False
    mig_profiles: tuple[MigProfile, ...] = ()
    extra: tuple[tuple[str, Any], ...] = ()
    """Fields that only one vendor's rules read, by HAMi's name (`NetworkID`, `LinkZone`); every value can be hashed."""


class Registration(NamedTuple):
    """Devices of a node, in the order in which it lists them."""

    devices: tuple[Device, ...]
    form: Literal["json", "colon"]


class Malformed(NamedTuple):
    """Annotation that can't be read. location: where in it (`device 3, field devmem`); problem: what to write."""

    annotation: str
    location: str
    problem: str

    def __str__(self) -> str:
        where = f", {self.location}" if self.location else ""
        return f"annotation {self.annotation}{where}: {self.problem}"


def decode_registration(text: object, annotation: str = REGISTER, form: Form = Form.HAMI) -> Registration | Malformed:
    """Decode the devices that a register annotation lists, in this form; `Malformed` also when it lists none."""
    if not isinstance(text, str):
        return Malformed(annotation, "", f"is {type(text).__name__}, write a string")
    # A UUID never begins with one of these, so the old form can't be taken for JSON. Without a colon it is neither, and
    # the JSON reader words the error.
    is_json = form is not Form.COLON and (
        form is Form.JSON or ":" not in text or text.lstrip().startswith(("[", "{", '"'))
    )
    devices = decode_json(text) if is_json else decode_colon(text)
    if isinstance(devices, Malformed):
        return devices._replace(annotation=annotation)
    if not devices:
        return Malformed(annotation, "", "lists no device")
    return Registration(devices, "json" if is_json else "colon")


def decode_json(text: str) -> tuple[Device, ...] | Malformed:
    """Decode the form since HAMi v2.8."""
    try:
        items = enumerate(read_array(parse_json(text), ""))
        return tuple(decode_device(item, f"device {position}") for position, item in items)
    except InvalidValueError as wrong:
        return Malformed(REGISTER, wrong.location, wrong.problem)


def decode_device(item: Any, location: str) -> Device:
    """Decode one device of the parsed JSON form. Raises `InvalidValueError`."""
    if item is None:
        # HAMi panics on it.
        raise InvalidValueError(location, "is null, write a JSON object")
    return Device(**read_fields(item, _DEVICE_FIELDS, location))


def _read_profiles(value: Any, location: str) -> tuple[MigProfile, ...]:
    items = enumerate(read_array(value, location))
    return tuple(MigProfile(**read_fields(item, _PROFILE_FIELDS, f"{location}[{i}]")) for i, item in items)


def _read_placements(value: Any, location: str) -> tuple[Placement, ...]:
    items = enumerate(read_array(value, location))
    return tuple(Placement(**read_fields(item, _PLACEMENT_FIELDS, f"{location}[{i}]")) for i, item in items)


def _read_extra(value: Any, location: str) -> tuple[tuple[str, Any], ...]:
    if not isinstance(value, dict):
        raise InvalidValueError(location, f"is {describe_kind(value)}, write a JSON object")
    # Numbers and texts are all that any vendor's rule reads.
    return tuple((key, item) for key, item in value.items() if isinstance(item, int | float | str))


def encode_extra(device: Device) -> dict[str, Any]:
    """Encode ``extra`` as a JSON object; `decode_extra` is the way back."""
    return {key: dict(value) if isinstance(value, tuple) else value for key, value in device.extra}


def decode_extra(fields: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Decode the form that ``extra`` has: numbers, texts, and tables of them; everything else is left out."""
    return tuple(
        (key, tuple(value.items()) if isinstance(value, dict) else value)
        for key, value in fields.items()
        if isinstance(value, int | float | str | dict)
    )


_PLACEMENT_FIELDS: Final[Fields] = {
    "start": ("start", make_integer_reader(*UINT32)),
    "size": ("size", make_integer_reader(*UINT32)),
}
_PROFILE_FIELDS: Final[Fields] = {
    "name": ("name", read_string),
    "memorymb": ("memory_mib", make_integer_reader(*INT32)),
    "core": ("cores", make_integer_reader(*INT32)),
    "slicecount": ("slices", make_integer_reader(*UINT32)),
    "placements": ("placements", _read_placements),
}
# Widths are those of HAMi's structs: a number that overflows there makes the node unregistered.
_DEVICE_FIELDS: Final[Fields] = {
    "id": ("uuid", read_string),
    "index": ("index", make_integer_reader(*UINT64)),
    "count": ("slots", make_integer_reader(*INT32)),
    "devmem": ("memory_mib", make_integer_reader(*INT32)),
    "devcore": ("cores", make_integer_reader(*INT32)),
    "type": ("model", read_string),
    # HAMi's fields are omitempty: index 0, NUMA node 0 and health false are absent, and the defaults of ``Device`` say
    # the same.
    "numa": ("numa", make_integer_reader(*INT64)),
    "mode": ("mode", read_string),
    "health": ("is_healthy", read_boolean),
    "migprofiles": ("mig_profiles", _read_profiles),
    "custominfo": ("extra", _read_extra),
}


def decode_metax(text: object, annotation: str, model: str) -> Registration | Malformed:
    """Decode Metax' list of shared devices.

    It has no index and no model: HAMi takes the position and the vendor's word.
    """
    if not isinstance(text, str):
        return Malformed(annotation, "", f"is {type(text).__name__}, write a string")
    try:
        items = enumerate(read_array(parse_json(text), ""))
        rows = [read_fields(item, _METAX_FIELDS, f"device {position}") for position, item in items]
    except InvalidValueError as wrong:
        return Malformed(annotation, wrong.location, wrong.problem)
    if not rows:
        return Malformed(annotation, "", "lists no device")
    return Registration(tuple(_build_metax_device(index, model, row) for index, row in enumerate(rows)), "json")


def _build_metax_device(index: int, model: str, row: dict[str, Any]) -> Device:
    extra = tuple((key, row.pop(key, default)) for key, default in METAX_EXTRA.items())
    return Device(index=index, model=model, extra=extra, **row)


METAX_EXTRA: Final[dict[str, str | int]] = {"QosPolicy": "", "Model": "", "LinkZone": 0}


_METAX_FIELDS: Final[Fields] = {
    "uuid": ("uuid", read_string),
    "totaldevcount": ("slots", make_integer_reader(*INT32)),
    "totalcompute": ("cores", make_integer_reader(*INT32)),
    "totalvram": ("memory_mib", make_integer_reader(*INT32)),
    "numa": ("numa", make_integer_reader(*INT32)),
    "healthy": ("is_healthy", read_boolean),
    "qospolicy": ("QosPolicy", read_string),
    "model": ("Model", read_string),
    "linkzone": ("LinkZone", make_integer_reader(*INT32)),
}


def decode_colon(text: str) -> tuple[Device, ...] | Malformed:
    """Decode the form up to HAMi v2.7: seven or nine fields a device, each device ended by a colon."""
    if ":" not in text:
        return Malformed(REGISTER, "", "has no ':' after a device")
    # Each device is ended by a colon, not separated by it: the last part is empty.
    segments = [segment for segment in text.split(":") if segment]
    try:
        return tuple(_decode_fields(segment, f"device {position}") for position, segment in enumerate(segments))
    except InvalidValueError as wrong:
        return Malformed(REGISTER, wrong.location, wrong.problem)


def _decode_fields(segment: str, location: str) -> Device:
    fields = segment.split(",")
    # HAMi refuses every other number of fields.
    if len(fields) not in (7, 9):
        raise InvalidValueError(location, f"has {len(fields)} fields, write 7 or 9")
    uuid, slots, memory, cores, model, numa, health = fields[:7]
    # HAMi's defaults in ``DecodeNodeDevices`` for the seven fields that older device plugins write.
    index, mode = fields[7:] or ("0", DEFAULT_MODE)
    return Device(
        uuid=uuid,
        slots=_parse_number(slots, INT32, f"{location}, field count"),
        memory_mib=_parse_number(memory, INT32, f"{location}, field memory"),
        cores=_parse_number(cores, INT32, f"{location}, field cores"),
        model=model,
        numa=_parse_number(numa, INT64, f"{location}, field numa"),
        is_healthy=_parse_flag(health, f"{location}, field health"),
        index=_parse_number(index, (0, INT64[1]), f"{location}, field index"),
        mode=mode,
    )


def _parse_number(text: str, bounds: tuple[int, int], location: str) -> int:
    value = parse_integer(text, *bounds)
    if value is None:
        raise InvalidValueError(location, f"is {text!r:.40}, write a whole number from {bounds[0]} to {bounds[1]}")
    return value


def _parse_flag(text: str, location: str) -> bool:
    value = parse_boolean(text)
    if value is None:
        raise InvalidValueError(location, f"is {text!r:.40}, write true or false")
    return value
