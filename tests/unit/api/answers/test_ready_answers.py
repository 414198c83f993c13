"""A pod's answer is kept as it was sent: for who may read it, and while the attempt is the latest one."""

import asyncio
import base64
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from api.answers import ready_answers
from api.answers.attempt_lookup import StoredAttempt
from api.http.json_protocol import JsonProtocol
from runtime.telemetry.otlp import OtlpTracing
from tests.support.builders.events import STARTED, a_summary
from tests.support.fakes.reviews import ACCESS_REVIEW, Grant
from tests.support.harness.api_app import POD, Caller, refuse
from tests.support.harness.guarded_api import OTHER, READS_LLM, Guarded
from tests.support.harness.over_http import Connection


class Reached:
    """An application that notes what reaches it, and answers 404."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.paths.append(scope["path"])
        await PlainTextResponse("", 404)(scope, receive, send)


async def settle() -> None:
    """Return when the application has answered what it can."""
    for _ in range(500):
        await asyncio.sleep(0)


def connect(caller: Caller, reached: Reached) -> tuple[JsonProtocol, Connection]:
    """Connect to a server with the ready answers of ``caller``, and another application."""
    over_http: Any = caller.client._transport
    connection: tuple[JsonProtocol, Connection] = over_http.connect(reached)
    return connection


def _get(path: str, *headers: str, host: str = "localhost") -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", f"Host: {host}", *headers, "", ""]).encode()


@pytest.fixture
async def caller() -> AsyncIterator[Caller]:
    caller = Caller(refuse, is_over_http=True)
    caller.remember(a_summary(ended_at=STARTED))
    yield caller
    await caller.client.aclose()


@pytest.fixture
def rendered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of the answers that the handler made."""
    paths = []

    def note_path(request: Request, attempt: StoredAttempt) -> None:
        paths.append(request.url.path)
        ready_answers.allow_caching(request, attempt)

    monkeypatch.setattr("api.handlers.schedulerlog.allow_caching", note_path)
    return paths


async def test_the_second_answer_is_the_first_one_and_is_counted_as_it(caller: Caller, rendered: list[str]) -> None:
    first, second, third = [await caller.get(POD) for _ in range(3)]
    assert rendered == [POD]
    assert first.content == second.content == third.content
    assert first.headers == second.headers == third.headers
    metrics = (await caller.get("/metrics")).text
    route = 'route="/api/v1/namespaces/{namespace}/pods/{name}/schedulerlog"'
    assert f'schedulerlog_api_requests_total{{{route},status="200"}} 3.0' in metrics
    assert 'schedulerlog_api_lookups_total{outcome="hit"} 3.0' in metrics


async def test_what_becomes_known_later_is_answered_at_once(caller: Caller, rendered: list[str]) -> None:
    before = [await caller.get(POD) for _ in range(2)]
    caller.remember(a_summary(["node7"], version=2, ended_at=STARTED))
    after = [await caller.get(POD) for _ in range(2)]
    assert [[node["name"] for node in answer.json()["filter"]["nodes"]] for answer in after] == [["node7"]] * 2
    assert before[1].headers["etag"] != after[1].headers["etag"]
    assert rendered == [POD] * 2


async def test_parameters_tags_and_other_methods_are_answered_by_the_handler(caller: Caller) -> None:
    tag = (await caller.get(POD)).headers["etag"]
    assert len((await caller.get(POD + "?node=node2")).json()["filter"]["nodes"]) == 1
    assert (await caller.get(POD + "?nonsense=1")).status_code == 400
    assert (await caller.get(POD, **{"If-None-Match": tag})).status_code == 304
    assert (await caller.client.post(POD)).status_code == 405
    head = await caller.client.head(POD)
    assert (head.status_code, head.content, head.headers["etag"]) == (200, b"", tag)


async def test_while_kafka_is_away_memory_is_no_longer_current(caller: Caller, rendered: list[str]) -> None:
    await caller.get(POD)
    caller.remember(following=False)
    # The index is asked too; it is down, so that memory is the better answer.
    assert (await caller.get(POD)).status_code == 200
    assert rendered == [POD] * 2


@pytest.mark.parametrize("path", [POD, "/api/v1/clusters/default" + POD.removeprefix("/api/v1")])
async def test_a_ready_answer_reaches_no_application(caller: Caller, path: str) -> None:
    first = await caller.get(path)
    protocol, connection = connect(caller, reached := Reached())
    protocol.data_received(_get(path) * 2)
    answers = connection.written.split(b"HTTP/1.1 200 OK\r\n")[1:]
    assert len(answers) == 2
    for answer in answers:
        fields, _, body = answer.partition(b"\r\n\r\n")
        assert body == first.content
        assert [tuple(line.split(b": ", 1)) for line in fields.split(b"\r\n")] == first.headers.raw
    assert not reached.paths


