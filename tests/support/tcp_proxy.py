"""A TCP proxy that a test may cut: what stands between a client and the API server, or plays a Service.

Bytes pass through as they are, so TLS goes from end to end.
"""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Self


class TcpProxy:
    """Listens on 127.0.0.1 at ``port``; ``target`` says where the next connection goes: a port, or None for nowhere."""

    def __init__(self, target: Callable[[], int | None]) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port: int = self._listener.getsockname()[1]
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._accepts = True
        self._flows = threading.Event()
        self._flows.set()
        self.cuts = 0

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        # close() alone does not wake up who waits in accept().
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.release()
        self.cut()

    def cut(self) -> None:
        """End every connection that is open now."""
        with self._lock:
            self.cuts += len(self._open) // 2
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def sever(self) -> None:
        """Cut, and let nobody in until ``mend``."""
        self._accepts = False
        self.cut()

    def mend(self) -> None:
        self._accepts = True

    def hold(self) -> None:
        """Keep what clients send until ``release``; connections stay open."""
        self._flows.clear()

    def release(self) -> None:
        self._flows.set()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        port = self._target() if self._accepts else None
        with client:
            if port is None:
                return
            try:
                server = socket.create_connection(("127.0.0.1", port), timeout=5)
            except OSError:
                return
            server.settimeout(None)
            with server, self._counted(client, server):
                back = threading.Thread(target=_pump, args=(server, client), daemon=True)
                back.start()
                _pump(client, server, self._flows)
                back.join()

    @contextlib.contextmanager
    def _counted(self, *pair: socket.socket) -> Iterator[None]:
        with self._lock:
            self._open.update(pair)
        try:
            yield
        finally:
            with self._lock:
                self._open.difference_update(pair)


def _pump(source: socket.socket, sink: socket.socket, flows: threading.Event | None = None) -> None:
    """Pump until either side ends; then both do."""
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            if flows:
                flows.wait()
            sink.sendall(data)
    for side in (source, sink):
        with contextlib.suppress(OSError):
            side.shutdown(socket.SHUT_RDWR)
