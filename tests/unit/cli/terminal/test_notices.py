"""Messages of ``schedulerlog watch POD --webhook-file FILE``, received by a real server."""

import http.server
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.client.transport import WatchedChange
from cli.command import app
from cli.terminal import watching
from cli.terminal.notices import TRIES, Notices
from cli.terminal.options import Asking


class Receiver:
    """A server that takes what is posted; ``answers``: statuses of the first answers, then 200."""

    def __init__(self, *answers: int) -> None:
        self.texts: list[str] = []
        self.requests = 0
        statuses, receiver = iter(answers), self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status = next(statuses, 200)
                receiver.requests += 1
                if status == 200:
                    receiver.texts.append(body["text"])
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Write nothing to the tests' output."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/hook"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def a_diagnosis(state: str, code: str, headline: str) -> dict[str, Any]:
    return {"namespace": "llm", "name": "p", "state": state, "obstacle": {"code": code} if code else None,
            "headline": {"en": headline, "zh": headline}}  # fmt: skip


MEMORY = a_diagnosis("refused", "CardInsufficientMemory", "Lower memory.")
LESS = a_diagnosis("refused", "CardInsufficientMemory", "Lower memory more.")
QUOTA = a_diagnosis("refused", "QuotaRefusesPod", "The quota is used up.")
PLACED = a_diagnosis("placed", "", "It is on node5.")


def test_a_message_comes_when_the_decisive_obstacle_changes_and_when_the_pod_is_placed() -> None:
    with closing(Receiver()) as receiver:
        notices = Notices(receiver.url, "https://api.example/ui/pods/llm/p")
        for diagnosis in (MEMORY, LESS, MEMORY, QUOTA, QUOTA, PLACED, PLACED):
            notices.send_news(diagnosis)
        assert receiver.texts == [
            "llm/p: The quota is used up.\nhttps://api.example/ui/pods/llm/p",
            "llm/p: It is on node5.\nhttps://api.example/ui/pods/llm/p",
        ]


def test_a_receiver_that_is_down_or_busy_is_tried_again_and_gets_the_message_once() -> None:
    pauses: list[float] = []
    with closing(Receiver(503, 429)) as receiver:
        notices = Notices(receiver.url, sleep=pauses.append)
        for diagnosis in (MEMORY, PLACED):
            notices.send_news(diagnosis)
        assert (receiver.texts, receiver.requests, pauses) == (["llm/p: It is on node5."], 3, [1.0, 2.0])


@pytest.mark.parametrize(("answers", "requests"), [((404,), 1), ((500,) * TRIES, TRIES)])
def test_a_message_that_is_not_taken_is_reported(
    capsys: pytest.CaptureFixture[str], answers: tuple[int, ...], requests: int
) -> None:
    with closing(Receiver(*answers)) as receiver:
        notices = Notices(receiver.url, sleep=lambda _: None)
        for diagnosis in (MEMORY, PLACED):
            notices.send_news(diagnosis)
        assert (receiver.texts, receiver.requests) == ([], requests)
    assert f"The webhook did not take the message: it answers {answers[0]}." in capsys.readouterr().err


def test_a_watch_ends_with_the_message_that_the_pod_is_placed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    diagnoses = iter([MEMORY, PLACED])

    def stream(path: str, _: Mapping[str, str]) -> Iterator[WatchedChange]:
        assert path == "/namespaces/llm/pods/p/schedulerlog"
        for status in ("failed", "succeeded"):
            log = {"metadata": {"name": "p", "namespace": "llm"}, "status": status}
            yield WatchedChange("MODIFIED", log | {"filter": {"summary": ""}, "bind": {"summary": "s"}})

    def get(path: str, query: Mapping[str, str]) -> dict[str, Any]:
        assert (path, query) == ("/namespaces/llm/pods/p/diagnosis", {"changes": "false"})
        return next(diagnoses)

    transport = SimpleNamespace(stream=stream, get=get, get_namespace=lambda: "llm")
    monkeypatch.setattr(Asking, "create_transport", lambda _: transport)
    monkeypatch.setattr(watching, "PAUSE_SECONDS", 0)
    with closing(Receiver()) as receiver:
        file = tmp_path / "webhook"
        file.write_text(f"{receiver.url}\n")
        words = ["watch", "llm/p", "--until-placed", "--webhook-file", str(file)]
        done = CliRunner().invoke(app, words, env={"SCHEDULERLOG_API_URL": ""})
        assert (done.exit_code, receiver.texts) == (0, ["llm/p: It is on node5."]), done.output


def test_a_webhook_without_a_pod_or_an_address_is_a_mistake(tmp_path: Path) -> None:
    file = tmp_path / "webhook"
    file.write_text("hooks")
    for words in (["watch", "llm/p", "--webhook-file", str(file)], ["watch", "--webhook-file", str(file)]):
        done = CliRunner().invoke(app, words)
        assert (done.exit_code, "--webhook-file: " in done.stderr) == (2, True), done.output
