"""Problems of a node's registration: each with the sentence that names its cause."""

from datetime import UTC, datetime, timedelta

import pytest

from engine.hami.handshake import parse_handshake
from engine.hami.node_checks import (
    HANDSHAKE_TOO_OLD,
    HANDSHAKE_UNREADABLE,
    REGISTRATION_MISSING,
    REGISTRATION_UNUSABLE,
    VendorRegistration,
    check_registrations,
    find_oldest_handshake,
    list_vendor_registrations,
)
from engine.hami.vendors import NVIDIA

NOW = datetime(2026, 11, 21, 3, 0, 0, tzinfo=UTC)
LIMIT = timedelta(minutes=5)


def a_registration(
    text: str | None, age: timedelta | None, allocatable: int = 8, *, is_present: bool = True
) -> VendorRegistration:
    return VendorRegistration(
        vendor="NVIDIA",
        register="hami.io/node-nvidia-register",
        is_present=is_present,
        handshake=None if text is None else parse_handshake(text),
        handshake_at=None if age is None else NOW - age,
        allocatable=allocatable,
    )


AN_HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("text", "allocatable", "message"),
    [
        (
            "Reported 2026-11-21 02:00:00 +0000 UTC",
            8,
            (
                "the handshake 'Reported 2026-11-21 02:00:00 +0000 UTC' is 3600 s old (limit 300 s): "
                "the device plugin has stopped reporting"
            ),
        ),
        (
            "Requesting_2026-11-21 02:00:00",
            0,
            (
                "the handshake 'Requesting_2026-11-21 02:00:00' is 3600 s old (limit 300 s): "
                "the device plugin does not answer"
            ),
        ),
        (
            "Requesting_2026-11-21 02:00:00",
            8,
            (
                "the handshake 'Requesting_2026-11-21 02:00:00' is 3600 s old (limit 300 s): "
                "8 slots of devices are allocatable, so they stay in use; device plugins since v2.8 leave the request "
                "unanswered"
            ),
        ),
        (
            "Deleted_2026-11-21 02:00:00",
            8,
            (
                "the handshake 'Deleted_2026-11-21 02:00:00' is 3600 s old (limit 300 s): "
                "HAMi's scheduler has given the node up; HAMi before v2.9 leaves it out for good"
            ),
        ),
    ],
)
def test_an_old_handshake_is_explained_by_who_wrote_it_last(text: str, allocatable: int, message: str) -> None:
    (problem,) = check_registrations([a_registration(text, AN_HOUR, allocatable)], "", NOW, LIMIT)
    assert (problem.code, problem.vendor, problem.message) == (HANDSHAKE_TOO_OLD, "NVIDIA", message)
    assert (problem.handshake_at, problem.allocatable) == (NOW - AN_HOUR, allocatable)


@pytest.mark.parametrize(
    ("age", "limit", "count"),
    [
        (LIMIT, LIMIT, 0),
        (LIMIT + timedelta(seconds=1), LIMIT, 1),
        # Zero switches the check off.
        (AN_HOUR, timedelta(), 0),
    ],
)
def test_a_handshake_is_too_old_only_after_the_limit(age: timedelta, limit: timedelta, count: int) -> None:
    registration = a_registration("Reported 2026-11-21 02:00:00 +0000 UTC", age)
    assert len(list(check_registrations([registration], "", NOW, limit))) == count


def test_a_handshake_without_a_time_is_unreadable_and_quoted_in_part() -> None:
    (problem,) = check_registrations([a_registration("x" * 150, None)], "", NOW, LIMIT)
    assert problem.code == HANDSHAKE_UNREADABLE
    assert problem.message == f"no time can be read in the handshake '{'x' * 100}'"


def test_a_missing_annotation_and_an_unusable_registration_are_two_problems() -> None:
    missing = a_registration(None, None, is_present=False)
    first, second = check_registrations([missing], "device 0 is null", NOW, LIMIT)
    assert (first.code, first.allocatable) == (REGISTRATION_MISSING, 8)
    assert first.message == (
        "annotation hami.io/node-nvidia-register is missing or empty, 8 slots of devices are allocatable: "
        "is the device plugin running on this node?"
    )
    assert (second.code, second.vendor, second.message) == (REGISTRATION_UNUSABLE, "", "device 0 is null")


def test_the_oldest_handshake_is_the_earliest_that_can_be_read() -> None:
    minute, hour = (a_registration("Reported", age) for age in (timedelta(minutes=1), AN_HOUR))
    assert find_oldest_handshake([minute, hour, a_registration("?", None)]) == NOW - AN_HOUR
    assert find_oldest_handshake([a_registration("?", None)]) is None


@pytest.mark.parametrize(
    ("allocatable", "annotations", "is_listed"),
    [
        ("0", {}, False),
        ("1", {}, True),
        ("8", {}, True),
        # A handshake or a registration shows that the node has had devices; an empty registration is not one.
        ("0", {NVIDIA.node.handshake: "Requesting_2026-11-21 02:00:00"}, True),
        ("0", {NVIDIA.node.register: ""}, True),
        ("0", {"hami.io/other": "x"}, False),
    ],
)
def test_a_node_is_expected_to_register_what_it_offers(
    allocatable: str, annotations: dict[str, str], is_listed: bool
) -> None:
    node = {
        "metadata": {"annotations": annotations},
        "status": {"allocatable": {NVIDIA.resources.count: allocatable}},
    }
    registrations = list_vendor_registrations(node, [NVIDIA], UTC)
    assert [registration.vendor for registration in registrations] == ([NVIDIA.word] if is_listed else [])
    assert not any(registration.is_present for registration in registrations)
