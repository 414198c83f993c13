"""The processes of the alerts on a real Kafka: killed, started again, bridged; and the document's consumer."""

import asyncio
import contextlib
import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from jsonschema import Draft202012Validator, FormatChecker

from api.memory.alert_memory import AlertMemory, AlertsTopic
from dev import embedded
from runtime.settings.kafka_connection import KafkaConnection
from schemas.codec.records import decode, encode
from schemas.events import AlertChanged, Event, MessageLine, MessagesEmitted, PodRef
from schemas.generate import ROOT
from schemas.topics import ALERTS, MESSAGES
from tests.support.harness.forked import Forked
from tests.support.harness.topics import provision_all
from tests.support.waiting import eventually_async

GETTABLE = {"type": "string", "format": "date-time"}
LABELS = {"type": "object", "additionalProperties": {"type": "string"}}
POSTABLE_ALERTS = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["labels"],
        "additionalProperties": False,
        "properties": {
            "startsAt": GETTABLE,
            "endsAt": GETTABLE,
            "labels": LABELS,
            "annotations": LABELS,
            "generatorURL": {"type": "string", "format": "uri"},
        },
    },
}
"""``postableAlerts`` of Alertmanager's api/v2/openapi.yaml."""


@pytest.fixture
async def kafka(own_backends: Callable[..., embedded.Backends]) -> str:
    servers: str = own_backends(only="kafka").bootstrap_servers
    await provision_all(servers)
    return servers


@contextlib.contextmanager
def running(log: Path, *arguments: str) -> Iterator[Forked]:
    with log.open("ab") as output:
        process = Forked("pipeline", *arguments, stdout=output, stderr=output)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(timeout=120)


def build_refusals(pod: str, *minutes_ago: float) -> list[MessagesEmitted]:
    now = datetime.now(UTC)
    common = {"cluster": "default", "scheduler": "hami-scheduler", "severity": "Warning", "reason": "FilteringFailed"}
    ref = PodRef(namespace="ml", name=pod, uid=f"uid-{pod}")
    return [
        MessagesEmitted.model_validate(
            common
            | {
                "pod": ref,
                "lines": [{"code": code, "message": "3 nodes NumaNotFit(a,b,c)"} for code in ("NumaNotFit", "")],
            }
            | {
                "attempt_id": f"{pod}-{ago}",
                "started_at": now - timedelta(minutes=ago),
                "reported_at": now - timedelta(minutes=ago),
            }
        )
        for ago in minutes_ago
    ]


def bound(pod: str) -> MessagesEmitted:
    line = MessageLine(message="Successfully binding node [a]")
    (refusal,) = build_refusals(pod, 0)
    return refusal.model_copy(update={"severity": "Normal", "reason": "BindingSucceed", "lines": [line]})


async def send(kafka: str, events: Sequence[Event], topic: str = MESSAGES.name) -> None:
    async with AIOKafkaProducer(bootstrap_servers=kafka, enable_idempotence=True) as producer:
        for record in map(encode, events):
            await producer.send(topic, record.value, key=record.key, headers=record.headers)
        await producer.flush()


async def wait_for_alerts(kafka: str, count: int, log: Path, seconds: float = 60) -> list[tuple[str, str]]:
    """Wait until there are so many alerts on the topic, and return state and pod of each."""
    events: list[Any] = []
    async with AIOKafkaConsumer(ALERTS.name, bootstrap_servers=kafka, auto_offset_reset="earliest") as consumer:
        deadline = time.monotonic() + seconds
        while len(events) < count:
            assert time.monotonic() < deadline, (events, log.read_text()[-2_000:])  # noqa: ASYNC240 - the test is over
            for records in (await consumer.getmany(timeout_ms=500)).values():
                events += [decode(record.value, record.headers) for record in records]
    return [(alert.state, alert.labels["pod"]) for alert in events if isinstance(alert, AlertChanged)]


async def wait_for_api_to_read(kafka: str) -> None:
    """Wait until the API's memory has the latest state of both alerts, and the process's time of evaluation."""
    latest = AlertMemory()
    following = asyncio.create_task(AlertsTopic(KafkaConnection(kafka_bootstrap_servers=kafka), latest).follow())

    def list_states() -> list[tuple[str, str]]:
        return sorted((alert.labels["pod"], alert.state) for alert in latest.list_alerts(datetime.now(UTC)))

    try:
        await eventually_async(
            lambda: (
                latest.is_caught_up
                and latest.is_current(datetime.now(UTC))
                and list_states() == [("old", "resolved"), ("other", "firing")]
            ),
            lambda: f"{list_states()}, evaluated until {latest.evaluated_until}",
        )
    finally:
        following.cancel()
        await asyncio.wait([following])


class Alertmanager:
    """Accepts what Alertmanager's schema allows from who has its token; answers 503 while ``is_down``."""

    def __init__(self) -> None:
        self.token = "first"  # noqa: S105 - of a server that ends with the test
        self.refused = 0
        self.posts: list[list[dict[str, Any]]] = []
        self.wrong: list[str] = []
        self.is_down = False

    def list_states(self) -> dict[str, bool]:
        """Tell by pod whether it fires by the latest post about it, as Alertmanager sees it when that comes."""
        alerts = [alert for post in self.posts for alert in post]
        return {alert["labels"]["pod"]: parse_time(alert["endsAt"]) > datetime.now(UTC) for alert in alerts}


