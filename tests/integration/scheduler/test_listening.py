"""Requests over real sockets: HTTPS while the certificate changes, old HTTP, and clients too big or too slow."""

import asyncio
import contextlib
import re
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import orjson
import pytest
from cryptography.x509 import ObjectIdentifier

from runtime.http import bodies
from runtime.http.bodies import Bodies
from runtime.http.certificate_authority import CLIENT, SERVER, Authority
from runtime.settings.addresses import LOOPBACK, HostPort
from scheduler.http import server
from scheduler.http.app import SHORTER_BODIES, create_app
from tests.support.builders.kube_objects import a_node, a_pod
from tests.support.certificates import Secret, a_pair
from tests.support.harness.scheduler_app import Serving
from tests.support.harness.scheduler_process import SchedulerProcess


@pytest.fixture
def secret(tmp_path: Path) -> Secret:
    return Secret(tmp_path / "secret")


@pytest.fixture
def process(tmp_path: Path, secret: Secret) -> Iterator[SchedulerProcess]:
    pair = ["--cert-file", str(secret.pair.certificate), "--key-file", str(secret.pair.key)]
    with SchedulerProcess(tmp_path / "scheduler", "--no-publish", *pair) as running:
        yield running


def read_issuer(process: SchedulerProcess) -> str:
    """Read the common name in the certificate that a new connection gets."""
    address = httpx.URL(process.url)
    certificate = ssl.get_server_certificate((address.host, address.port or 0))
    return next(name for name in ("one", "two") if name.encode() in ssl.PEM_cert_to_DER_cert(certificate))


def test_an_open_connection_continues_when_the_certificate_is_replaced(
    process: SchedulerProcess, secret: Secret
) -> None:
    trusting_the_first = ssl.create_default_context(cafile=str(secret.pair.certificate))
    with httpx.Client(base_url=process.url, verify=trusting_the_first, timeout=30) as client:
        assert client.get("/readyz").status_code == 200
        secret.swap("two")
        process.wait_until(lambda: read_issuer(process) == "two")
        assert client.get("/readyz").status_code == 200
    with pytest.raises(httpx.ConnectError), httpx.Client(verify=trusting_the_first, timeout=30) as client:
        client.get(f"{process.url}/readyz")


def test_a_broken_pair_is_seen_in_log_and_metrics_and_does_no_harm(process: SchedulerProcess, secret: Secret) -> None:
    secret.pair.key.unlink()
    process.wait_until(lambda: process.sum_metric("schedulerlog_scheduler_certificate_is_broken") == 1)
    assert read_issuer(process) == "one"
    assert process.log.read_text().count(f"--key-file: {secret.pair.key} can't be read") == 1


def test_plain_http_on_the_https_port_is_hung_up_on_and_leaves_no_trace_in_the_log(process: SchedulerProcess) -> None:
    before = process.log.read_text()
    with pytest.raises(httpx.TransportError):
        httpx.get(process.url.replace("https", "http"), timeout=30)
    assert process.log.read_text() == before
    assert process.sum_metric("schedulerlog_scheduler_filter_seconds_count") == 0


def a_certificate(folder: Path, authority: Authority, name: str, usages: tuple[ObjectIdentifier, ...]) -> list[str]:
    """The files of a new certificate and its key."""
    files = [folder / f"{name}.crt", folder / f"{name}.key"]
    for file, content in zip(files, authority.issue(name, usages=usages), strict=True):
        file.write_bytes(content)
    return list(map(str, files))


