"""What a node says about its devices in annotations.

`hami.io/node-nvidia-register` is a JSON array (HAMi >= v2.8) in which zero values are absent; up to v2.7 it was
`uuid,count,memory,cores,type,numa,health[,index,mode]:` repeated. Both are read; which one it was is kept. Values are
checked as Go's `encoding/json` checks them against HAMi's structs (keys without regard to case, null is "not said",
no fractions, 32 bits), so a node registers here exactly when it registers with HAMi.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import orjson

from hami.mig import MigProfile, Placement

REGISTER: Final = "hami.io/node-nvidia-register"
PAIR_SCORES: Final = "hami.io/node-nvidia-score"
CORDON: Final = "hami.io/device-cordon"

_INT32: Final = (-(2**31), 2**31 - 1)
_INT64: Final = (-(2**63), 2**63 - 1)
_UINT64: Final = (0, 2**64 - 1)
_UINT32: Final = (0, 2**32 - 1)


@dataclass(frozen=True, slots=True)
class Device:
    """One card as its node registers it. memory in MiB, cores in percent of one card, slots: how many may share it."""

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


@dataclass(frozen=True, slots=True)
class Registration:
    """The devices of a node, in the order it lists them."""

    devices: tuple[Device, ...]
    form: Literal["json", "colon"]


@dataclass(frozen=True, slots=True)
class Malformed:
    """An annotation that can't be read: which, where in it, and what is wrong there."""

    annotation: str
    place: str
    problem: str

    def __str__(self) -> str:
        where = f", {self.place}" if self.place else ""
        return f"annotation {self.annotation}{where}: {self.problem}"


class _WrongError(Exception):
    """Carries place and problem out of the depth of a value; never leaves this module."""

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(place, problem)
        self.place, self.problem = place, problem


def decode_registration(text: object, annotation: str = REGISTER) -> Registration | Malformed:
    """The devices that a register annotation lists; Malformed also when it lists none."""
    if not isinstance(text, str):
        return Malformed(annotation, "", f"is {type(text).__name__}, write a string")
    is_json = ":" not in text or text.lstrip().startswith(("[", "{", '"'))
    devices = decode_json(text) if is_json else decode_colon(text)
    if isinstance(devices, Malformed):
        return replace(devices, annotation=annotation)
    if not devices:
        return Malformed(annotation, "", "lists no device")
    return Registration(devices, "json" if is_json else "colon")


def decode_json(text: str) -> tuple[Device, ...] | Malformed:
    """The form since HAMi v2.8."""
    try:
        return tuple(_device(item, f"device {place}") for place, item in enumerate(_array(_json(text), "")))
    except _WrongError as wrong:
        return Malformed(REGISTER, wrong.place, wrong.problem)


def _json(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise _WrongError(f"character {error.pos}", f"is not JSON ({error.msg})") from None


def _array(value: Any, place: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise _WrongError(place, f"is {_kind(value)}, write a JSON array")
    return value


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), f"the number {value!r:.40}")


