"""One ``kubectl proxy`` for many requests: a program in the place of kubectl answers on the socket."""

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.client import proxy
from cli.client.kubectl import KubectlTransport
from cli.client.problems import NotAllowed, NotFound, Problem, Unreachable
from cli.client.proxy import ProxiedKubectl
from tests.support.waiting import eventually

KUBECTL = """
import json, os, pathlib, socketserver, sys
from http.server import BaseHTTPRequestHandler

FOLDER = pathlib.Path(__file__).parent
with (FOLDER / "starts").open("a") as starts:
    starts.write(f"{os.getpid()} {json.dumps(sys.argv[1:])}\\n")
if "get" in sys.argv:
    if sys.argv[-1] == "/login":
        sys.exit("error: You must be logged in to the server (Unauthorized)")
    print("by kubectl get", sys.argv[-1])
    sys.exit()
if (FOLDER / "no-proxy").exists():
    sys.exit(1)

ANSWERS = {
    "/api": (200, b"by the proxy"),
    "/gone": (404, json.dumps({"kind": "Status", "reason": "NotFound", "message": 'pods "p" not found'}).encode()),
    "/secret": (403, json.dumps({"kind": "Status", "reason": "Forbidden", "message": "no. Ask"}).encode()),
    "/login": (401, json.dumps({"kind": "Status", "reason": "Unauthorized", "message": "Unauthorized"}).encode()),
}

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        code, body = ANSWERS.get(self.path, (502, b""))
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self):
        return ""

path = next(word.partition("=")[2] for word in sys.argv if word.startswith("--unix-socket="))
socketserver.ThreadingUnixStreamServer(path, Handler).serve_forever()
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program that is called as kubectl is; the file ``starts`` next to it has a line for each start."""
    path = tmp_path / "kubectl"
    path.write_text(f"#!{sys.executable}\n{KUBECTL}")
    path.chmod(0o755)
    return path


@pytest.fixture
def proxied(program: Path) -> Iterator[ProxiedKubectl]:
    kubectl = ProxiedKubectl(KubectlTransport(context="blue", program=str(program)))
    yield kubectl
    kubectl.stop()


def list_starts(program: Path) -> list[str]:
    file = program.with_name("starts")
    return file.read_text().splitlines() if file.exists() else []


def find_folder(program: Path) -> Path:
    words = next(line for line in list_starts(program) if '"proxy"' in line)
    return Path(words.partition("--unix-socket=")[2].partition('"')[0]).parent


def test_all_requests_are_answered_by_one_start(proxied: ProxiedKubectl, program: Path) -> None:
    assert [proxied.read_raw("/api") for _ in range(3)] == [b"by the proxy"] * 3
    (start,) = list_starts(program)
    assert '"--context=blue", "proxy"' in start
    assert "--reject-methods=^(POST|PUT|PATCH|DELETE)$" in start


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("/gone", NotFound('pods "p" not found', "")),
        ("/secret", NotAllowed("no", "Ask")),
    ],
)
def test_an_error_of_the_api_server_is_that_of_kubectl(proxied: ProxiedKubectl, path: str, problem: Problem) -> None:
    assert proxied.read_raw(path) == problem


def test_only_its_owner_may_enter_the_folder_of_the_socket(proxied: ProxiedKubectl, program: Path) -> None:
    proxied.read_raw("/api")
    assert stat.S_IMODE(find_folder(program).stat().st_mode) == 0o700


def test_kubectl_itself_words_an_error_before_the_api_server(proxied: ProxiedKubectl) -> None:
    assert proxied.read_raw("/other") == b"by kubectl get /other\n"
    problem = proxied.read_raw("/login")
    assert isinstance(problem, NotAllowed)
    assert problem.next_step == "Log in as for `kubectl get pods`."


def test_a_proxy_that_ends_is_not_waited_for(
    proxied: ProxiedKubectl, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxy, "START_SECONDS", 500.0)
    program.with_name("no-proxy").touch()
    started = time.monotonic()
    assert proxied.read_raw("/api") == b"by kubectl get /api\n"
    assert time.monotonic() - started < 100


def test_without_kubectl_the_cause_is_named(tmp_path: Path) -> None:
    kubectl = ProxiedKubectl(KubectlTransport(program=str(tmp_path / "absent")))
    problem = kubectl.read_raw("/api")
    assert isinstance(problem, Unreachable)
    assert "can't be started" in problem.cause
    kubectl.stop()


def test_a_stopped_proxy_leaves_neither_process_nor_socket(proxied: ProxiedKubectl, program: Path) -> None:
    proxied.read_raw("/api")
    process = int(list_starts(program)[0].split()[0])
    proxied.stop()
    assert not find_folder(program).exists()
    eventually(lambda: not is_running(process), "the proxy still runs")
    assert proxied.read_raw("/api") == b"by the proxy"


def test_the_proxy_ends_with_a_process_that_is_killed(program: Path) -> None:
    code = (
        "import os, signal\n"
        "from cli.client.kubectl import KubectlTransport\n"
        "from cli.client.proxy import ProxiedKubectl\n"
        f"ProxiedKubectl(KubectlTransport(program={str(program)!r})).read_raw('/api')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], check=False)
    assert run.returncode == -signal.SIGKILL
    process = int(list_starts(program)[0].split()[0])
    eventually(lambda: not is_running(process) and not find_folder(program).exists(), "the proxy still runs")


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