def test_h1_only_who_shows_a_client_certificate_may_filter_and_bind(tmp_path: Path) -> None:
    """H1, and M3: who connects without a TLS handshake is hung up on after 10 s."""
    ours, other = Authority.create("kube-scheduler's"), Authority.create("of somebody else")
    file = tmp_path / "ca.crt"
    file.write_bytes(ours.certificate_pem)
    served = a_certificate(tmp_path, ours, "scheduler", SERVER)
    flags = ["--cert-file", served[0], "--key-file", served[1], "--client-ca-file", str(file)]
    flags += ["--webhook-listen", "0", "--no-publish"]
    pod = {"Pod": a_pod(), "NodeNames": ["node1"]}

    def post(address: str, path: str, pair: list[str] | None = None) -> int:
        context = ssl.create_default_context(cafile=str(file))
        if pair:
            context.load_cert_chain(*pair)
        with httpx.Client(verify=context, timeout=30) as client:
            return client.post(f"{address}{path}", json=pod).status_code

    with SchedulerProcess(tmp_path / "scheduler", *flags) as process:
        url = httpx.URL(process.url)
        with socket.create_connection((url.host, url.port or 0)) as silent:
            # Without HTTPS's certificate probes and metrics are read, and nothing is decided.
            assert httpx.get(
                f"{process.url}/healthz", verify=ssl.create_default_context(cafile=str(file)), timeout=30
            ).is_success
            for path in ("/filter", "/bind"):
                assert post(process.url, path) == 403
                assert post(process.url, path, a_certificate(tmp_path, ours, "kube", CLIENT)) == 200
            with pytest.raises(httpx.TransportError):
                post(process.url, "/filter", a_certificate(tmp_path, other, "other", CLIENT))
            with pytest.raises(httpx.TransportError):
                # A server's certificate is no client's.
                post(process.url, "/filter", served)
            port = re.search(r"answering the webhook on port (\d+)", process.log.read_text())
            assert port
            webhook = f"https://127.0.0.1:{port[1]}"
            assert post(webhook, "/webhook") == 200
            assert post(process.url, "/webhook") == post(webhook, "/filter") == 404
            assert post(webhook, "/bind", a_certificate(tmp_path, ours, "kube", CLIENT)) == 404
            silent.settimeout(40)
            assert silent.recv(1) == b""


def test_n1_n3_requests_without_end_and_silent_connections_keep_no_caller_from_answers(tmp_path: Path) -> None:
    with SchedulerProcess(tmp_path / "scheduler", "--insecure-http", "--no-publish") as process:
        url = httpx.URL(process.url)
        with contextlib.ExitStack() as stack, httpx.Client(base_url=process.url, timeout=30) as client:
            for _ in range(600):
                stack.enter_context(socket.create_connection((url.host, url.port or 0)))
            # Of this caller, who connects last, and of one who has been connected for longer than the others.
            assert [client.get("/healthz").status_code for _ in range(3)] == [200] * 3
            assert httpx.post(
                f"{process.url}/filter", json={"Pod": a_pod(), "NodeNames": ["node1"]}, timeout=30
            ).is_success
        before = process.sum_metric("process_resident_memory_bytes")
        with socket.create_connection((url.host, url.port or 0), timeout=5) as sending:
            # Each of them took 4 KB: 400 MB in all.
            requests = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100_000
            # Hung up on while it sends, or while it waits for answers where the kernel has taken all of it.
            with contextlib.suppress(ConnectionError):
                sending.sendall(requests)
                while sending.recv(65536):
                    pass
        assert process.sum_metric("process_resident_memory_bytes") < before + 50_000_000


def test_n11_clients_without_a_tls_hello_take_no_memory_and_keep_no_caller_from_answers(
    process: SchedulerProcess, secret: Secret
) -> None:
    """Each took 0.3 MB, as many as came within ten seconds: 1,500 of them half a gigabyte."""
    url, trusted = httpx.URL(process.url), ssl.create_default_context(cafile=str(secret.pair.certificate))

    def measure_memory() -> float:
        status = Path(f"/proc/{process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024

    before = measure_memory()
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(socket.create_connection((url.host, url.port or 0))) for _ in range(600)]
        assert httpx.get(f"{process.url}/healthz", verify=trusted, timeout=20).is_success
        assert measure_memory() - before < 120
        silent[0].settimeout(5)
        assert silent[0].recv(1) == b""
    assert "Traceback" not in process.log.read_text()


@pytest.fixture
async def address(tmp_path: Path) -> AsyncIterator[tuple[str, int]]:
    """A scheduler that listens in this process, for bodies of up to 100,000 bytes."""
    serving = Serving(tmp_path, a_node("node1"))
    app = create_app(serving.scheduler, serving.metrics, dict, Bodies(100_000, SHORTER_BODIES))
    with server.bind(HostPort(LOOPBACK, 0)) as listener:
        uvicorn_server = server.HttpServer(server.create_config(app, None, HostPort(*listener.getsockname()[:2])))
        running = asyncio.create_task(uvicorn_server.serve(sockets=[listener]))
        yield listener.getsockname()[:2]
        uvicorn_server.should_exit = True
        await running
    await serving.close()


