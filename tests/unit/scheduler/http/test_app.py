"""Callers that may filter and bind (H1 of the review in docs/security-review.md), and the traces of callers."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import Request

from runtime.http.bodies import Bodies
from scheduler.http.app import EVERYBODY, AllowedCallers, create_app
from scheduler.http.server import KNOWN_CLIENT
from schemas.codec.trace_context import NO_TRACE, Trace, trace_of
from tests.support.builders.kube_objects import a_node, a_pod
from tests.support.harness.scheduler_app import Serving


def a_request(host: str | None, *, with_certificate: bool = False) -> Request:
    scope: dict[str, Any] = {"type": "http", "client": (host, 40_000) if host else None, "headers": []}
    if with_certificate:
        scope["extensions"] = {KNOWN_CLIENT: {}}
    return Request(scope)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1"])
def test_a_caller_on_loopback_is_one_of_this_pod(host: str) -> None:
    assert AllowedCallers(are_on_loopback=True).explain_refusal(a_request(host)) == ""


@pytest.mark.parametrize("host", ["10.1.2.3", "::ffff:10.1.2.3", "fe80::1", "2001:db8::7f00:1", "localhost", None])
def test_h1_every_other_caller_is_refused_with_what_to_do(host: str | None) -> None:
    assert "--loopback-callers-only" in AllowedCallers(are_on_loopback=True).explain_refusal(a_request(host))


def test_h1_where_both_are_asked_for_one_is_not_enough() -> None:
    both = AllowedCallers(have_certificate=True, are_on_loopback=True)
    assert "certificate" in both.explain_refusal(a_request("127.0.0.1"))
    assert "loopback" in both.explain_refusal(a_request("10.1.2.3", with_certificate=True))
    assert both.explain_refusal(a_request("127.0.0.1", with_certificate=True)) == ""


def test_without_a_setting_everybody_may() -> None:
    assert EVERYBODY.explain_refusal(a_request("10.1.2.3")) == ""


async def test_h1_another_caller_reaches_the_webhook_and_probes_alone(tmp_path: Path) -> None:
    serving = Serving(tmp_path, a_node("node1"))
    app = create_app(
        serving.scheduler,
        serving.metrics,
        dict,
        Bodies(100_000),
        review=lambda _: b"{}",
        callers=AllowedCallers(are_on_loopback=True),
    )
    body = {"Pod": a_pod(), "NodeNames": ["node1"]}
    answers = {}
    for host in ("127.0.0.1", "10.1.2.3"):
        transport = httpx.ASGITransport(app, client=(host, 40_000))
        async with httpx.AsyncClient(transport=transport, base_url="http://scheduler") as client:
            posted = [(await client.post(path, json=body)).status_code for path in ("/filter", "/bind", "/webhook")]
            answers[host] = [*posted, (await client.get("/healthz")).status_code]
    await serving.close()
    assert answers == {"127.0.0.1": [200, 200, 200, 200], "10.1.2.3": [403, 403, 200, 200]}


# The examples of W3C's Trace Context.
PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.mark.parametrize(
    ("headers", "trace"),
    [
        # Several lines are one list (section 3.3.1).
        (
            [("traceparent", PARENT), ("tracestate", "rojo=00f067aa0ba902b7"), ("tracestate", "congo=t61rcWkgMzE")],
            Trace(PARENT.encode(), b"rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"),
        ),
        ([("traceparent", PARENT), ("tracestate", "rojo")], Trace(PARENT.encode())),
        ([("tracestate", "rojo=00f067aa0ba902b7")], NO_TRACE),
    ],
)
async def test_the_callers_trace_is_that_of_every_record(
    tmp_path: Path, headers: list[tuple[str, str]], trace: Trace
) -> None:
    serving = Serving(tmp_path, a_node("node1"))
    # What is known of the cluster is recorded before anybody asks.
    serving.take_events()
    body = {"Pod": a_pod(), "NodeNames": ["node1"]}
    assert (await serving.http.post("/filter", json=body, headers=headers)).json()["NodeNames"] == ["node1"]
    batch = serving.spool.take_batch()
    assert batch is not None
    decided = [trace_of(entry.record.headers) for entry in batch.entries if entry.topic == "schedulerlog.decisions"]
    assert {*decided} == {trace}
