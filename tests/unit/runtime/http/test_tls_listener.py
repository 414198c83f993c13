"""N11: clients between connection and handshake are few, and those who want to be answered are, also many at once."""

import asyncio
import socket
import ssl
from pathlib import Path
from typing import Final

import pytest
import uvicorn
import uvloop

from runtime.http.patient_http import PatientHttp
from runtime.http.tls_listener import AcceptFailures, PatientServer
from tests.support.certificates import Secret

LIMIT: Final = 80
"""Fewer than without the test: each handshake takes 2 ms of CPU."""
MANY: Final = LIMIT + 50


async def app(_scope: object, _receive: object, send: uvicorn._types.ASGISendCallable) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


async def get_status(port: int, trusted: ssl.SSLContext) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusted, server_hostname="127.0.0.1")
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    answer = await reader.read()
    writer.close()
    return answer[9:12]


async def fetch_answers(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[bytes], int, list[bytes]]:
    """Return the answers to many callers at once, how many silent clients were hung up on, and the answers to a caller
    behind them.
    """
    secret = Secret(folder)
    trusted = ssl.create_default_context(cafile=str(secret.pair.certificate))
    pair = {"ssl_certfile": secret.pair.certificate, "ssl_keyfile": secret.pair.key}
    config = uvicorn.Config(app, http=PatientHttp, log_level="critical", lifespan="off", **pair)  # type: ignore[arg-type]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port, server = listener.getsockname()[1], PatientServer(config)
        running = asyncio.create_task(server.serve([listener]))
        with monkeypatch.context() as patience:
            # Beside other work all these handshakes may take more than the second that each of them is given.
            patience.setattr("runtime.http.tls_listener.GRACE_SECONDS", 60.0)
            at_once = await asyncio.gather(*(get_status(port, trusted) for _ in range(MANY)))
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(MANY)]
        behind = [await get_status(port, trusted)]
        ended = sum(reader.at_eof() for reader, _ in silent)
        for _, writer in silent:
            writer.close()
        server.should_exit = True
        await running
    return at_once, ended, behind


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_n11_silent_clients_give_place_and_callers_are_answered(
    new_loop: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runtime.http.tls_listener.MAX_HANDSHAKES", LIMIT)
    with asyncio.Runner(loop_factory=new_loop) as runner:  # type: ignore[arg-type]
        at_once, ended, behind = runner.run(fetch_answers(tmp_path / "secret", monkeypatch))
    assert at_once == [b"200"] * MANY
    assert behind == [b"200"]
    assert ended >= 50


def test_n12_a_lack_of_descriptors_is_one_line_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    """asyncio wrote thousands of lines with a traceback within seconds."""
    loop, now = asyncio.new_event_loop(), [0.0]
    failures = AcceptFailures(lambda: now[0])
    context = {"message": "socket.accept() out of system resource", "exception": OSError(24, "Too many open files")}
    try:
        for now[0] in (0.0, 0.1, 59.9, 60.0, 60.1):
            failures.handle(loop, context)
        assert [record.getMessage() for record in caplog.records] == [
            "connections can't be accepted: Too many open files; further ones are logged once a minute"
        ] * 2
        failures.handle(loop, {"message": "a defect", "exception": ValueError("of ours")})
        assert caplog.records[-1].name == "asyncio"
    finally:
        loop.close()
