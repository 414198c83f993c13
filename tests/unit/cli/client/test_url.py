"""A server on this machine answers what the test gives it."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from cli.client.problems import NotAllowed, NotFound, Problem, Unreachable, WrongRequest
from cli.client.transport import WatchedChange
from cli.client.url import UrlTransport
from runtime.http.certificate_authority import Authority

Answer = tuple[int, bytes]
Serve = Callable[[Answer], tuple[str, list[Any]]]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Gives the address of a server with one answer, and the list of the requests that it got."""
    servers: list[ThreadingHTTPServer] = []

    def start(answer: Answer) -> tuple[str, list[Any]]:
        requests: list[Any] = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                requests.append((self.command, self.path, dict(self.headers), body))
                self.send_response(answer[0])
                self.send_header("Content-Length", str(len(answer[1])))
                self.end_headers()
                self.wfile.write(answer[1])

            do_POST = do_GET  # noqa: N815

            def log_message(self, *_: Any) -> None:
                """Log nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        return f"http://127.0.0.1:{server.server_address[1]}", requests

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_a_request_has_path_parameters_and_token(serve: Serve) -> None:
    url, requests = serve((200, b'{"items": []}'))
    assert UrlTransport(url + "/below", "secret").get("/pending", {"namespace": "llm"}) == {"items": []}
    [(method, path, headers, _)] = requests
    assert (method, path, headers["Authorization"]) == ("GET", "/below/api/v1/pending?namespace=llm", "Bearer secret")


def test_a_body_is_posted(serve: Serve) -> None:
    url, requests = serve((200, b"{}"))
    UrlTransport(url).post("/simulate", b"kind: Pod")
    assert (requests[0][0], requests[0][1], requests[0][3]) == ("POST", "/api/v1/simulate", b"kind: Pod")
    assert "Authorization" not in requests[0][2]


OURS = b'{"error": "the cause", "next": "the next step", "code": "%s"}'


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, OURS % b"BadRequest", WrongRequest),
        (401, OURS % b"Unauthorized", NotAllowed),
        (403, OURS % b"Forbidden", NotAllowed),
        (404, OURS % b"NotFound", NotFound),
        (404, OURS % b"UnknownPath", Unreachable),
        (410, OURS % b"Expired", WrongRequest),
        (503, OURS % b"ServiceUnavailable", Unreachable),
        # Of another server.
        (404, b"<html>not found</html>", Unreachable),
        (401, b"log in", NotAllowed),
        (200, b"<html>", Unreachable),
        (302, b"", Unreachable),
    ],
)
def test_an_error_is_a_problem_with_its_next_step(serve: Serve, status: int, body: bytes, kind: type[Problem]) -> None:
    problem = UrlTransport(serve((status, body))[0]).get("/pending")
    assert type(problem) is kind
    assert problem.cause


def test_our_errors_keep_their_words(serve: Serve) -> None:
    assert UrlTransport(serve((404, OURS % b"NotFound"))[0]).get("/x") == NotFound("the cause", "the next step")


def test_a_stream_gives_changes_or_the_problem(serve: Serve) -> None:
    url, requests = serve((200, b'{"type": "ADDED", "object": {}}\n{"type": "DELE'))
    assert list(UrlTransport(url).stream("/pending")) == [WatchedChange("ADDED", {})]
    assert requests[0][2]["Accept"] == "application/json"
    assert list(UrlTransport(serve((403, OURS % b"Forbidden"))[0]).stream("/pending")) == [
        NotAllowed("the cause", "the next step")
    ]


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "https://127.0.0.1:1", "http://does-not-exist.invalid"])
def test_a_server_that_does_not_answer_is_named(url: str) -> None:
    problem = UrlTransport(url).get("/pending")
    assert isinstance(problem, Unreachable)
    assert url in problem.cause


def test_a_certificate_is_checked_against_its_authority(tmp_path: Path) -> None:
    authority = Authority.create("the API's authority")
    certificate, key = authority.issue("api", ("127.0.0.1",))
    for name, content in (("ca.crt", authority.certificate_pem), ("tls.crt", certificate), ("tls.key", key)):
        (tmp_path / name).write_bytes(content)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"token": "%s"}' % self.headers["Authorization"].encode())

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        url = f"https://127.0.0.1:{server.server_address[1]}"
        trusted = UrlTransport(url, "secret", str(tmp_path / "ca.crt")).get("/x")
        untrusted = UrlTransport(url, "secret").get("/x")
        server.shutdown()
        thread.join()
    assert trusted == {"token": "Bearer secret"}
    assert isinstance(untrusted, Unreachable)
    assert "--api-ca-file" in untrusted.next_step
    missing = UrlTransport(url, ca_file=str(tmp_path / "none")).get("/x")
    assert isinstance(missing, Unreachable)


def test_who_is_not_known_learns_which_option_gives_a_token(serve: Serve) -> None:
    url = serve((401, OURS % b"Unauthorized"))[0]
    without, refused = UrlTransport(url).get("/x"), UrlTransport(url, "old").get("/x")
    assert isinstance(without, NotAllowed)
    assert isinstance(refused, NotAllowed)
    assert "--api-token-file" in without.next_step
    assert "not valid" in refused.next_step


def test_http_and_https_taken_for_each_other_are_named(serve: Serve) -> None:
    url = serve((200, b"{}"))[0]
    problem = UrlTransport(url.replace("http://", "https://")).get("/x")
    assert str(problem).endswith("what answers there does not speak TLS. Is its address one with http://?")
    with socket.create_server(("127.0.0.1", 0)) as server:

        def hang_up() -> None:
            with server.accept()[0] as connection:
                connection.recv(65_536)

        thread = threading.Thread(target=hang_up)
        thread.start()
        problem = UrlTransport(f"http://127.0.0.1:{server.getsockname()[1]}").get("/x")
        thread.join()
    assert isinstance(problem, Unreachable)
    assert "https://" in problem.next_step


def test_an_api_that_takes_too_long_is_named_with_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.client.url.TIMEOUT_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as server:
        problem = UrlTransport(f"http://127.0.0.1:{server.getsockname()[1]}").get("/x")
    assert isinstance(problem, Unreachable)
    assert problem.cause.endswith("no answer within 0.05 s")


@pytest.mark.parametrize(("content", "words"), [(None, "No such file"), ("", "holds no certificate")])
def test_an_authority_that_can_not_be_read_is_named_with_its_file(
    tmp_path: Path, content: str | None, words: str
) -> None:
    file = tmp_path / "ca.crt"
    if content is not None:
        file.write_text(content)
    problem = UrlTransport("https://127.0.0.1:1", ca_file=str(file)).get("/x")
    assert isinstance(problem, Unreachable)
    assert f"{file}: {words}" in problem.cause


def test_a_token_is_not_sent_in_plain_text_to_another_machine() -> None:
    problem = UrlTransport("http://schedulerlog.example", "secret").get("/pending")
    assert isinstance(problem, Unreachable)
    assert "https" in problem.cause
    assert "secret" not in str(problem)
