"""Alertmanager's peers on real connections: each is sent every alert, over TLS and with a token that may change."""

import asyncio
import ssl
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from typer.testing import CliRunner

from pipeline.__main__ import app
from pipeline.alerts.alertmanager_bridge import Language, LatestAlerts, Peer, Settings, to_body
from pipeline.metrics import BridgeMetrics
from runtime.settings.kafka_connection import KafkaConnection
from runtime.settings.secret_files import FileSecret
from schemas.events import AlertChanged
from tests.support.certificates import Authority
from tests.support.waiting import eventually_async

KAFKA = KafkaConnection(kafka_bootstrap_servers="127.0.0.1:1")


def an_alert(name: str) -> AlertChanged:
    now = datetime.now(UTC)
    return AlertChanged(
        cluster="c", rule="queue", severity="warning", state="firing", labels={"queue": name}, summary="It waits.",
        started_at=now, changed_at=now, numbers={}, query={},
    )  # fmt: skip


@dataclass
class Alertmanager:
    """An endpoint that takes alerts; ``status`` is its answer, and 401 without the ``token`` that it may have."""

    url: str = ""
    status: int = 200
    token: str = ""
    queues: list[str] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)

    async def take(self, request: web.Request) -> web.Response:
        posted: list[dict[str, Any]] = await request.json()
        self.tokens.append(request.headers.get("Authorization", ""))
        status = self.status if not self.token or self.tokens[-1] == f"Bearer {self.token}" else 401
        if status == web.HTTPOk.status_code:
            self.queues += [alert["labels"]["queue"] for alert in posted]
        return web.Response(status=status)


@asynccontextmanager
async def served(context: ssl.SSLContext | None = None) -> AsyncIterator[Alertmanager]:
    alertmanager = Alertmanager()
    application = web.Application()
    application.router.add_post("/api/v2/alerts", alertmanager.take)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    port = runner.addresses[0][1]
    alertmanager.url = f"{'https' if context else 'http'}://127.0.0.1:{port}"
    try:
        yield alertmanager
    finally:
        await runner.cleanup()


@asynccontextmanager
async def posting(settings: Settings, latest: LatestAlerts) -> AsyncIterator[list[Peer]]:
    is_caught_up = asyncio.Event()
    is_caught_up.set()
    peers = [Peer(settings, url, BridgeMetrics()) for url in settings.urls]
    tasks = [asyncio.create_task(peer.post(latest, is_caught_up)) for peer in peers]
    try:
        yield peers
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_peer_that_is_down_keeps_no_alert_from_the_others() -> None:
    latest = LatestAlerts()
    latest.put(an_alert("team-a"))
    async with served() as works, served() as fails:
        fails.status = 503
        settings = Settings(KAFKA, [fails.url, works.url], timedelta(milliseconds=100))
        async with posting(settings, latest) as (failing, _):
            await eventually_async(lambda: "team-a" in works.queues and failing.waiting.is_waiting)
            latest.put(an_alert("team-b"))
            await eventually_async(lambda: "team-b" in works.queues)
            assert fails.queues == []
            fails.status = 200
            await eventually_async(lambda: {"team-a", "team-b"} <= set(fails.queues))


async def test_alerts_go_over_tls_with_the_token_that_the_file_has_now(tmp_path: Path) -> None:
    authority, token = Authority(tmp_path / "authority"), tmp_path / "token"
    pair = authority.issue("alertmanager")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair.certificate, pair.key)
    token.write_text("first\n")
    latest = LatestAlerts()
    latest.put(an_alert("team-a"))
    async with served(context) as alertmanager:
        settings = Settings(
            KAFKA, [alertmanager.url], timedelta(milliseconds=50), ca_file=authority.ca_file, token=FileSecret(token)
        )
        async with posting(settings, latest):
            await eventually_async(lambda: "Bearer first" in alertmanager.tokens)
            token.write_text("the second\n")
            await eventually_async(lambda: "Bearer the second" in alertmanager.tokens)
        untrusting = Settings(KAFKA, [alertmanager.url], timedelta(milliseconds=50))
        alertmanager.tokens.clear()
        async with posting(untrusting, latest) as (peer,):
            await eventually_async(lambda: peer.waiting.is_waiting)
        assert alertmanager.tokens == []


async def test_a_token_is_replaced_while_alerts_begin_and_each_arrives(tmp_path: Path) -> None:
    token, (before, after) = tmp_path / "token", ("first", "second")
    token.write_text(before)
    latest = LatestAlerts()

    async def begin_alerts(numbers: range) -> None:
        for number in numbers:
            latest.put(an_alert(f"team-{number}"))
            await asyncio.sleep(0.05)

    async with served() as alertmanager:
        alertmanager.token = before
        settings = Settings(KAFKA, [alertmanager.url], timedelta(hours=1), token=FileSecret(token))
        async with posting(settings, latest) as (peer,):
            await begin_alerts(range(20))
            await eventually_async(lambda: "team-19" in alertmanager.queues)
            assert len(alertmanager.queues) == len(set(alertmanager.queues))
            alertmanager.token = after
            await begin_alerts(range(20, 40))
            await eventually_async(lambda: peer.waiting.is_waiting)
            token.write_text(after)
            await begin_alerts(range(40, 60))
            await eventually_async(lambda: "team-59" in alertmanager.queues)
    # After a failure all that fires is posted once more: Alertmanager may have lost what it had.
    counts = Counter(alertmanager.queues)
    assert counts == {f"team-{number}": 2 if number < 20 else 1 for number in range(60)}


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (["--url", "alertmanager:9093"], "--url: not a URL: write for example http://127.0.0.1:9093"),
        (["--url", "http://a:9093", "--url", "b"], "--url: not a URL: write for example http://127.0.0.1:9093"),
        (["--url", "http://a:9093", "--ca-file", "/nowhere"], "--ca-file: /nowhere: No such file or directory"),
        (["--url", "http://a:9093", "--token-file", "/nowhere"], "--token-file: /nowhere: "),
    ],
)
def test_a_mistake_names_its_flag(flags: list[str], problem: str) -> None:
    result = CliRunner().invoke(app, ["alertmanager", "--kafka", "127.0.0.1:1", *flags])
    assert result.exit_code == 2
    assert problem in result.output


def test_the_summary_is_in_the_language_that_is_set() -> None:
    now = datetime.now(UTC)
    alerts = [an_alert("night").model_copy(update={"summary_zh": "它在等待。"}), an_alert("old")]

    def list_summaries(language: Language) -> list[str]:
        body = to_body(alerts, now, timedelta(seconds=60), {}, language)
        return [posted["annotations"]["summary"] for posted in body]

    # Alerts of older versions are in English only.
    assert list_summaries("zh") == ["它在等待。", "It waits."]
    assert list_summaries("en") == ["It waits.", "It waits."]
