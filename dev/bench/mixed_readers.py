"""Readers of the API side by side, each with one request of a random kind after the other."""

import asyncio
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import numpy as np


@dataclass(frozen=True, slots=True)
class Kind:
    """One of the kinds of requests."""

    share: float
    path: Callable[[random.Random], str]
    expected: Sequence[int] = (200,)
    """The statuses that are no errors."""


@dataclass(slots=True)
class Tally:
    """Results of the requests of one kind."""

    latencies: list[float] = field(default_factory=list)
    """Seconds."""
    statuses: dict[int, int] = field(default_factory=dict)

    def compute_milliseconds(self, percentile: float) -> float:
        return float(np.percentile(self.latencies, percentile)) * 1000 if self.latencies else 0.0


async def read_mixed(url: str, kinds: Mapping[str, Kind], readers: int, seconds: float) -> dict[str, Tally]:
    """Read with ``readers`` for so many seconds; return the tallies by the name of the kind. Requests under way at the
    end are completed."""
    tallies = {name: Tally() for name in kinds}
    until = time.perf_counter() + seconds
    await asyncio.gather(*(_read_until(url, kinds, tallies, random.Random(seed), until) for seed in range(readers)))
    return tallies


async def _read_until(
    url: str, kinds: Mapping[str, Kind], tallies: Mapping[str, Tally], chance: random.Random, until: float
) -> None:
    parts = urlsplit(url)
    names, weights = list(kinds), [kind.share for kind in kinds.values()]
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    while (began := time.perf_counter()) < until:
        (name,) = chance.choices(names, weights)
        writer.write(f"GET {kinds[name].path(chance)} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode())
        status = await read_status(reader)
        tally = tallies[name]
        tally.latencies.append(time.perf_counter() - began)
        tally.statuses[status] = tally.statuses.get(status, 0) + 1
    writer.close()
    await writer.wait_closed()


async def read_status(reader: asyncio.StreamReader) -> int:
    """Read an answer to its end and return its status."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    lines = head.split(b"\r\n")
    length = next(int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length"))
    await reader.readexactly(length)
    return int(lines[0].split()[1])
