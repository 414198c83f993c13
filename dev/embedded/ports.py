"""Free TCP ports on 127.0.0.1.

Ports come from below the range that the kernel gives to outgoing connections: otherwise a server that is killed and
started again would sometimes find that a connection of another program has its port.
"""

import errno
import random
import socket
from collections.abc import Iterable
from typing import Final

from dev.embedded.errors import EmbeddedError

SERVICE_PORTS = range(10_000, 16_000)
KUBERNETES_PORTS = range(16_000, 19_000)
KAFKA_PORTS = range(19_000, 30_000)
# OpenSearchRunner gives up above 9299.
OPENSEARCH_PORTS = range(9_201, 9_300)

_RESERVATIONS: Final[dict[int, int]] = {}
"""The ports that this process was given, each with the descriptor of a UDP socket of that number, which holds it."""


def is_free(port: int) -> bool:
    """Tell whether a server could listen on 127.0.0.1 at this port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do: closing connections of the previous server do not make the port taken.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            if error.errno not in {errno.EADDRINUSE, errno.EACCES}:
                raise
            return False
    return True


def is_listening(port: int) -> bool:
    """Tell whether a server accepts connections on 127.0.0.1 at this port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # A paused server (SIGSTOP) accepts nothing once its queue is full.
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def find_free_port(candidates: range, besides: Iterable[int] = ()) -> int:
    """Find a free port among the candidates, and reserve it until this process ends.

    No other process of this user is given it meanwhile: a server that is stopped and started again finds its port free.
    Where every other port is taken, a process is given one that it has had before and that is free again.
    """
    left = [port for port in candidates if port not in set(besides)]
    # In order, two processes that start together would both ask for the first free port.
    random.shuffle(left)
    left.sort(key=_RESERVATIONS.__contains__)
    for port in left:
        if is_free(port) and _reserve(port):
            return port
    first, last = candidates[0], candidates[-1]
    raise EmbeddedError(f"every port from {first} to {last} on 127.0.0.1 is taken: stop what listens there")


def _reserve(port: int) -> bool:
    """Reserve a port for this process; returns whether no other one has it."""
    if port in _RESERVATIONS:
        return True
    reservation = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        reservation.bind(("127.0.0.1", port))
    except OSError as error:
        reservation.close()
        if error.errno not in {errno.EADDRINUSE, errno.EACCES}:
            raise
        return False
    # Nobody closes it: the system does at the end of the process.
    _RESERVATIONS[port] = reservation.detach()
    return True
