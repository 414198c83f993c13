"""Texts of the cluster do nothing to a terminal: every command, with an API whose every text is hostile."""

import json
import os
import pty
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from cli.command import app
from tests.support.harness.golden_api import POD
from tests.unit.cli.terminal.conftest import Run

HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202egnp.exe\u2066\u200b\r\x9b31m\U000e0041"
FORBIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
UNCHANGED = ("attempt", "started_at", "ended_at", "at", "first_judged_at", "last_judged_at", "created_at",
        "observed_at", "first_seen_at", "last_seen_at", "status", "state", "who_acts", "schedulerlog",
        "answer")  # fmt: skip
"""Fields whose values are not texts of the cluster: times, paths, and words that the contract lists."""
COMMANDS = [
    ["why", POD, "-o", "wide"],
    ["list", "-A", "-o", "wide"],
    ["list", "--pending", "-A", "-o", "wide"],
    ["history", POD, "-o", "wide"],
    ["node", "node3", "--at", "2026-04-22T14:00:00Z", "-o", "wide"],
]


def make_hostile(answer: Any, name: str = "") -> Any:
    """Make an answer hostile: characters that a terminal would obey after every text and in place of names."""
    match answer:
        case str() if name not in UNCHANGED:
            return answer + HOSTILE
        case dict():
            # The reasons of an answer are keys.
            return {
                key + (HOSTILE if name == "reasons" else ""): make_hostile(value, key) for key, value in answer.items()
            }
        case list():
            return [make_hostile(element, name) for element in answer]
    return answer


@pytest.fixture(scope="module")
def hostile_url(golden_url: str) -> Iterator[str]:
    """A proxy in front of the golden API."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            response = httpx.get(golden_url + self.path, timeout=30)
            body = json.dumps(make_hostile(response.json())).encode()
            self.send_response(response.status_code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
@pytest.mark.parametrize("output", ["", "json", "yaml", "name"])
def test_no_output_has_what_a_terminal_obeys(hostile_url: str, words: list[str], output: str) -> None:
    arguments = [*words[:-2], "-o", output] if output else words
    done = CliRunner().invoke(app, arguments, env={"SCHEDULERLOG_API_URL": hostile_url, "COLUMNS": "80"})
    assert done.exit_code in (0, 1), done.output
    assert done.stdout
    assert not FORBIDDEN.findall(done.stdout)
    if output != "name" or "node" not in words:
        assert "exe" in done.stdout


def test_an_error_of_the_api_is_inert_too(hostile_url: str) -> None:
    environment = {"SCHEDULERLOG_API_URL": hostile_url}
    done = CliRunner().invoke(app, ["list", "--since", "yesterday"], env=environment)
    assert done.exit_code == 2
    assert "\\u202e" in done.stderr
    assert not FORBIDDEN.findall(done.stderr)


def test_a_log_is_inert_too(tmp_path: Path) -> None:
    log = Path("tests/conformance/cases/logs/042.log").read_text().replace("train-2002", f"train-2002{HOSTILE[:12]}")
    (tmp_path / "hami.log").write_text(log)
    for words in ([], ["-o", "json"], ["-o", "name"], ["trian"]):
        done = CliRunner().invoke(app, ["explain", str(tmp_path / "hami.log"), *words])
        assert not FORBIDDEN.findall(done.stdout + done.stderr), words


def on_a_terminal(url: str, **environment: str) -> str:
    """Run ``why`` on a terminal of 80 columns and return its output."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "schedulerlog", "why", POD, "--api-url", url]
    variables = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
    variables |= {"TERM": "xterm-256color"} | environment
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, env=variables) as running:
        os.close(theirs)
        written = b""
        # Linux answers EIO when the last writer has gone.
        try:
            while part := os.read(ours, 65_536):
                written += part
        except OSError:
            pass
        running.wait(30)
    os.close(ours)
    return written.decode()


def test_only_a_terminal_gets_colours_and_only_ours(run: Run, golden_url: str, hostile_url: str) -> None:
    text = on_a_terminal(golden_url)
    assert text.startswith("\x1b[1m")
    lines = [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()]
    assert lines == run("why", POD).stdout.splitlines()
    # An empty one counts as none (https://no-color.org).
    assert "\x1b" in on_a_terminal(golden_url, NO_COLOR="")
    for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b" not in on_a_terminal(golden_url, **variables)
    plain = re.sub(r"\x1b\[[0-9;]*m|\r\n", "", on_a_terminal(hostile_url))
    assert not FORBIDDEN.findall(plain)
