"""Memory that a session gave to pods, compared with the next sessions.

KAI counts memory again in every session. After a pod was placed, a later session has to show its memory as allocated,
unless the pod was deleted or its bind failed in between; the log does not show these. Within a minute of the placement
they are rare, so only that long is compared.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from ingest.readers.kai.attempt import KaiAttempt, ReturnedMemory

COMPARED_FOR: Final = timedelta(minutes=1)
MAX_DEVICES: Final = 20_000
"""Devices whose latest placement is remembered."""


@dataclass(slots=True)
class PlacedMemory:
    """The memory that a device has to have allocated after a placement."""

    session: str
    """The session that placed the pod; its own attempts see the device change as it goes."""
    at: datetime
    expected_mib: int
    line: str


@dataclass(slots=True)
class PlacedMemories:
    devices: dict[str, PlacedMemory] = field(default_factory=dict)
    """By ``node/group``, oldest first."""

    def compare(self, attempt: KaiAttempt) -> None:
        """Note on the attempt which devices have less allocated than an earlier session left there."""
        session = _name_session(attempt)
        for node, judged in sorted(attempt.select_nodes().items()):
            for group, device in sorted(judged.devices.items()):
                placed = self.devices.get(key := f"{node}/{group}")
                if placed is None or placed.session == session or device.allocated_mib is None:
                    continue
                # Once: sessions after this one start from what it shows.
                del self.devices[key]
                is_soon = attempt.started_at - placed.at <= COMPARED_FOR
                if is_soon and device.allocated_mib < placed.expected_mib:
                    lines = [line for line in (placed.line, device.line) if line]
                    attempt.returned.append(
                        ReturnedMemory(node, group, placed.expected_mib, device.allocated_mib, device.total_mib, lines)
                    )

    def remember(self, attempt: KaiAttempt) -> None:
        """Remember what the attempt's placement leaves allocated, where the log has the numbers."""
        # A pipelined pod holds nothing yet.
        if not attempt.is_placed or attempt.is_pipelined or attempt.memory_mib is None:
            return
        judged = attempt.select_nodes().get(attempt.chosen)
        for group in attempt.groups:
            before = attempt.taken.get(group) or (judged.devices.get(group) if judged else None)
            if before and before.allocated_mib is not None:
                expected = before.allocated_mib + attempt.memory_mib
                self.devices.pop(key := f"{attempt.chosen}/{group}", None)
                self.devices[key] = PlacedMemory(
                    _name_session(attempt), attempt.last_line_at, expected, attempt.taking_line
                )
        while len(self.devices) > MAX_DEVICES:
            del self.devices[next(iter(self.devices))]


def _name_session(attempt: KaiAttempt) -> str:
    """Name the session; lines of the patch may name none: then every attempt has its own."""
    return attempt.session or f"line {attempt.ordinal}"
