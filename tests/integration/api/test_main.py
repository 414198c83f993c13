"""``python -m api serve``, started with wrong settings."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator

import httpx
import pytest
from typer.testing import CliRunner, Result

from api.__main__ import app
from schemas.answers.attempts import Error

GOOD = {
    "SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1",
    "SCHEDULERLOG_OPENSEARCH_URL": "http://reader:S3cret@127.0.0.1:2",
}
CHECKED = {"SCHEDULERLOG_API_AUTHENTICATION": "kubernetes"}


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Calls the command in this process, for what ends it before it listens."""
    for name in [name for name in os.environ if name.startswith("SCHEDULERLOG_")]:
        monkeypatch.delenv(name)
    return lambda *arguments, **environment: CliRunner().invoke(app, ["serve", *arguments], env=environment)


@pytest.mark.parametrize(
    ("environment", "line"),
    [
        ({}, "SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS is not set"),
        (
            GOOD | {"SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS": "kafka"},
            "SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS: 'kafka' is not HOST:PORT",
        ),
        (GOOD | {"SCHEDULERLOG_API_ENABLED": "perhaps"}, "SCHEDULERLOG_API_ENABLED: Input should be a valid boolean"),
        (
            GOOD | {"SCHEDULERLOG_API_CACHED_PODS": "0"},
            "SCHEDULERLOG_API_CACHED_PODS: Input should be greater than or equal to 1",
        ),
        (GOOD | {"SCHEDULERLOG_API_LISTEN": ":9090"}, "SCHEDULERLOG_API_LISTEN: ':9090' is not HOST:PORT"),
        (
            GOOD | {"SCHEDULERLOG_API_LISTEN": "0.0.0.0:9090"},
            "SCHEDULERLOG_API_LISTEN: other machines reach 0.0.0.0:9090, and everybody could read everything: ",
        ),
        (
            GOOD | CHECKED | {"SCHEDULERLOG_API_LISTEN": "[::]:9090"},
            "SCHEDULERLOG_API_LISTEN: other machines reach [::]:9090, and tokens would be sent without HTTPS: ",
        ),
        (GOOD | CHECKED, "SCHEDULERLOG_KUBECONFIG: not in a pod with a service account"),
        (
            GOOD | CHECKED | {"SCHEDULERLOG_KUBECONFIG": "/no/such/file"},
            "SCHEDULERLOG_KUBECONFIG: /no/such/file: can't be read: No such file or directory",
        ),
    ],
)
def test_a_wrong_setting_ends_it_with_one_line_that_names_it(
    called: Callable[..., Result], environment: dict[str, str], line: str
) -> None:
    ended = called(**environment)
    assert ended.exit_code == 2
    assert ended.stderr.startswith(line)
    assert ended.stderr.count("\n") == 1


def test_a_password_in_a_wrong_url_is_not_repeated(called: Callable[..., Result]) -> None:
    ended = called(**GOOD | {"SCHEDULERLOG_OPENSEARCH_URL": "htp://reader:secret@127.0.0.1"})
    assert ended.exit_code == 2
    assert "SCHEDULERLOG_OPENSEARCH_URL" in ended.stderr
    assert "secret" not in ended.stderr


def test_switched_off_it_prints_that_and_ends_with_status_0_without_any_other_setting(
    called: Callable[..., Result],
) -> None:
    ended = called(SCHEDULERLOG_API_ENABLED="false")
    assert ended.exit_code == 0
    assert ended.stdout == "the API is switched off (SCHEDULERLOG_API_ENABLED=false)\n"


def test_a_busy_port_ends_it_with_one_line_that_names_it(called: Callable[..., Result]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ended = called("--listen", port, **GOOD)
    assert ended.exit_code == 1
    assert (
        ended.stderr == f"can't listen on 127.0.0.1:{port}: Address already in use; --listen chooses another address\n"
    )


INJECTED = {
    "SCHEDULERLOG_API_SERVICE_HOST": "10.0.0.11",
    "SCHEDULERLOG_API_SERVICE_PORT": "9090",
    "SCHEDULERLOG_API_PORT": "tcp://10.0.0.11:9090",
    "SCHEDULERLOG_API_PORT_9090_TCP": "tcp://10.0.0.11:9090",
    "SCHEDULERLOG_API_PORT_9090_TCP_PROTO": "tcp",
    "SCHEDULERLOG_API_PORT_9090_TCP_PORT": "9090",
    "SCHEDULERLOG_API_PORT_9090_TCP_ADDR": "10.0.0.11",
}
"""Variables that the kubelet puts into every pod for a Service called schedulerlog-api."""


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """Port of an API that runs with nothing behind it, in a namespace whose Service has its name."""
    command = [sys.executable, "-m", "api", "serve", "--listen", "0"]
    process = subprocess.Popen(
        command, env=GOOD | INJECTED, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    with process.stdout as output:
        yield int(output.readline().split("127.0.0.1:")[1].split()[0])
    process.terminate()
    assert process.wait(timeout=120) in (0, -15)


def test_without_kafka_and_opensearch_it_answers_which_one_is_missing(port: int) -> None:
    url = f"http://127.0.0.1:{port}"
    assert httpx.get(f"{url}/healthz", timeout=30).json() == {"alive": True}
    ready = httpx.get(f"{url}/readyz", timeout=30)
    assert ready.status_code == 503
    assert "S3cret" not in ready.text
    assert "ClientConnectorError" in ready.json()["parts"]["opensearch"]["why_not"]
    assert httpx.get(f"{url}/api/v1/namespaces/a/pods/b/schedulerlog", timeout=30).status_code == 503


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GARBAGE\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a TLS hello\r\n\r\n",
        "GET /api/v1/schedulerlogs?limit=٣ HTTP/1.1\r\nHost: x\r\n\r\n".encode(),
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nConnection: close\r\n\r\n",
    ],
)
def test_bytes_that_are_not_http_are_answered_in_json(port: int, request_bytes: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(request_bytes)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith((b"HTTP/1.1 400", b"HTTP/1.1 404", b"HTTP/1.1 431"))
    Error.model_validate_json(body)


def test_an_unknown_host_ends_it_with_one_line(called: Callable[..., Result]) -> None:
    ended = called("--listen", "not.a.host.invalid:0", "--api-insecure", **GOOD)
    assert ended.exit_code == 1
    assert ended.stderr.count("\n") == 1
