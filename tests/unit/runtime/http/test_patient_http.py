"""Limits of a server to its clients: how long it waits for them, and how much they may send before an answer."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from runtime.http.patient_http import PatientHttp
from tests.support.waiting import eventually_async

KIB = 1024


class Reader:
    """The transport to a client who takes ``taken`` bytes between two looks at what is left."""

    def __init__(self, left: int, taken: int) -> None:
        self.left, self.taken = left, taken
        self.was_aborted = asyncio.Event()
        self.has_all = asyncio.Event()

    def get_write_buffer_size(self) -> int:
        left, self.left = self.left, max(self.left - self.taken, 0)
        if not left:
            self.has_all.set()
        return left

    def abort(self) -> None:
        self.was_aborted.set()


class Impatient(PatientHttp):
    reading_seconds = 0.01

    async def send_to(self, reader: Reader) -> None:
        transport: Any = reader
        self.transport = transport
        self._watch_reading()


def create_protocol() -> Impatient:
    return Impatient(uvicorn.Config(app=lambda: None), ServerState(), {})


@pytest.mark.parametrize(("left", "taken"), [(1024 * KIB, 0), (1024 * KIB, 100), (100, 1), (16 * KIB, KIB)])
async def test_m2_who_takes_nothing_or_a_few_bytes_of_an_answer_is_hung_up_on(left: int, taken: int) -> None:
    await create_protocol().send_to(reader := Reader(left, taken))
    async with asyncio.timeout(60):
        await reader.was_aborted.wait()


@pytest.mark.parametrize(("left", "taken"), [(1024 * KIB, 16 * KIB), (100, 100)])
async def test_who_reads_slowly_gets_the_whole_answer(left: int, taken: int) -> None:
    await create_protocol().send_to(reader := Reader(left, taken))
    async with asyncio.timeout(60):
        await reader.has_all.wait()
    assert not reader.was_aborted.is_set()


Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
CONNECTIONS = 40


class Answering:
    """A server that answers its requests when ``may_answer`` is set."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.requests = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.requests += 1
        await self.may_answer.wait()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    async def open(self, sent: bytes = b"") -> Connection:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(sent)
        return reader, writer


@pytest.fixture
async def server() -> AsyncIterator[Answering]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        app = Answering(listening.getsockname()[1])
        options: dict[str, Any] = {"access_log": False, "log_level": "critical", "lifespan": "off"}
        running = uvicorn.Server(uvicorn.Config(app, http=PatientHttp, limit_concurrency=CONNECTIONS, **options))
        serving = asyncio.create_task(running.serve(sockets=[listening]))
        yield app
        app.may_answer.set()
        running.should_exit = True
        await serving


async def read_statuses(connection: Connection) -> list[int]:
    """Read the status of everything that is answered until the server hangs up."""
    received = bytearray()
    with contextlib.suppress(ConnectionError):
        async with asyncio.timeout(30):
            while part := await connection[0].read(65_536):
                received += part
    connection[1].close()
    return [int(part[:3]) for part in bytes(received).split(b"HTTP/1.1 ")[1:]]


async def read_status(connection: Connection) -> int:
    return int((await asyncio.wait_for(connection[0].readuntil(b"\r\n\r\n"), 30))[9:12])


LAST = GET[:-2] + b"Connection: close\r\n\r\n"


async def test_requests_that_wait_for_the_one_before_are_answered_in_turn(server: Answering) -> None:
    assert await read_statuses(await server.open(GET * 60 + LAST)) == [200] * 61


async def test_n1_who_sends_requests_without_end_before_an_answer_is_hung_up_on(server: Answering) -> None:
    """uvicorn kept all of them, and read more after each answer."""
    server.may_answer.clear()
    assert await read_statuses(await server.open(GET * 9_000)) == []
    assert server.requests == 1


HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n"
LONG = HEAD + b"X: " + b"a" * 20 * KIB + b"\r\n\r\n"
MANY = HEAD + b"a: b\r\n" * 200 + b"\r\n"


@pytest.mark.parametrize("head", [LONG, MANY, MANY[:-2]])
async def test_n2_a_head_that_is_too_long_or_has_too_many_headers_is_refused(server: Answering, head: bytes) -> None:
    """Also one that arrives at once: a quarter of a megabyte of empty headers takes ten, as long as it is answered."""
    assert await read_statuses(await server.open(head)) == [431]
    assert server.requests == 0


@pytest.mark.parametrize("head", [LONG, MANY])
async def test_n2_who_waits_for_an_answer_gets_no_other_one(server: Answering, head: bytes) -> None:
    server.may_answer.clear()
    assert await read_statuses(await server.open(GET + head)) == []


@pytest.mark.parametrize("sent", [b"", b"GET", GET, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf"])
async def test_n3_connections_whose_clients_keep_it_waiting_are_given_up_for_others(
    server: Answering, sent: bytes
) -> None:
    """uvicorn answered 503 to everybody: five hundred silent connections kept kube-scheduler from every decision."""
    held = [await server.open(sent) for _ in range(3 * CONNECTIONS)]
    for _ in range(2 * CONNECTIONS):
        connection = await server.open(GET)
        assert await read_status(connection) == 200
        held.append(connection)
    for _, writer in held:
        writer.close()


async def test_n3_who_is_being_answered_is_never_given_up(server: Answering) -> None:
    server.may_answer.clear()
    asking = [await server.open(GET) for _ in range(CONNECTIONS)]
    assert await eventually_async(lambda: server.requests == CONNECTIONS)
    assert await read_statuses(await server.open()) == [503]
    server.may_answer.set()
    assert [await read_status(connection) for connection in asking] == [200] * CONNECTIONS
    for _, writer in asking:
        writer.close()
