"""Requests to a server that stops in the middle, as an API server on a busy machine seems to."""

import asyncio
import gc
import socket
import ssl
import threading
import warnings
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from pathlib import Path

import pytest
import uvloop

from dev.embedded.control_plane.credentials import build_kubeconfig
from runtime.http.certificate_authority import Authority
from runtime.kubernetes.client import Client
from runtime.kubernetes.credentials import ApiCredentials, from_kubeconfig

AUTHORITY = Authority.create("the tests' authority")
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"
STAGES = ("connected", "request read", "answer begun")


class SilentServer:
    """Goes as far as ``stage`` with one connection, then reads no more and closes nothing."""

    def __init__(self, stage: str, authority: Authority, folder: Path) -> None:
        certificate, key = authority.issue("server")
        (folder / "both.pem").write_bytes(certificate + key)
        self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._tls.load_cert_chain(folder / "both.pem")
        self._stage, self._listening = stage, socket.create_server(("127.0.0.1", 0))
        self.reached = threading.Event()
        url = f"https://127.0.0.1:{self._listening.getsockname()[1]}"
        self.kubeconfig = folder / "kubeconfig"
        self.kubeconfig.write_text(build_kubeconfig(url, authority.certificate_pem.decode(), "token"))

    def serve(self, stack: ExitStack) -> None:
        connection, _ = stack.enter_context(self._listening).accept()
        stack.enter_context(connection)
        if self._stage != "connected":
            connection = stack.enter_context(self._tls.wrap_socket(connection, server_side=True))
            connection.recv(2**16)
        if self._stage == "answer begun":
            connection.send(ANSWER)
        self.reached.set()


async def watch(client: Client) -> None:
    async with client.watch("/api/v1/pods", silence_seconds=30) as parts:
        async for _ in parts:
            pass


async def get(client: Client) -> None:
    await client.get("/api/v1/pods")


async def give_up(server: SilentServer, use: Callable[[Client], Coroutine[None, None, None]]) -> None:
    client = Client(await ApiCredentials.open(from_kubeconfig(server.kubeconfig)))
    using = asyncio.create_task(use(client))
    await asyncio.to_thread(server.reached.wait)
    await asyncio.sleep(0.05)  # what was sent is read
    using.cancel()
    await asyncio.wait([using])
    await client.close()


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("use", [watch, get])
@pytest.mark.parametrize("stage", STAGES)
def test_close_leaves_no_socket_open_of_a_request_that_was_given_up(
    stage: str,
    use: Callable[[Client], Coroutine[None, None, None]],
    new_loop: Callable[[], asyncio.AbstractEventLoop],
    tmp_path: Path,
) -> None:
    server = SilentServer(stage, AUTHORITY, tmp_path)
    with ExitStack() as stack, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        serving = threading.Thread(target=server.serve, args=(stack,))
        serving.start()
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(give_up(server, use))
        serving.join()
        gc.collect()
    assert [str(warning.message) for warning in caught if warning.category is ResourceWarning] == []
