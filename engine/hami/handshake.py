"""Handshake annotation of a node (`hami.io/node-handshake`), in every form in which HAMi has written it.

    Requesting_2006-01-02 15:04:05    the scheduler's request, in its local time; since v2.8 device plugins never answer
    Requesting_2024.01.10 04:30:04    as HAMi's protocol document has it, also with Deleted_
    Reported 2024-01-23 04:30:04.434037031 +0000 UTC m=+1104711.7    the answer of device plugins up to v2.7
    1767225600    seconds since 1970, as troubleshooting guides take it to be

The scheduler's decisions follow HAMi, which understands the time of the first form only (`device.CheckHealth`).
Findings for people use any time that the text holds.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any, Final, NamedTuple

from engine.hami.quantities import parse_whole

ANSWER_LIMIT_SECONDS: Final = 60
"""Age of an open request after which HAMi gives up a node without allocatable devices."""

_REQUEST: Final = "Requesting"
_TIME: Final = re.compile(
    r"(\d{4})[-.](\d\d)[-.](\d\d)[ T](\d\d):(\d\d):(\d\d)(?:[.,]\d+)?(?: ?(Z|[+-]\d\d:?\d\d))?", re.ASCII
)
_HAMI_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", re.ASCII)
_UNIX: Final = re.compile(r"\d{9,10}", re.ASCII)


class Handshake(NamedTuple):
    text: str
    is_request: bool
    """The scheduler asked and nothing has answered yet."""
    written: datetime | None
    """Time in the text, without a zone where the text has none; None where it holds no time."""
    has_hami_layout: bool
    """HAMi itself understands the time."""

    def to_utc(self, zone: tzinfo | None = None) -> datetime | None:
        """Convert the written time to UTC. zone: of a time that was written without a zone; None: this machine's."""
        if self.written is None:
            return None
        try:
            return (self.written if self.written.tzinfo else self.written.replace(tzinfo=zone)).astimezone(UTC)
        except (ValueError, OverflowError):
            return None


def parse_handshake(text: str) -> Handshake:
    """Parse any text; a handshake without a readable time has `written` None."""
    # ``CheckHealth`` splits at the first underscore and parses the rest with exactly one layout.
    before, _, time = text.partition("_")
    has_hami_layout = _REQUEST in before and _HAMI_TIME.fullmatch(time) is not None
    return Handshake(text, _REQUEST in text, _parse_time(text), has_hami_layout)


def _parse_time(text: str) -> datetime | None:
    try:
        if _UNIX.fullmatch(text):
            # Unix seconds have no zone to guess.
            return datetime.fromtimestamp(int(text), UTC)
        # Searched, not matched: a ``Reported`` time has Go's monotonic clock behind it (``m=+1104711.7``).
        match = _TIME.search(text)
        return datetime(*map(int, match.groups()[:6]), tzinfo=_parse_zone(match[7])) if match else None  # type: ignore[misc, arg-type]
    except (ValueError, OverflowError):
        return None


def _parse_zone(text: str | None) -> tzinfo | None:
    if not text:
        return None
    return UTC if text == "Z" else datetime.strptime(text, "%z").tzinfo


def is_given_up(handshake: Handshake | None, allocatable: int, now: datetime | None) -> bool:
    """Tell whether HAMi drops the node's devices: its request is a minute old, and nothing is allocatable.

    now: the scheduler's local time without a zone, as the request is written; None: no request is ever too old.
    """
    # Device plugins since v2.8 never answer: only nothing allocatable shows that the plugin is really gone.
    if handshake is None or not handshake.is_request or now is None or allocatable:
        return False
    # HAMi takes a node whose time it can't parse for healthy.
    if not handshake.has_hami_layout or handshake.written is None:
        return False
    return (now - handshake.written).total_seconds() >= ANSWER_LIMIT_SECONDS


def read_handshake(annotations: Mapping[str, Any], name: str) -> Handshake | None:
    """Read the handshake under the annotation `name`; None where there is none."""
    text = annotations.get(name) if name else None
    return parse_handshake(text) if isinstance(text, str) else None


def count_allocatable(node: Mapping[str, Any], resource: str) -> int:
    """Count `status.allocatable[resource]` of a Node object; 0 where it is absent or not a whole number."""
    # Written by the kubelet from what the device plugin reports; it drops to 0 when the plugin goes away.
    return _count(node, "allocatable", resource)


def count_capacity(node: Mapping[str, Any], resource: str) -> int:
    """Count `status.capacity[resource]` of a Node object; 0 where it is absent or not a whole number."""
    return _count(node, "capacity", resource)


def _count(node: Mapping[str, Any], field: str, resource: str) -> int:
    status = node.get("status")
    amounts = status.get(field) if isinstance(status, (dict, Mapping)) else None
    return parse_whole(amounts.get(resource)) or 0 if isinstance(amounts, (dict, Mapping)) else 0
