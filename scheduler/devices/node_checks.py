"""What is wrong with how a node registers its devices: for people, beside what decisions make of it. Pure.

A node says which devices it has by annotations, and its device plugin shakes hands with the scheduler by another. Only
nodes that are to have devices are looked at: those with some allocatable, or with one of these annotations.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final

from hami.quantities import whole
from scheduler.devices.vendors import Vendor

HANDSHAKE_TOO_OLD: Final = "HandshakeTooOld"
HANDSHAKE_UNREADABLE: Final = "HandshakeUnreadable"
REGISTRATION_MISSING: Final = "RegistrationMissing"
REGISTRATION_UNUSABLE: Final = "RegistrationUnusable"

PROBLEMS: Final = (HANDSHAKE_TOO_OLD, HANDSHAKE_UNREADABLE, REGISTRATION_MISSING, REGISTRATION_UNUSABLE)

_TIME: Final = re.compile(
    r"(\d{4})[-.](\d\d)[-.](\d\d)[ T](\d\d):(\d\d):(\d\d)(?:[.,]\d+)?(?: ?(Z|[+-]\d\d:?\d\d))?", re.ASCII
)
_UNIX: Final = re.compile(r"\d{9,10}", re.ASCII)
_WORD: Final = re.compile(r"[A-Za-z]*")


@dataclass(frozen=True, slots=True)
class Handshake:
    """`word`: Requesting (the scheduler asked), Reported (the plugin answered, up to v2.7), Deleted, or none."""

    text: str
    word: str
    at: datetime | None
    """None where the text holds no time."""

    @property
    def is_question(self) -> bool:
        return self.word == "Requesting"


def read_handshake(text: str, zone: tzinfo | None = None) -> Handshake:
    """Every spelling there was. `zone`: what a time without a zone is meant in; None: this machine's.

    Requesting_2006-01-02 15:04:05    HAMi's scheduler, and since v2.8 nobody else
    Requesting_2024.01.10 04:30:04    as its protocol document has it, also with Deleted_
    Reported 2024-01-23 04:30:04.434037031 +0000 UTC m=+1104711.7    the device plugin up to v2.7
    1767225600    seconds since 1970, as troubleshooting guides take it to be
    """
    word = _WORD.match(text)
    return Handshake(text, word[0] if word else "", _time_in(text, zone))


def _time_in(text: str, zone: tzinfo | None) -> datetime | None:
    try:
        if _UNIX.fullmatch(text):
            return datetime.fromtimestamp(int(text), UTC)
        found = _TIME.search(text)
        if not found:
            return None
        said = datetime(*map(int, found.groups()[:6]), tzinfo=_zone(found[7], zone))  # type: ignore[misc, arg-type]
        return said.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _zone(said: str | None, otherwise: tzinfo | None) -> tzinfo | None:
    if not said:
        return otherwise
    return UTC if said == "Z" else datetime.strptime(said, "%z").tzinfo


@dataclass(frozen=True, slots=True)
class Registering:
    """What one node says about the devices of one vendor."""

    vendor: str
    register: str
    """The annotation's name."""
    is_there: bool
    """Whether the annotation says anything."""
    handshake: Handshake | None
    allocatable: int


def registerings(node: Mapping[str, Any], vendors: Sequence[Vendor], zone: tzinfo | None = None) -> list[Registering]:
    """One per vendor whose devices a Node object is to have."""
    annotations = _mapping(_mapping(node.get("metadata")).get("annotations"))
    allocatable = _mapping(_mapping(node.get("status")).get("allocatable"))
    found = (_registering(vendor, annotations, allocatable, zone) for vendor in vendors if vendor.node.register)
    return [each for each in found if each]


def _registering(
    vendor: Vendor, annotations: Mapping[str, Any], allocatable: Mapping[str, Any], zone: tzinfo | None
) -> Registering | None:
    keys, count = vendor.node, whole(allocatable.get(vendor.resources.count)) or 0
    shaken = annotations.get(keys.handshake) if keys.handshake else None
    if count <= 0 and shaken is None and keys.register not in annotations:
        return None
    handshake = read_handshake(shaken, zone) if isinstance(shaken, str) else None
    return Registering(vendor.word, keys.register, bool(annotations.get(keys.register)), handshake, count)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


@dataclass(frozen=True, slots=True)
class Problem:
    code: str
    vendor: str
    message: str
    handshake: Handshake | None = None
    allocatable: int | None = None


def problems_of(said: Sequence[Registering], cause: str, now: datetime, limit: timedelta) -> Iterator[Problem]:
    """What is wrong with a node now. `cause`: why its registration can't be used, where that is so.

    `limit`: the age from which a handshake is too old; zero: none ever is.
    """
    for each in said:
        if not each.is_there:
            yield Problem(
                REGISTRATION_MISSING,
                each.vendor,
                f"annotation {each.register} is missing or empty, {each.allocatable} devices are allocatable: "
                "is the device plugin running on this node?",
                allocatable=each.allocatable,
            )
        if each.handshake:
            yield from _of_handshake(each, each.handshake, now, limit)
    if cause:
        yield Problem(REGISTRATION_UNUSABLE, "", cause)


def _of_handshake(said: Registering, handshake: Handshake, now: datetime, limit: timedelta) -> Iterator[Problem]:
    if handshake.at is None:
        text = f"the handshake {handshake.text[:100]!r} holds no time that could be read"
        yield Problem(HANDSHAKE_UNREADABLE, said.vendor, text, handshake, said.allocatable)
    elif limit and now - handshake.at > limit:
        text = _too_old(said, handshake, now - handshake.at, limit)
        yield Problem(HANDSHAKE_TOO_OLD, said.vendor, text, handshake, said.allocatable)


def _too_old(said: Registering, handshake: Handshake, age: timedelta, limit: timedelta) -> str:
    text = (
        f"the handshake {handshake.text[:100]!r} is {age.total_seconds():.0f} s old "
        f"(limit {limit.total_seconds():.0f} s): "
    )
    if handshake.is_question and said.allocatable:
        return text + (
            f"{said.allocatable} devices are allocatable, so they go on being used; "
            "device plugins since v2.8 leave the question unanswered"
        )
    return text + (
        "the device plugin does not answer" if handshake.is_question else "the device plugin has stopped reporting"
    )


def oldest_handshake(said: Sequence[Registering]) -> datetime | None:
    """Of the handshakes of a node; None where none is readable."""
    return min((each.handshake.at for each in said if each.handshake and each.handshake.at), default=None)