def _integer(low: int, high: int) -> Callable[[Any, str], int]:
    def read(value: Any, place: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise _WrongError(place, f"is {_kind(value)}, write a whole number")
        if not low <= value <= high:
            raise _WrongError(place, f"is {value}, write a number from {low} to {high}")
        return value

    return read


def _string(value: Any, place: str) -> str:
    if not isinstance(value, str):
        raise _WrongError(place, f"is {_kind(value)}, write a string")
    return value


def _boolean(value: Any, place: str) -> bool:
    if not isinstance(value, bool):
        raise _WrongError(place, f"is {_kind(value)}, write true or false")
    return value


def _profiles(value: Any, place: str) -> tuple[MigProfile, ...]:
    items = enumerate(_array(value, place))
    return tuple(MigProfile(**_fields(item, _PROFILE_FIELDS, f"{place}[{i}]")) for i, item in items)


def _placements(value: Any, place: str) -> tuple[Placement, ...]:
    items = enumerate(_array(value, place))
    return tuple(Placement(**_fields(item, _PLACEMENT_FIELDS, f"{place}[{i}]")) for i, item in items)


_Fields = Mapping[str, tuple[str, Callable[[Any, str], Any]]]

_PLACEMENT_FIELDS: Final[_Fields] = {"start": ("start", _integer(*_UINT32)), "size": ("size", _integer(*_UINT32))}
_PROFILE_FIELDS: Final[_Fields] = {
    "name": ("name", _string),
    "memorymb": ("memory_mib", _integer(*_UINT64)),
    "core": ("cores", _integer(*_INT32)),
    "slicecount": ("slices", _integer(*_UINT32)),
    "placements": ("placements", _placements),
}
_DEVICE_FIELDS: Final[_Fields] = {
    "id": ("uuid", _string),
    "index": ("index", _integer(*_UINT64)),
    "count": ("slots", _integer(*_INT32)),
    "devmem": ("memory_mib", _integer(*_INT32)),
    "devcore": ("cores", _integer(*_INT32)),
    "type": ("model", _string),
    "numa": ("numa", _integer(*_INT64)),
    "mode": ("mode", _string),
    "health": ("is_healthy", _boolean),
    "migprofiles": ("mig_profiles", _profiles),
}


def _fields(item: Any, known: _Fields, place: str) -> dict[str, Any]:
    """The known, said fields of a JSON object by our names. Null and unknown keys are as if absent."""
    if item is None:
        return {}
    if not isinstance(item, dict):
        raise _WrongError(place, f"is {_kind(item)}, write a JSON object")
    said = ((known.get(key) or known.get(key.lower()), key, value) for key, value in item.items() if value is not None)
    return {field[0]: field[1](value, f"{place}, field {key}") for field, key, value in said if field}


def _device(item: Any, place: str) -> Device:
    if item is None:
        raise _WrongError(place, "is null, write a JSON object")
    return Device(**_fields(item, _DEVICE_FIELDS, place))


def decode_metax(text: object, annotation: str, model: str) -> Registration | Malformed:
    """Metax' list of shared cards. A card's place in it is its index; its model word is the vendor's, as with HAMi."""
    if not isinstance(text, str):
        return Malformed(annotation, "", f"is {type(text).__name__}, write a string")
    try:
        rows = [_fields(item, _METAX_FIELDS, f"device {place}") for place, item in enumerate(_array(_json(text), ""))]
    except _WrongError as wrong:
        return Malformed(annotation, wrong.place, wrong.problem)
    if not rows:
        return Malformed(annotation, "", "lists no device")
    return Registration(tuple(Device(index=index, model=model, **row) for index, row in enumerate(rows)), "json")


_METAX_FIELDS: Final[_Fields] = {
    "uuid": ("uuid", _string),
    "totaldevcount": ("slots", _integer(*_INT32)),
    "totalcompute": ("cores", _integer(*_INT32)),
    "totalvram": ("memory_mib", _integer(*_INT32)),
    "numa": ("numa", _integer(*_INT32)),
    "healthy": ("is_healthy", _boolean),
}


def decode_colon(text: str) -> tuple[Device, ...] | Malformed:
    """The form up to HAMi v2.7: 7 or 9 comma fields a device, each device ended by a colon."""
    if ":" not in text:
        return Malformed(REGISTER, "", "has no ':' after a device")
    segments = [segment for segment in text.split(":") if segment]
    try:
        return tuple(_colon_device(segment, f"device {place}") for place, segment in enumerate(segments))
    except _WrongError as wrong:
        return Malformed(REGISTER, wrong.place, wrong.problem)


def _colon_device(segment: str, place: str) -> Device:
    parts = segment.split(",")
    if len(parts) not in (7, 9):
        raise _WrongError(place, f"has {len(parts)} fields, write 7 or 9")
    uuid, slots, memory, cores, model, numa, health = parts[:7]
    index, mode = parts[7:] or ("0", "hami-core")
    return Device(
        uuid=uuid,
        slots=_number(slots, _INT32, f"{place}, field count"),
        memory_mib=_number(memory, _INT32, f"{place}, field memory"),
        cores=_number(cores, _INT32, f"{place}, field cores"),
        model=model,
        numa=_number(numa, _INT64, f"{place}, field numa"),
        is_healthy=_truth(health, f"{place}, field health"),
        index=_number(index, (0, _INT64[1]), f"{place}, field index"),
        mode=mode,
    )


def go_integer(text: str, low: int, high: int) -> int | None:
    """What Go's `strconv.ParseInt(text, 10, …)` reads: ASCII digits with an optional sign; None where it errs."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 64:
        return None
    value = int(text)
    return value if low <= value <= high else None


_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})


def go_boolean(text: str) -> bool | None:
    """What Go's `strconv.ParseBool` reads; None where it errs."""
    return True if text in _TRUE else False if text in _FALSE else None


def _number(text: str, bounds: tuple[int, int], place: str) -> int:
    value = go_integer(text, *bounds)
    if value is None:
        raise _WrongError(place, f"is {text!r:.40}, write a whole number from {bounds[0]} to {bounds[1]}")
    return value


def _truth(text: str, place: str) -> bool:
    value = go_boolean(text)
    if value is None:
        raise _WrongError(place, f"is {text!r:.40}, write true or false")
    return value


def decode_pair_scores(text: object) -> dict[str, dict[str, int]] | Malformed:
    """How well each device of a node talks to each other one: {uuid: {uuid: score}}; higher is better."""
    if not isinstance(text, str):
        return Malformed(PAIR_SCORES, "", f"is {type(text).__name__}, write a string")
    try:
        items = enumerate(_array(_json(text), ""))
        rows = [_fields(item, _PAIR_FIELDS, f"entry {place}") for place, item in items]
    except _WrongError as wrong:
        return Malformed(PAIR_SCORES, wrong.place, wrong.problem)
    return {row.get("uuid", ""): row.get("score", {}) for row in rows}


def _score_map(value: Any, place: str) -> dict[str, int]:
    if not isinstance(value, dict):
        raise _WrongError(place, f"is {_kind(value)}, write a JSON object")
    read = _integer(*_INT64)
    return {uuid: read(score, f"{place} of {uuid}") for uuid, score in value.items() if score is not None}


_PAIR_FIELDS: Final[_Fields] = {"uuid": ("uuid", _string), "score": ("score", _score_map)}


@dataclass(frozen=True, slots=True)
class NodeDevices:
    """All that a node says: its devices, how well pairs of them talk to each other, and whose each device is.

    vendors: per device the code of its vendor; empty where they are not told apart.
    """

    registration: Registration
    pair_scores: Mapping[str, Mapping[str, int]]
    vendors: tuple[int, ...] = ()


def decode_node(annotations: Mapping[str, Any], register: str = REGISTER) -> NodeDevices | Malformed | None:
    """None where nothing is registered. A broken score annotation unregisters the node, as with HAMi."""
    if register not in annotations:
        return None
    registration = decode_registration(annotations[register], register)
    if isinstance(registration, Malformed):
        return registration
    scores = decode_pair_scores(annotations[PAIR_SCORES]) if PAIR_SCORES in annotations else {}
    return scores if isinstance(scores, Malformed) else NodeDevices(registration, scores)


def cordoned(annotations: Mapping[str, Any]) -> frozenset[str]:
    """UUIDs that `hami.io/device-cordon` takes out of use."""
    listed = annotations.get(CORDON)
    return frozenset(part.strip() for part in listed.split(",")) if isinstance(listed, str) else frozenset()
