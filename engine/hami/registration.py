"""Register annotations: the devices that a node offers, in the forms in which device plugins write them.

`hami.io/node-nvidia-register` is a JSON array (HAMi >= v2.8) in which zero values are absent. Up to v2.7 it was
`uuid,count,memory,cores,type,numa,health[,index,mode]:` repeated, and some vendors still write that form. Both are
read. A node registers here exactly when it registers with HAMi; two deliberate differences, the form up to v2.7 and
null entries, are in docs/hami-differences.md.
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
    go_boolean,
    go_integer,
    json_array,
    json_boolean,
    json_fields,
    json_integer,
    json_kind,
    json_string,
    parse_json,
)
from engine.hami.mig import MigProfile, Placement
from engine.hami.vendors import Form

DEFAULT_MODE: Final = "hami-core"
"""The mode of a device in the form of seven fields. A device in JSON without a mode has an empty one, as with HAMi."""


@dataclass(frozen=True, slots=True)
class Device:
    """One device as its node registers it. cores: percent of one device; slots: how many containers may share it."""

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
    """What only one vendor's rules read, by HAMi's name (`NetworkID`, `LinkZone`); every value can be hashed."""


class Registration(NamedTuple):
    """The devices of a node, in the order in which it lists them."""

    devices: tuple[Device, ...]
    form: Literal["json", "colon"]


class Malformed(NamedTuple):
    """An annotation that can't be read. place: where in it (`device 3, field devmem`); problem: what to write."""

    annotation: str
    place: str
    problem: str

    def __str__(self) -> str:
        where = f", {self.place}" if self.place else ""
        return f"annotation {self.annotation}{where}: {self.problem}"


def decode_registration(text: object, annotation: str = REGISTER, form: Form = Form.HAMI) -> Registration | Malformed:
    """The devices that a register annotation lists, in the form given; `Malformed` also when it lists none."""
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
    """The form since HAMi v2.8."""
    try:
        items = enumerate(json_array(parse_json(text), ""))
        return tuple(device_of_json(item, f"device {place}") for place, item in items)
    except InvalidValueError as wrong:
        return Malformed(REGISTER, wrong.place, wrong.problem)


def device_of_json(item: Any, place: str) -> Device:
    """One device of the parsed JSON form. Raises `InvalidValueError`."""
    if item is None:
        # HAMi panics on it.
        raise InvalidValueError(place, "is null, write a JSON object")
    return Device(**json_fields(item, _DEVICE_FIELDS, place))


def _profiles(value: Any, place: str) -> tuple[MigProfile, ...]:
    items = enumerate(json_array(value, place))
    return tuple(MigProfile(**json_fields(item, _PROFILE_FIELDS, f"{place}[{i}]")) for i, item in items)


def _placements(value: Any, place: str) -> tuple[Placement, ...]:
    items = enumerate(json_array(value, place))
    return tuple(Placement(**json_fields(item, _PLACEMENT_FIELDS, f"{place}[{i}]")) for i, item in items)


def _extra(value: Any, place: str) -> tuple[tuple[str, Any], ...]:
    if not isinstance(value, dict):
        raise InvalidValueError(place, f"is {json_kind(value)}, write a JSON object")
    # Numbers and texts are all that any vendor's rule reads.
    return tuple((key, item) for key, item in value.items() if isinstance(item, int | float | str))


def extra_as_json(device: Device) -> dict[str, Any]:
    """``extra`` as a JSON object; `extra_of_json` is the way back."""
    return {key: dict(value) if isinstance(value, tuple) else value for key, value in device.extra}


