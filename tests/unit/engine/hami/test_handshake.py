"""The handshake annotation, in every form in which it was written."""

from datetime import UTC, datetime, timedelta, timezone

import hypothesis.strategies as st
import pytest
from hypothesis import given

from engine.hami.handshake import is_given_up, parse_handshake

CHINA = timezone(timedelta(hours=8))


@pytest.mark.parametrize(
    ("text", "is_request", "written_at"),
    [
        ("Requesting_2026-01-02 15:04:05", True, datetime(2026, 1, 2, 7, 4, 5, tzinfo=UTC)),
        ("Requesting_2024.01.10 04:30:04", True, datetime(2024, 1, 9, 20, 30, 4, tzinfo=UTC)),
        ("Deleted_2024.01.10 04:30:04", False, datetime(2024, 1, 9, 20, 30, 4, tzinfo=UTC)),
        ("Reported 2026-11-21 02:59:40 +0000 UTC", False, datetime(2026, 11, 21, 2, 59, 40, tzinfo=UTC)),
        (
            "Reported 2024-01-23 04:30:04.434037031 +0800 CST m=+1104711.777756895",
            False,
            datetime(2024, 1, 22, 20, 30, 4, tzinfo=UTC),
        ),
        ("Reported_2026-01-02T15:04:05Z", False, datetime(2026, 1, 2, 15, 4, 5, tzinfo=UTC)),
        ("1767225600", False, datetime(2026, 1, 1, tzinfo=UTC)),
        ("Requesting_soon", True, None),
        ("Requesting_2026-02-31 00:00:00", True, None),
        ("Requesting_0001-01-01 00:00:00", True, None),
        ("", False, None),
    ],
)
def test_every_spelling_of_a_handshake_is_read(text: str, is_request: bool, written_at: datetime | None) -> None:
    handshake = parse_handshake(text)
    assert (handshake.is_request, handshake.to_utc(CHINA)) == (is_request, written_at)


@given(st.text(max_size=60) | st.from_regex(r"(Requesting_|Reported )?\d{1,12}[-.]\d\d[-.]\d\d \d\d:\d\d:\d\d.*"))
def test_no_handshake_is_too_strange(text: str) -> None:
    parse_handshake(text).to_utc(UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Requesting_2026-11-21 02:59:00", True),
        ("Requesting_2026-11-21 02:59:01", False),
        # HAMi takes times in other layouts for unreadable, and keeps the node.
        ("Requesting_2026.11.21 02:59:00", False),
        ("Requesting_2026-11-21 02:59:00 +0000", False),
        ("Requesting_2026-11-21_02:59:00", False),
        ("Requesting_soon", False),
        ("Reported 2026-11-21 02:00:00 +0000 UTC", False),
    ],
)
def test_a_request_that_is_open_for_a_minute_gives_a_node_without_devices_up(text: str, expected: bool) -> None:
    now = datetime(2026, 11, 21, 3, 0, 0)  # noqa: DTZ001 - the scheduler's local time, as the request has it
    assert is_given_up(parse_handshake(text), 0, now) is expected
    assert not is_given_up(parse_handshake(text), 1, now)
    assert not is_given_up(parse_handshake(text), 0, None)
