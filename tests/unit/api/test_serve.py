"""``python -m api serve``, as somebody starts it who has set something wrong."""

import socket
import subprocess
import sys

import pytest

GOOD = {"SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1", "SCHEDULERLOG_OPENSEARCH_URL": "http://127.0.0.1:2"}


def serve(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "api", "serve", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("environment", "line"),
    [
        ({}, "SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS is not set"),
        (
            GOOD | {"SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS": "kafka"},
            "SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS is wrong: 'kafka' is not host:port",
        ),
        (GOOD | {"SCHEDULERLOG_API_ENABLED": "perhaps"}, "SCHEDULERLOG_API_ENABLED is wrong"),
        (GOOD | {"SCHEDULERLOG_API_CACHED_PODS": "0"}, "SCHEDULERLOG_API_CACHED_PODS is wrong"),
        (GOOD | {"SCHEDULERLOG_API_PORT": "http"}, "SCHEDULERLOG_API_PORT is wrong"),
    ],
)
def test_a_wrong_setting_ends_it_with_one_line_that_names_it(environment: dict[str, str], line: str) -> None:
    ended = serve(**environment)
    assert ended.returncode == 2
    assert ended.stderr.startswith(line)
    assert ended.stderr.count("\n") == 1


def test_a_password_in_a_wrong_url_is_not_repeated() -> None:
    ended = serve(**GOOD | {"SCHEDULERLOG_OPENSEARCH_URL": "htp://reader:secret@127.0.0.1"})
    assert ended.returncode == 2
    assert "SCHEDULERLOG_OPENSEARCH_URL" in ended.stderr
    assert "secret" not in ended.stderr


def test_switched_off_it_says_so_and_ends_well_without_any_other_setting() -> None:
    ended = serve(SCHEDULERLOG_API_ENABLED="false")
    assert ended.returncode == 0
    assert ended.stdout == "the API is switched off (SCHEDULERLOG_API_ENABLED=false)\n"


def test_a_busy_port_ends_it_with_one_line_that_names_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ended = serve("--port", port, **GOOD)
    assert ended.returncode == 1
    assert ended.stderr == f"can't listen on 127.0.0.1:{port}: Address already in use; --port chooses another\n"


def test_an_unknown_host_ends_it_with_one_line() -> None:
    ended = serve("--host", "not.a.host.invalid", **GOOD)
    assert ended.returncode == 1
    assert ended.stderr.count("\n") == 1
