"""Free TCP ports on 127.0.0.1.

Ports come from below the range that the kernel gives to outgoing connections: otherwise a server that is killed and
started again would sometimes find that a connection of another program has its port.
"""

import errno
import random
import socket
from collections.abc import Iterable

from dev.embedded.errors import EmbeddedError

KUBERNETES_PORTS = range(16_000, 19_000)
KAFKA_PORTS = range(19_000, 30_000)
# OpenSearchRunner gives up above 9299.
OPENSEARCH_PORTS = range(9_201, 9_300)


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
    """Find a free port among the candidates, at random, so that two processes at the same time rarely get the same."""
    left = [port for port in candidates if port not in set(besides)]
    # In order, two processes that start together would both choose the first free port.
    random.shuffle(left)
    for port in left:
        if is_free(port):
            return port
    first, last = candidates[0], candidates[-1]
    raise EmbeddedError(f"every port from {first} to {last} on 127.0.0.1 is taken: stop what listens there")
