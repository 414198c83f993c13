"""Who may filter and bind (H1 of the review in docs/security.md)."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import Request

from runtime.http.bodies import Bodies
from scheduler.http.app import create_app
from scheduler.http.callers import EVERYBODY, AllowedCallers
from scheduler.http.server import KNOWN_CLIENT
from tests.support.builders.kube_objects import a_node, a_pod
from tests.support.harness.scheduler_app import Serving


def a_request(host: str | None, *, with_certificate: bool = False) -> Request:
    scope: dict[str, Any] = {"type": "http", "client": (host, 40_000) if host else None, "headers": []}
    if with_certificate:
        scope["extensions"] = {KNOWN_CLIENT: {}}
    return Request(scope)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1"])
def test_a_caller_on_loopback_is_one_of_this_pod(host: str) -> None:
    assert AllowedCallers(are_on_loopback=True).refusal(a_request(host)) == ""


@pytest.mark.parametrize("host", ["10.1.2.3", "::ffff:10.1.2.3", "fe80::1", "2001:db8::7f00:1", "localhost", None])
def test_h1_every_other_caller_is_refused_with_what_to_do(host: str | None) -> None:
    assert "--loopback-callers-only" in AllowedCallers(are_on_loopback=True).refusal(a_request(host))


def test_h1_where_both_are_asked_for_one_is_not_enough() -> None:
    both = AllowedCallers(have_certificate=True, are_on_loopback=True)
    assert "certificate" in both.refusal(a_request("127.0.0.1"))
    assert "loopback" in both.refusal(a_request("10.1.2.3", with_certificate=True))
    assert both.refusal(a_request("127.0.0.1", with_certificate=True)) == ""


def test_without_a_setting_everybody_may() -> None:
    assert EVERYBODY.refusal(a_request("10.1.2.3")) == ""


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
