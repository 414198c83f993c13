"""A small HTTP load: a few connections, each with one request after the other.

One thread with plain sockets, and no more Python for a request than one turn of a loop: a client that costs as much as
the server that it asks would measure itself. ``busy`` says how far it was from that.
"""

import select
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from typing import Final
from urllib.parse import urlsplit

import numpy as np

_BLANK: Final = b"\r\n\r\n"
_MAX_RECEIVED: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Load:
    requests: int
    seconds: float
    latencies: list[float]
    busy: float
    """The share of a core that the client took."""

    @property
    def rate(self) -> float:
        return self.requests / self.seconds

    def compute_milliseconds(self, percentile: float) -> float:
        return float(np.percentile(self.latencies, percentile)) * 1000


@dataclass(slots=True)
class _Connection:
    socket: socket.socket
    request: bytes
    latencies: list[float]
    missing: int = 0
    """Bytes of the answer that have not arrived, once its head has."""
    head: bytes = b""
    """Bytes of an incomplete head."""
    began: float = field(default_factory=time.perf_counter)

    def send(self) -> None:
        self.began = time.perf_counter()
        self.socket.send(self.request)

    def take_answer(self) -> bool:
        """Take what has arrived. Raises ``RuntimeError`` for any answer but 200."""
        arrived = self.socket.recv(_MAX_RECEIVED)
        if not arrived:
            raise RuntimeError("the server hung up within an answer")
        if self.missing:
            self.missing -= len(arrived)
        else:
            self.head += arrived
            if _BLANK not in self.head:
                return False
            self.missing, self.head = _count_missing(self.head), b""
        if self.missing:
            return False
        self.latencies.append(time.perf_counter() - self.began)
        return True


def run(
    url: str,
    requests: int,
    connections: int = 8,
    headers: Mapping[str, str] | None = None,
    replicas: Sequence[str] = (),
) -> Load:
    """Send ``requests`` GET requests in total; raises ``RuntimeError`` for any answer but 200.

    ``replicas``: the same URL of other processes, among which the connections are divided.
    """
    parts = urlsplit(url)
    addresses = [(endpoint.hostname, endpoint.port) for endpoint in map(urlsplit, (url, *replicas))]
    path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    fields = "".join(f"{name}: {value}\r\n" for name, value in {"Host": parts.netloc, **(headers or {})}.items())
    request, latencies = f"GET {path} HTTP/1.1\r\n{fields}\r\n".encode(), list[float]()
    opened = {}
    for address in islice(cycle(addresses), connections):
        connection = _Connection(socket.create_connection(address), request, latencies)
        connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        opened[connection.socket.fileno()] = connection
    with select.epoll() as readable:
        for number in opened:
            readable.register(number, select.EPOLLIN)
        began, cpu = time.perf_counter(), time.process_time()
        _ask(readable, opened, requests)
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    for connection in opened.values():
        connection.socket.close()
    return Load(len(latencies), seconds, latencies, cpu / seconds)


def _ask(readable: select.epoll, opened: Mapping[int, _Connection], requests: int) -> None:
    # One request after the other on each connection: latency then includes no waiting in the client's own queue.
    unsent = requests // len(opened) * len(opened)
    awaited = 0
    for connection in opened.values():
        connection.send()
        unsent, awaited = unsent - 1, awaited + 1
    while awaited:
        for number, _ in readable.poll():
            if opened[number].take_answer():
                awaited -= 1
                if unsent:
                    opened[number].send()
                    unsent, awaited = unsent - 1, awaited + 1


def _count_missing(received: bytes) -> int:
    """Count the bytes of the answer's body that have not arrived. Raises ``RuntimeError`` for any answer but 200."""
    head, _, body = received.partition(_BLANK)
    lines = head.lower().split(b"\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"the server answered {head.splitlines()[0].decode(errors='replace')}")
    length = next(int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length"))
    return length - len(body)