@pytest.mark.parametrize(
    "request_sent",
    [
        *(_get(POD, field) for field in ("If-None-Match: x", "Connection: close", "Expect: 100-continue")),
        _get(POD, "Content-Length: 1") + b"x",
        _get(POD, "Transfer-Encoding: chunked") + b"0\r\n\r\n",
        _get(POD, "Connection: Upgrade", "Upgrade: h2c"),
        _get(POD).replace(b"HTTP/1.1", b"HTTP/1.0"),
        *(_get(POD).replace(b"GET", method) for method in (b"HEAD", b"POST", b"DELETE")),
        *(_get(POD + more) for more in ("?", "?node=n", "/", "#")),
        _get("http://localhost" + POD),
        _get(POD.replace("llm", "ll%6d")),
        *(_get(POD, host=host) for host in ("rebound.example.org", "localhost\r\nHost: localhost")),
    ],
    ids=str,
)
async def test_what_is_asked_beyond_the_path_is_left_to_the_application(caller: Caller, request_sent: bytes) -> None:
    await caller.get(POD)
    protocol, connection = connect(caller, reached := Reached())
    protocol.data_received(request_sent)
    await settle()
    assert len(reached.paths) == 1
    assert connection.written.startswith(b"HTTP/1.1 404")
    protocol.connection_lost(None)


async def test_an_answer_waits_for_those_before_it(caller: Caller) -> None:
    await caller.get(POD)
    protocol, connection = connect(caller, Reached())
    protocol.data_received(_get("/other") + _get(POD))
    # The application has been started for the first, and has not answered yet.
    assert not connection.written
    await settle()
    protocol.data_received(_get(POD))
    assert re.findall(rb"HTTP/1.1 (\d+)", connection.written) == [b"404", b"404", b"200"]
    protocol.connection_lost(None)


async def test_no_more_is_sent_to_a_client_that_takes_nothing(caller: Caller) -> None:
    await caller.get(POD)
    protocol, connection = connect(caller, Reached())
    protocol.pause_writing()
    protocol.data_received(_get(POD) * 20)
    await settle()
    assert not connection.written
    protocol.resume_writing()
    await settle()
    assert connection.written.count(b"HTTP/1.1") == 20
    protocol.connection_lost(None)


async def test_a_token_that_has_ended_and_a_right_that_is_unknown_are_left_to_the_gate() -> None:
    api = Guarded()
    api.begin()
    ends = base64.urlsafe_b64encode(b'{"exp": 2000}').decode().rstrip("=")
    api.reviews.build_header("alice", READS_LLM)
    api.reviews.users[token := f"h.{ends}.s"] = api.reviews.users["token-of-alice"]
    header = {"Authorization": f"Bearer {token}"}
    assert [await api.get_status(POD, header) for _ in range(2)] == [200, 200]
    # By the wall clock, while by the other one no second has passed.
    api.today.now = 2000
    assert await api.get_status(POD, header) == 401
    bob = api.reviews.build_header("bob", Grant("bob", "get", "pods", "llm"))
    assert await api.get_status(OTHER, bob) == 403
    # What bob may read was not asked yet, and alice's answer is there.
    assert await api.get_status(POD, bob) == 200


async def test_a_ready_answer_has_a_span_as_the_first_one() -> None:
    exporter = InMemorySpanExporter()
    tracing = OtlpTracing("", "schedulerlog-api", exporter)
    caller = Caller(refuse, tracing=tracing, is_over_http=True)
    caller.remember(a_summary(ended_at=STARTED))
    for _ in range(2):
        await caller.get(POD, traceparent="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
    tracing.close()
    first, second = exporter.get_finished_spans()
    assert (first.name, first.attributes) == (second.name, second.attributes)
    assert first.parent == second.parent
    assert first.parent is not None


async def test_each_caller_needs_the_right_to_what_another_one_was_answered() -> None:
    api = Guarded()
    api.begin()
    alice = api.reviews.build_header("alice", READS_LLM)
    bob = api.reviews.build_header("bob", Grant("bob", "get", "pods", "other"))
    assert [await api.get_status(POD, header) for header in (alice, alice, bob, {})] == [200, 200, 403, 401]
    api.reviews.grants.discard(READS_LLM)
    api.clock.now += 11
    # Allowed is remembered for ten seconds at most.
    assert await api.get_status(POD, alice) == 403
    namespaces = {spec["resourceAttributes"]["namespace"] for spec in api.reviews.list_specs(ACCESS_REVIEW)}
    assert namespaces == {"llm"}
    answer = await api.client.get(POD, headers=api.reviews.build_header("carol", Grant("carol", "get", "pods", "llm")))
    assert (answer.headers["cache-control"], answer.headers["vary"]) == ("private, no-cache", "Authorization")
