"""The broker's clock as the witness of this machine's: a time is judged only while both agree.

A process whose own clock is wrong would take good records for impossible ones. It waits instead, as for a store that is
away: nothing is lost, and it continues as soon as a time service has mended the clock.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from runtime.backoff import Backoff
from runtime.kafka.record import RecordPosition
from schemas.codec.records import EncodedRecord
from schemas.topics import CLOCK

MAX_DIFFERENCE_SECONDS: Final = 60.0
"""Tolerated difference of the two clocks; a time service keeps them within a fraction of a second."""
PROBE_SECONDS: Final = 60.0
"""Pause between two probes. The steady clock shows what was done to this machine's clock in between."""
_SLOW_SECONDS: Final = 10.0
"""A probe that took longer was sent more than once, and shows nothing."""


class ProbeSender(Protocol):
    """Sender of records that returns their positions with Kafka's time."""

    async def send(self, outgoing: Sequence[EncodedRecord], /) -> Sequence[RecordPosition]: ...


async def trust_own_clock() -> None:
    """Take this machine's clock for right: for callers that have no broker as a witness."""


def read_steady_seconds() -> float:
    """Read a clock that nobody sets, and that also counts the time in which the machine is suspended."""
    # Linux only; elsewhere a suspended machine is noticed by the next probe.
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class BrokerClock:
    """Witness of this machine's clock, by the timestamps that the broker gives to probes.

    ``read_own`` returns seconds since 1970 by this machine's clock, ``read_steady`` seconds that never jump.
    """

    def __init__(
        self,
        sender: ProbeSender,
        longest_pause_seconds: float = 10.0,
        *,
        read_own: Callable[[], float] = time.time,
        read_steady: Callable[[], float] = read_steady_seconds,
    ) -> None:
        self._sender = sender
        self._read_own, self._read_steady = read_own, read_steady
        self._start: float | None = None
        """The broker's time when the steady clock was at 0; None before the first probe."""
        self.waiting = Backoff("the right time", longest_pause_seconds)
        """Pauses while the clocks differ."""

    @property
    def ahead_seconds(self) -> float:
        """Seconds that this machine's clock is ahead of the broker's; negative behind it, 0 before the first probe."""
        return 0.0 if self._start is None else self._read_own() - self._read_steady() - self._start

    def describe_difference(self) -> str:
        """Describe a difference of the clocks that is too large, with what to do; empty where they agree."""
        ahead = self.ahead_seconds
        if abs(ahead) <= MAX_DIFFERENCE_SECONDS:
            return ""
        direction = "ahead of" if ahead > 0 else "behind"
        return (
            f"this machine's clock is {abs(ahead):.0f} s {direction} the Kafka broker's: "
            "run a time service (chrony, ntpd) on both"
        )

    async def follow(self) -> None:
        """Probe the broker's clock until cancelled."""
        while True:
            await self.probe()
            await asyncio.sleep(PROBE_SECONDS)

    async def probe(self) -> None:
        """Compare the steady clock with the time that the broker gives to a record."""
        before = self._read_steady()
        positions = await self._sender.send([EncodedRecord(b"probe", b"", [], CLOCK.name)])
        after = self._read_steady()
        if after - before <= _SLOW_SECONDS:
            self._start = positions[0].timestamp / 1000 - (before + after) / 2

    async def wait_until_right(self) -> None:
        """Return while the clocks agree; otherwise once they agree again. Before the first probe: after it."""
        if self._start is None:
            await self.probe()
        while difference := self.describe_difference():
            await self.waiting.wait_after_failure(difference)
            # The broker's clock may have been the wrong one.
            await self.probe()
        self.waiting.note_success()