def parse_time(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.fixture
def alertmanager() -> Iterator[tuple[Alertmanager, str]]:
    taken = Alertmanager()
    validator = Draft202012Validator(POSTABLE_ALERTS, format_checker=FormatChecker())

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            right = self.path == "/api/v2/alerts" and self.headers["Content-Type"] == "application/json"
            taken.wrong += [error.message for error in validator.iter_errors(body)] + ([] if right else [self.path])
            status = 503 if taken.is_down else 200
            if self.headers["Authorization"] != f"Bearer {taken.token}":
                status, taken.refused = 401, taken.refused + 1
            if status == 200:
                taken.posts.append(body)
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield taken, f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


async def test_alerts_fire_once_and_resolve_once_also_when_killed_and_reach_alertmanager(
    kafka: str, alertmanager: tuple[Alertmanager, str], tmp_path: Path
) -> None:
    log, (taken, url), token = tmp_path / "log", alertmanager, tmp_path / "token"
    token.write_text(taken.token)
    alerts = ["alerts", "--kafka", kafka]
    bridge = ["alertmanager", "--kafka", kafka, "--url", url, "--token-file", str(token)]
    await send(kafka, build_refusals("old", 40, 35, 30, 25, 10, 1) + build_refusals("young", 5, 1))
    taken.is_down = True
    with running(log, *bridge, "--resend", "1", "--api-url", "http://a"):
        with running(log, *alerts) as process:
            assert await wait_for_alerts(kafka, 1, log) == [("firing", "old")]
            process.kill()
            process.wait()
        taken.is_down = False
        await eventually_async(lambda: taken.list_states() == {"old": True}, lambda: f"{taken.posts} {log.read_text()}")
        # What happens while no process runs is published by the next one.
        await send(kafka, [bound("old"), *build_refusals("other", 45, 40, 35, 20, 5)])
        with running(log, *alerts):
            assert sorted(await wait_for_alerts(kafka, 3, log)) == [
                ("firing", "old"),
                ("firing", "other"),
                ("resolved", "old"),
            ]
            await wait_for_api_to_read(kafka)
        await eventually_async(
            lambda: taken.list_states() == {"old": False, "other": True}, lambda: f"{taken.posts} {log.read_text()}"
        )
        resent = len(taken.posts)
        await eventually_async(lambda: len(taken.posts) > resent + 1, lambda: "nothing is sent again")
        # Alertmanager begins with another token: alerts wait for the file, and none has ended until it is there.
        taken.token = "second"  # noqa: S105
        await eventually_async(lambda: taken.refused > 0, log.read_text)
        token.write_text(taken.token)
        resent = len(taken.posts)
        await eventually_async(lambda: len(taken.posts) > resent, log.read_text)
        assert taken.list_states()["other"]
    assert taken.wrong == []
    (first, *_), *_ = taken.posts
    rule = {"alertname": "PodPendingForLong", "severity": "warning"}
    assert first["labels"] == rule | {"cluster": "default", "namespace": "ml", "pod": "old"}
    assert first["generatorURL"] == "http://a/api/v1/clusters/default/namespaces/ml/pods/old/schedulerlog/history"
    later = taken.posts[-1][0]
    assert later["startsAt"] < later["endsAt"]
    await _run_documented_consumer(kafka)


async def test_of_several_processes_one_publishes_and_another_takes_over(kafka: str, tmp_path: Path) -> None:
    log, alerts = tmp_path / "log", ["alerts", "--kafka", kafka]
    expected: list[tuple[str, str]] = []

    async def expect(pod: str) -> None:
        await send(kafka, build_refusals(pod, 40, 35, 30, 25, 10, 1))
        expected.append(("firing", pod))
        assert await wait_for_alerts(kafka, len(expected), log) == expected

    with running(log, *alerts) as first:
        await expect("first")
        with running(log, *alerts) as second:
            await expect("second")
            first.kill()
            first.wait()
            await expect("third")
            with running(log, *alerts):
                second.kill()
                second.wait()
                await expect("fourth")


async def _run_documented_consumer(kafka: str) -> None:
    """Run the block of docs/alerting.md as it stands there."""
    page = (ROOT / "docs/alerting.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert sum(bool(line.strip()) for line in code.splitlines()) <= 20
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-uc", code, env=os.environ | {"SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS": kafka},
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout
    lines = [(await asyncio.wait_for(process.stdout.readline(), 20)).decode().strip() for _ in range(3)]
    process.kill()
    await process.wait()
    assert lines[0].startswith("firing PodPendingForLong: ml/old has been refused for 4")
    assert sorted(line.split(":")[0] for line in lines[1:]) == [
        "firing PodPendingForLong",
        "resolved PodPendingForLong",
    ]