async def send(address: tuple[str, int], *parts: bytes) -> bytes:
    """Send these bytes, and return what is answered until the scheduler hangs up."""
    reader, writer = await asyncio.open_connection(*address)
    for part in parts:
        writer.write(part)
    try:
        async with asyncio.timeout(20):
            return await reader.read()
    finally:
        writer.close()


def build_request(body: bytes, *, version: str = "1.1") -> bytes:
    return (
        f"POST /filter HTTP/{version}\r\nHost: localhost\r\nConnection: close\r\n"
        f"Content-Length: {len(body)}\r\n\r\n".encode()
        + body
    )


BODY = orjson.dumps({"Pod": a_pod(), "NodeNames": ["node1"]})


async def test_http_1_0_is_answered_and_the_connection_ends(address: tuple[str, int]) -> None:
    answer = await send(address, build_request(BODY, version="1.0"))
    assert orjson.loads(answer.partition(b"\r\n\r\n")[2])["NodeNames"] == ["node1"]


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("Host: localhost:8080", 200),
        ("Host: [::1]:8080", 200),
        ("Host: rebound.example:8080", 421),
        ("Host: 127.0.0.1\r\nOrigin: http://127.0.0.1:8080", 403),
        ("Host: 127.0.0.1\r\nOrigin: null", 403),
    ],
)
async def test_n12_no_page_of_the_web_has_a_pod_scheduled(address: tuple[str, int], header: str, status: int) -> None:
    """A page may post JSON as text without asking first, and under a name that leads here it reads metrics too."""
    body = orjson.dumps({"Pod": a_pod(), "NodeNames": ["node1"]})
    head = f"POST /filter HTTP/1.1\r\n{header}\r\nContent-Type: text/plain\r\nConnection: close\r\n"
    answer = await send(address, head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    assert int(answer.split()[1]) == status


async def test_a_body_in_chunks_is_read_whole(address: tuple[str, int]) -> None:
    chunks = b"".join(b"%x\r\n%s\r\n" % (1, BODY[index : index + 1]) for index in range(len(BODY))) + b"0\r\n\r\n"
    head = b"POST /filter HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer = await send(address, head, chunks)
    assert b'"NodeNames":["node1"]' in answer


@pytest.mark.parametrize("head", [b"Content-Length: 10000000000", b"Transfer-Encoding: chunked"])
async def test_a_body_too_long_is_refused_before_it_has_arrived(
    address: tuple[str, int], monkeypatch: pytest.MonkeyPatch, head: bytes
) -> None:
    monkeypatch.setattr(server.Protocol, "linger_seconds", 0.2)
    part = b"20000\r\n" + b"x" * 0x20000 + b"\r\n"
    answer = await send(address, b"POST /filter HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n\r\n", part)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"the body is longer than 100000 bytes (--max-body-size)" in answer


async def test_a_body_that_does_not_arrive_is_given_up(
    address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "BODY_SECONDS", 0.2)
    monkeypatch.setattr(server.Protocol, "linger_seconds", 0.2)
    answer = await send(address, build_request(BODY)[:-5])
    assert answer.startswith(b"HTTP/1.1 408 ")


async def test_m1_a_head_that_does_not_end_is_refused(address: tuple[str, int]) -> None:
    # No more than is read before the refusal: bytes that nobody reads would reset the connection.
    answer = await send(address, b"POST /filter HTTP/1.1\r\nHost: localhost\r\n", b"X: " + b"a" * 66 * 1024)
    assert answer.startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize("value", [b"", b"POST /filter HTTP/1.1\r\nHost"])
async def test_a_client_that_does_not_say_what_it_wants_is_hung_up_on(
    address: tuple[str, int], monkeypatch: pytest.MonkeyPatch, value: bytes
) -> None:
    monkeypatch.setattr(server.Protocol, "request_seconds", 0.2)
    assert await send(address, value) == b""


async def test_a_client_that_begins_a_second_request_and_stops_is_hung_up_on(
    address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server.Protocol, "request_seconds", 0.2)
    answer = await send(address, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nPOST /fil")
    assert answer.startswith(b"HTTP/1.1 200 ")


def test_nothing_but_a_certificate_for_this_address_is_trusted(process: SchedulerProcess, tmp_path: Path) -> None:
    stranger = ssl.create_default_context(cafile=str(a_pair(tmp_path / "stranger", "two").certificate))
    with pytest.raises(httpx.ConnectError), httpx.Client(verify=stranger, timeout=30) as client:
        client.get(f"{process.url}/readyz")
