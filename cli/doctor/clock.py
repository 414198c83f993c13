"""Clocks: attempts and reports of them are matched by time. Pure."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from cli.doctor.findings import Fault

TOLERATED: Final = timedelta(seconds=2)
"""Tolerated difference: the compared times have a resolution of a second."""


def check_clock(subject: str, theirs: datetime, sent_at: datetime, answered_at: datetime) -> Iterator[Fault]:
    """Check a server's clock: ``theirs`` was read between the two other times, which are ours."""
    off = max(sent_at - theirs, theirs - answered_at)
    if off > TOLERATED:
        problem = f"its clock and that of this machine differ by {off.total_seconds():.0f} s"
        yield Fault("clock", subject, problem, "Run a time service (chrony, ntpd) on both.")
