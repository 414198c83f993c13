"""A small HTTP load: a few connections, each with one request after the other.

It uses plain sockets, because the server is to be measured and a full client would use most of the two cores.
"""

import asyncio
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

import numpy as np


@dataclass(frozen=True, slots=True)
class Load:
    requests: int
    seconds: float
    latencies: list[float]

    def milliseconds(self, percentile: float) -> float:
        return float(np.percentile(self.latencies, percentile)) * 1000


def run(url: str, requests: int, connections: int = 8) -> Load:
    """Send ``requests`` GET requests in total; raises ``RuntimeError`` for any answer but 200."""
    return asyncio.run(_run(url, requests, connections))


async def _run(url: str, requests: int, connections: int) -> Load:
    started = time.perf_counter()
    # One request after the other per connection: latency then includes no waiting in the client's own queue.
    share = requests // connections
    latencies = await asyncio.gather(*(_connection(url, share) for _ in range(connections)))
    seconds = time.perf_counter() - started
    return Load(share * connections, seconds, [latency for connection in latencies for latency in connection])


async def _connection(url: str, requests: int) -> list[float]:
    parts = urlsplit(url)
    path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    request = f"GET {path} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode()
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    latencies = []
    for _ in range(requests):
        began = time.perf_counter()
        writer.write(request)
        await _read_answer(reader)
        latencies.append(time.perf_counter() - began)
    writer.close()
    await writer.wait_closed()
    return latencies


async def _read_answer(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"the server answered {head.splitlines()[0].decode(errors='replace')}")
    lines = head.lower().split(b"\r\n")
    length = next(int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length"))
    return await reader.readexactly(length)
