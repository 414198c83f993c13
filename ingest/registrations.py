"""What nodes register in annotations: ``hami.io/node-<vendor>-register``, in both forms that HAMi has written.

Since v2.8 it is a JSON array in which zero values are absent; before, ``uuid,count,memory,cores,type,numa,health`` with
or without ``,index,mode``, each device ended by a colon. A registration that can't be read is told with its cause.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

_ANNOTATION: Final = re.compile(r"hami\.io/node-(?P<vendor>[\w.-]+)-register")
_DEFAULT_MODE: Final = "hami-core"
_TRUE: Final = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_LARGEST: Final = 2**53


@dataclass(frozen=True, slots=True)
class Device:
    uuid: str
    model: str = ""
    mode: str = _DEFAULT_MODE
    index: int = 0
    memory_mib: int = 0
    cores_percent: int = 0
    slots: int = 0
    numa: int = 0
    is_healthy: bool = False


@dataclass(frozen=True, slots=True)
class Registered:
    devices: list[Device] = field(default_factory=list)
    cause: str = ""
    """Why a registration can't be read; empty where all can."""


class RegistrationError(ValueError):
    """What is wrong with a registration, as the end of a sentence that begins with where it stands."""


def is_registration(annotation: str) -> bool:
    return _ANNOTATION.fullmatch(annotation) is not None


def registered(annotations: Mapping[str, str]) -> Registered | None:
    """The devices of all registrations of a node; None where it has none."""
    found = {key: value for key, value in sorted(annotations.items()) if is_registration(key)}
    if not found:
        return None
    devices: list[Device] = []
    for key, value in found.items():
        try:
            devices += devices_of(value)
        except RegistrationError as wrong:
            return Registered([], f"annotation {key}: {wrong}")
    return Registered(devices)


def devices_of(said: str) -> list[Device]:
    """The devices of one annotation. Raises ``RegistrationError``: HAMi takes such a node for one without devices."""
    if said.lstrip().startswith("["):
        return _from_json(said)
    if ":" not in said:
        raise RegistrationError("is neither a JSON array nor devices that each end with a colon")
    return [_from_fields(each.split(",")) for each in said.split(":") if each.strip()]


def _from_json(said: str) -> list[Device]:
    try:
        items = orjson.loads(said)
    except orjson.JSONDecodeError as error:
        raise RegistrationError(f"is not JSON ({error})") from None
    return [device_of(item) for item in items]


def device_of(item: Any) -> Device:
    """A device of the parsed JSON form. Raises ``RegistrationError``."""
    if not isinstance(item, dict):
        raise RegistrationError("holds something else than objects")
    said = {str(key).lower(): value for key, value in item.items()}
    model, mode = said.get("type") or "", said.get("mode") or _DEFAULT_MODE
    if not isinstance(model, str) or not isinstance(mode, str) or not isinstance(said.get("id") or "", str):
        raise RegistrationError("has a device whose id, type or mode is no text")
    return Device(
        said.get("id") or "", model, mode, _integer(said.get("index")), _integer(said.get("devmem")),
        _integer(said.get("devcore")), _integer(said.get("count")), _integer(said.get("numa")),
        said.get("health") is True,
    )  # fmt: skip


def _from_fields(fields: list[str]) -> Device:
    if len(fields) not in (7, 9):
        raise RegistrationError(f"has a device of {len(fields)} fields, write 7 or 9")
    uuid, slots, memory, cores, model, numa, health = fields[:7]
    index, mode = fields[7:] or ("0", _DEFAULT_MODE)
    return Device(
        uuid.strip(), model, mode, _digits(index), _digits(memory), _digits(cores), _digits(slots), _digits(numa),
        is_healthy=health in _TRUE,
    )  # fmt: skip


def _digits(said: str) -> int:
    if not re.fullmatch(r"[+-]?\d{1,15}", said.strip(), re.ASCII):
        raise RegistrationError(f"has {said[:40]!r} where a whole number belongs")
    return int(said)


def _integer(amount: Any) -> int:
    if amount is None:
        return 0
    if isinstance(amount, bool) or not isinstance(amount, int) or abs(amount) > _LARGEST:
        raise RegistrationError(f"has {str(amount)[:40]!r} where a whole number belongs")
    return amount
