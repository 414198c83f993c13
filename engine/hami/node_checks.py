"""Problems in the registrations of a node's devices, as findings for people. Decisions do not depend on them. Pure.

A node lists its devices in one annotation and keeps a handshake with the scheduler in another. Only nodes that should
have devices are checked: nodes with allocatable ones, or with one of these annotations.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from engine.hami.go_values import to_mapping
from engine.hami.handshake import Handshake, count_allocatable, read_handshake

if TYPE_CHECKING:
    from engine.hami.vendors import Vendor

HANDSHAKE_TOO_OLD: Final = "HandshakeTooOld"
HANDSHAKE_UNREADABLE: Final = "HandshakeUnreadable"
REGISTRATION_MISSING: Final = "RegistrationMissing"
REGISTRATION_UNUSABLE: Final = "RegistrationUnusable"

HANDSHAKE_DELETED: Final = "HandshakeDeleted"
"""Obstacle of an old handshake that HAMi's scheduler itself has set to ``Deleted_…``; published as too old."""

PROBLEMS: Final = (HANDSHAKE_TOO_OLD, HANDSHAKE_UNREADABLE, REGISTRATION_MISSING, REGISTRATION_UNUSABLE)


class VendorRegistration(NamedTuple):
    """Registration of one vendor's devices by a node."""

    vendor: str
    register: str
    """Name of the annotation."""
    is_present: bool
    """The annotation exists and is not empty."""
    handshake: Handshake | None
    handshake_at: datetime | None
    """Time of the handshake in UTC; None where no time can be read."""
    allocatable: int


def list_vendor_registrations(
    node: Mapping[str, Any], vendors: "Sequence[Vendor]", zone: tzinfo | None = None
) -> list[VendorRegistration]:
    """List the registrations of all vendors whose devices the node should have.

    zone: of handshakes without one; None: this machine's.
    """
    annotations = to_mapping(to_mapping(node.get("metadata")).get("annotations"))
    registrations = (_read_registration(vendor, node, annotations, zone) for vendor in vendors if vendor.node.register)
    return [registration for registration in registrations if registration]


def _read_registration(
    vendor: "Vendor", node: Mapping[str, Any], annotations: Mapping[str, Any], zone: tzinfo | None
) -> VendorRegistration | None:
    keys, allocatable = vendor.node, count_allocatable(node, vendor.resources.count)
    has_handshake = bool(keys.handshake) and annotations.get(keys.handshake) is not None
    if allocatable <= 0 and not has_handshake and keys.register not in annotations:
        return None
    handshake = read_handshake(annotations, keys.handshake)
    written_at = handshake.to_utc(zone) if handshake else None
    is_present = bool(annotations.get(keys.register))
    return VendorRegistration(vendor.word, keys.register, is_present, handshake, written_at, allocatable)


class RegistrationProblem(NamedTuple):
    code: str
    vendor: str
    message: str
    handshake: Handshake | None = None
    handshake_at: datetime | None = None
    allocatable: int | None = None


def check_registrations(
    registrations: Sequence[VendorRegistration], cause: str, now: datetime, limit: timedelta
) -> Iterator[RegistrationProblem]:
    """Yield the problems that a node has now.

    cause: why its registration can't be used; empty if it can. limit: a handshake older than this is too old; zero
    switches the check off.
    """
    for registration in registrations:
        if not registration.is_present:
            yield RegistrationProblem(
                REGISTRATION_MISSING,
                registration.vendor,
                f"annotation {registration.register} is missing or empty, {registration.allocatable} slots of "
                "devices are allocatable: is the device plugin running on this node?",
                allocatable=registration.allocatable,
            )
        if registration.handshake:
            yield from _check_handshake(registration, registration.handshake, now, limit)
    if cause:
        yield RegistrationProblem(REGISTRATION_UNUSABLE, "", cause)


def _check_handshake(
    registration: VendorRegistration, handshake: Handshake, now: datetime, limit: timedelta
) -> Iterator[RegistrationProblem]:
    written_at = registration.handshake_at
    if written_at is None:
        code, message = HANDSHAKE_UNREADABLE, f"no time can be read in the handshake {handshake.text[:100]!r}"
    elif limit and now - written_at > limit:
        code, message = HANDSHAKE_TOO_OLD, _describe_age(registration, handshake, now - written_at, limit)
    else:
        return
    yield RegistrationProblem(code, registration.vendor, message, handshake, written_at, registration.allocatable)


def _describe_age(registration: VendorRegistration, handshake: Handshake, age: timedelta, limit: timedelta) -> str:
    text = (
        f"the handshake {handshake.text[:100]!r} is {age.total_seconds():.0f} s old "
        f"(limit {limit.total_seconds():.0f} s): "
    )
    if is_deleted(handshake.text):
        return text + "HAMi's scheduler has given the node up; HAMi before v2.9 leaves it out for good"
    # Device plugins up to v2.7 report every 30 s; since v2.8 only the scheduler's requests are here.
    if not handshake.is_request:
        return text + "the device plugin has stopped reporting"
    if not registration.allocatable:
        return text + "the device plugin does not answer"
    return text + (
        f"{registration.allocatable} slots of devices are allocatable, so they stay in use; "
        "device plugins since v2.8 leave the request unanswered"
    )


def is_deleted(handshake: str) -> bool:
    """Tell whether HAMi's scheduler has written into the handshake that it gave the node up."""
    return handshake.startswith("Deleted")


def find_oldest_handshake(registrations: Sequence[VendorRegistration]) -> datetime | None:
    """Find the time of the node's oldest handshake; None where none can be read."""
    return min((registration.handshake_at for registration in registrations if registration.handshake_at), default=None)