def extra_of_json(found: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """The form that ``extra`` has: numbers, texts, and tables of them; everything else is left out."""
    return tuple(
        (key, tuple(value.items()) if isinstance(value, dict) else value)
        for key, value in found.items()
        if isinstance(value, int | float | str | dict)
    )


_PLACEMENT_FIELDS: Final[Fields] = {
    "start": ("start", json_integer(*UINT32)),
    "size": ("size", json_integer(*UINT32)),
}
_PROFILE_FIELDS: Final[Fields] = {
    "name": ("name", json_string),
    "memorymb": ("memory_mib", json_integer(*INT32)),
    "core": ("cores", json_integer(*INT32)),
    "slicecount": ("slices", json_integer(*UINT32)),
    "placements": ("placements", _placements),
}
# Widths are those of HAMi's structs: a number that overflows there makes the node unregistered.
_DEVICE_FIELDS: Final[Fields] = {
    "id": ("uuid", json_string),
    "index": ("index", json_integer(*UINT64)),
    "count": ("slots", json_integer(*INT32)),
    "devmem": ("memory_mib", json_integer(*INT32)),
    "devcore": ("cores", json_integer(*INT32)),
    "type": ("model", json_string),
    # HAMi's fields are omitempty: index 0, NUMA node 0 and health false are absent, and the defaults of ``Device`` say
    # the same.
    "numa": ("numa", json_integer(*INT64)),
    "mode": ("mode", json_string),
    "health": ("is_healthy", json_boolean),
    "migprofiles": ("mig_profiles", _profiles),
    "custominfo": ("extra", _extra),
}


def decode_metax(text: object, annotation: str, model: str) -> Registration | Malformed:
    """Metax' list of shared devices. It has no index and no model: HAMi takes the position and the vendor's word."""
    if not isinstance(text, str):
        return Malformed(annotation, "", f"is {type(text).__name__}, write a string")
    try:
        items = enumerate(json_array(parse_json(text), ""))
        rows = [json_fields(item, _METAX_FIELDS, f"device {place}") for place, item in items]
    except InvalidValueError as wrong:
        return Malformed(annotation, wrong.place, wrong.problem)
    if not rows:
        return Malformed(annotation, "", "lists no device")
    return Registration(tuple(_metax_device(index, model, row) for index, row in enumerate(rows)), "json")


def _metax_device(index: int, model: str, row: dict[str, Any]) -> Device:
    extra = tuple((key, row.pop(key, default)) for key, default in METAX_EXTRA.items())
    return Device(index=index, model=model, extra=extra, **row)


METAX_EXTRA: Final[dict[str, str | int]] = {"QosPolicy": "", "Model": "", "LinkZone": 0}


_METAX_FIELDS: Final[Fields] = {
    "uuid": ("uuid", json_string),
    "totaldevcount": ("slots", json_integer(*INT32)),
    "totalcompute": ("cores", json_integer(*INT32)),
    "totalvram": ("memory_mib", json_integer(*INT32)),
    "numa": ("numa", json_integer(*INT32)),
    "healthy": ("is_healthy", json_boolean),
    "qospolicy": ("QosPolicy", json_string),
    "model": ("Model", json_string),
    "linkzone": ("LinkZone", json_integer(*INT32)),
}


def decode_colon(text: str) -> tuple[Device, ...] | Malformed:
    """The form up to HAMi v2.7: seven or nine fields a device, each device ended by a colon."""
    if ":" not in text:
        return Malformed(REGISTER, "", "has no ':' after a device")
    # Each device is ended by a colon, not separated by it: the last part is empty.
    segments = [segment for segment in text.split(":") if segment]
    try:
        return tuple(_device_of_fields(segment, f"device {place}") for place, segment in enumerate(segments))
    except InvalidValueError as wrong:
        return Malformed(REGISTER, wrong.place, wrong.problem)


def _device_of_fields(segment: str, place: str) -> Device:
    fields = segment.split(",")
    # HAMi refuses every other number of fields.
    if len(fields) not in (7, 9):
        raise InvalidValueError(place, f"has {len(fields)} fields, write 7 or 9")
    uuid, slots, memory, cores, model, numa, health = fields[:7]
    # HAMi's defaults in ``DecodeNodeDevices`` for the seven fields that older device plugins write.
    index, mode = fields[7:] or ("0", DEFAULT_MODE)
    return Device(
        uuid=uuid,
        slots=_number(slots, INT32, f"{place}, field count"),
        memory_mib=_number(memory, INT32, f"{place}, field memory"),
        cores=_number(cores, INT32, f"{place}, field cores"),
        model=model,
        numa=_number(numa, INT64, f"{place}, field numa"),
        is_healthy=_flag(health, f"{place}, field health"),
        index=_number(index, (0, INT64[1]), f"{place}, field index"),
        mode=mode,
    )


def _number(text: str, bounds: tuple[int, int], place: str) -> int:
    value = go_integer(text, *bounds)
    if value is None:
        raise InvalidValueError(place, f"is {text!r:.40}, write a whole number from {bounds[0]} to {bounds[1]}")
    return value


def _flag(text: str, place: str) -> bool:
    value = go_boolean(text)
    if value is None:
        raise InvalidValueError(place, f"is {text!r:.40}, write true or false")
    return value
