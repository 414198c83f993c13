"""Answers to bytes on a socket: rows 27, 28, 65 and 69 of the matrix."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Collection
from pathlib import Path
from typing import NamedTuple

import pytest

from api.http.json_protocol import JsonProtocol
from api.server import ServerWithCertificate
from runtime.http.server_tls import CertificatePair, Certificates
from tests.support.certificates import Authority
from tests.support.harness.api_app import POD
from tests.support.harness.guarded_api import READS_LLM, Guarded
from tests.support.waiting import eventually_async


class Impatient(JsonProtocol):
    request_seconds = 0.3
    reading_seconds = 0.3


class Server(NamedTuple):
    port: int
    """A server of plain HTTP."""
    secured: int
    authority: Authority
    connections: Collection[object]
    """The open ones of plain HTTP."""

    async def answer(self, *parts: bytes) -> bytes:
        """Return everything that is answered until the server hangs up."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        for part in parts:
            writer.write(part)
            await writer.drain()
        try:
            return await asyncio.wait_for(reader.read(), timeout=30)
        except ConnectionResetError:
            return b""
        finally:
            writer.close()


@pytest.fixture
async def server(api: Guarded, tmp_path: Path) -> AsyncIterator[Server]:
    authority = Authority(tmp_path)
    issued = authority.issue("api")
    ports: list[int] = []
    servers = []
    for certificates in (None, Certificates(CertificatePair(issued.certificate, issued.key))):
        listening = socket.create_server(("127.0.0.1", 0))
        server = ServerWithCertificate(
            api.app,
            certificates,
            http=Impatient,
            access_log=False,
            log_level="critical",
            lifespan="off",
            timeout_keep_alive=0,
        )
        servers.append((server, asyncio.create_task(server.serve([listening]))))
        ports.append(listening.getsockname()[1])
    yield Server(ports[0], ports[1], authority, servers[0][0].server_state.connections)
    for server, _ in servers:
        server.should_exit = True
    await asyncio.gather(*(running for _, running in servers))


def request(path: str = POD, *headers: str, close: bool = True) -> bytes:
    lines = [f"GET {path} HTTP/1.1", "Host: x", *(["Connection: close"] if close else []), *headers, "", ""]
    return "\r\n".join(lines).encode()


def parse_statuses(answer: bytes) -> list[int]:
    return [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:]]


@pytest.mark.parametrize(
    "headers",
    [
        ("Content-Length: 5", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked", "Content-Length: 5"),
        ("Content-Length: 5", "Content-Length: 6"),
    ],
)
async def test_a_request_with_two_lengths_is_refused(server: Server, headers: tuple[str, ...]) -> None:
    smuggled = b"0\r\n\r\n" + request()
    assert parse_statuses(await server.answer(request(POD, *headers, close=False) + smuggled)) == [400]


async def test_each_request_on_a_connection_shows_who_it_is_by_itself(api: Guarded, server: Server) -> None:
    token = api.reviews.build_header("alice", READS_LLM)["Authorization"]
    both = request(POD, f"Authorization: {token}", close=False) + request(POD)
    assert parse_statuses(await server.answer(both)) == [200, 401]


@pytest.mark.parametrize("protocol", ["websocket", "h2c"])
async def test_no_connection_is_upgraded(server: Server, protocol: str) -> None:
    asking = request("/api/v1/schedulerlogs", f"Upgrade: {protocol}", "Connection: Upgrade", close=False)
    assert parse_statuses(await server.answer(asking)) == [401]


@pytest.mark.parametrize(
    "sent",
    [
        (),
        (b"GET /api/v1/namespaces/llm",),
        (request(close=False)[:-2],),
        (request(POD, "Content-Length: 100", close=False), b"half"),
    ],
)
async def test_who_does_not_finish_a_request_is_hung_up_on(server: Server, sent: tuple[bytes, ...]) -> None:
    # Without the limit the read would time out.
    assert set(parse_statuses(await server.answer(*sent))) <= {401}


async def test_a_head_without_an_end_is_refused_by_its_length(server: Server) -> None:
    endless = b"GET / HTTP/1.1\r\nHost: x\r\n" + b"".join(b"X-%d: %b\r\n" % (n, b"a" * 1000) for n in range(66))
    # Nothing follows what is too much: the answer to it is not lost by a reset.
    assert parse_statuses(await server.answer(endless[:65_000], endless[65_000:])) == [431]


@pytest.mark.parametrize("sent", [b"\x16\x03\x01\r\n\r\n", b"GET / HTTP/1.1\r\nX: " + b"a" * 70_000])
async def test_l6_refusals_of_the_parser_are_protected_as_answers_are(server: Server, sent: bytes) -> None:
    # In two parts: a reset would lose the answer to what arrives behind it.
    head = (await server.answer(sent[:65_000], sent[65_000:])).partition(b"\r\n\r\n")[0].decode().lower()
    for field in ("x-content-type-options: nosniff", "frame-ancestors 'none'", "cache-control: no-store"):
        assert field in head


async def test_two_hundred_who_send_nothing_keep_no_other_waiting(api: Guarded, server: Server) -> None:
    silent = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(200)]
    token = api.reviews.build_header("alice", READS_LLM)["Authorization"]
    assert parse_statuses(await server.answer(request(POD, f"Authorization: {token}"))) == [200]
    try:
        assert await asyncio.gather(*(reader.read() for reader, _ in silent)) == [b""] * 200
    finally:
        for _, writer in silent:
            writer.close()


async def test_m2_who_takes_nothing_of_an_answer_is_hung_up_on(api: Guarded, server: Server) -> None:
    token = api.reviews.build_header("alice", READS_LLM)["Authorization"]
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        client.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(client, ("127.0.0.1", server.port))
        # Together far more than the kernel keeps.
        await loop.sock_sendall(client, request("/openapi.json", f"Authorization: {token}", close=False) * 40)
        assert await loop.sock_recv(client, 8) == b"HTTP/1.1"
        assert await eventually_async(lambda: not server.connections)


async def test_plain_http_is_not_answered_where_tls_is_spoken(server: Server) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.secured)
    writer.write(request())
    assert b"HTTP/1.1" not in await asyncio.wait_for(reader.read(), timeout=30)
    writer.close()


async def test_old_versions_of_tls_are_refused(server: Server) -> None:
    context = ssl.create_default_context(cafile=str(server.authority.ca_file))
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises(OSError):  # noqa: PT011 - reset, or with TLS's own alert
        await asyncio.open_connection("127.0.0.1", server.secured, ssl=context)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    _, writer = await asyncio.open_connection("127.0.0.1", server.secured, ssl=context)
    writer.close()
