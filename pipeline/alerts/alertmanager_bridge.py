"""``python -m pipeline alertmanager``: posts the alerts of the topic to Prometheus' Alertmanager, to each of its peers.

Alertmanager treats an alert as resolved once its ``endsAt`` has passed. So a firing alert is posted again and again
with an end some way ahead, as Prometheus does; if the bridge dies, its alerts end by themselves. The process stores
nothing: it reads the topic from its beginning whenever it starts.
"""

import asyncio
import logging
import ssl
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Literal

import aiohttp
import orjson
from pydantic import SecretStr

from pipeline.metrics import BridgeMetrics
from runtime.backoff import Backoff
from runtime.kafka.consumer import Connection, create_consumer, followed, keep_reconnecting
from runtime.settings.addresses import HostPort, without_user_info
from runtime.settings.kafka_connection import KafkaConnection
from runtime.signals import run_until_stopped
from runtime.telemetry.health import report_no_problem, serving
from schemas.codec.records import decode, format_rfc3339
from schemas.events import AlertChanged
from schemas.topics import ALERTS

ENDS_AFTER_RESENDS: Final = 4
"""Resend intervals until an alert ends, as in Prometheus: three posts in a row may fail before that."""
RESOLVED_FOR: Final = timedelta(minutes=15)
"""Time for which a resolved alert is posted, so that an Alertmanager that was down receives it too."""


class LatestAlerts:
    """The latest state of every alert on the topic."""

    def __init__(self) -> None:
        self._alerts: dict[str, AlertChanged] = {}

    def __len__(self) -> int:
        return len(self._alerts)

    def put(self, alert: AlertChanged) -> None:
        # The topic has one partition, so a later record is the newer state.
        self._alerts[alert.fingerprint] = alert

    def list_current(self, now: datetime) -> list[AlertChanged]:
        """List the alerts that fire or were resolved recently, and drop the others."""
        for fingerprint, alert in list(self._alerts.items()):
            if alert.state == "resolved" and now - alert.changed_at > RESOLVED_FOR:
                del self._alerts[fingerprint]
        return list(self._alerts.values())


Language = Literal["en", "zh"]


def to_body(
    alerts: Iterable[AlertChanged],
    now: datetime,
    resend: timedelta,
    base_urls: dict[str, str],
    language: Language = "en",
) -> list[dict[str, Any]]:
    """Make the JSON to post. ``base_urls`` are the addresses of the ``api`` and ``opensearch`` for people, by that
    name; ``language`` is that of the summary."""
    return [_to_posted(alert, now, resend, base_urls, language) for alert in alerts]


def _to_posted(
    alert: AlertChanged, now: datetime, resend: timedelta, base_urls: dict[str, str], language: Language
) -> dict[str, Any]:
    ends_at = alert.changed_at if alert.state == "resolved" else now + ENDS_AFTER_RESENDS * resend
    queries = {f"query_{kind}": query for kind, query in alert.query.items()}
    # Numbers are annotations: as labels they would make every change a new alert.
    numbers = {name: f"{number:g}" for name, number in alert.numbers.items()}
    # Alerts of older versions have their summary in English only.
    summary = (alert.summary_zh if language == "zh" else "") or alert.summary
    posted = {
        "labels": {"alertname": alert.rule, "severity": alert.severity} | alert.labels,
        "annotations": {"summary": summary} | numbers | queries,
        "startsAt": format_rfc3339(alert.started_at),
        "endsAt": format_rfc3339(ends_at),
    }
    urls = (f"{base_urls[kind]}{path}" for kind, path in alert.query.items() if base_urls.get(kind))
    # It has to be a URI in Alertmanager's schema, so it is left out without a base URL.
    return posted | ({"generatorURL": url} if (url := next(urls, "")) else {})


logger = logging.getLogger(__name__)

MAX_POSTED: Final = 200
"""Alerts in one request, so that thousands of them do not make one huge body."""
_TIMEOUT_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Settings:
    kafka: KafkaConnection
    urls: Sequence[str]
    """The addresses of the Alertmanager's peers, without ``/api/v2``: each is sent every alert, as they expect."""
    resend: timedelta
    """A firing alert is posted again after this time."""
    base_urls: dict[str, str] = field(default_factory=dict)
    metrics_address: HostPort | None = None
    ca_file: Path | None = None
    """Authorities that may have signed the peers' certificates; None: the system's."""
    token: SecretStr | None = None
    """Bearer token."""
    language: Language = "en"
    """Language of the annotation ``summary``."""


async def run(settings: Settings) -> None:
    """Work until SIGTERM or SIGINT. Raises ``SettingError`` where the metrics address is taken."""
    latest, is_caught_up = LatestAlerts(), asyncio.Event()
    metrics, kafka = BridgeMetrics(), Connection()
    peers = [Peer(settings, url, metrics) for url in settings.urls]

    def check_ready() -> str:
        waiting = [without_user_info(peer.url) for peer in peers if peer.waiting.is_waiting]
        return f"waiting for Alertmanager at {', '.join(waiting)}" if waiting else kafka.describe_wait()

    async def run_session() -> None:
        async with followed(create_consumer(settings.kafka, ALERTS.name), kafka) as consumer:
            await _read(consumer, latest, is_caught_up)

    with serving(settings.metrics_address, metrics.registry, report_no_problem, check_ready):
        await run_until_stopped(
            keep_reconnecting(run_session, kafka), *(peer.post(latest, is_caught_up) for peer in peers)
        )


async def _read(consumer: Any, latest: LatestAlerts, is_caught_up: asyncio.Event) -> None:
    """Read everything on the topic, then what is added; set ``is_caught_up`` once the end is reached."""
    ends = await consumer.end_offsets(consumer.assignment())
    while True:
        for records in (await consumer.getmany(timeout_ms=500)).values():
            for record in records:
                event = decode(record.value, record.headers)
                if isinstance(event, AlertChanged):
                    latest.put(event)
        if all([await consumer.position(partition) >= end for partition, end in ends.items()]):
            is_caught_up.set()


class Peer:
    """One Alertmanager, which is sent all alerts whether the others answer or not."""

    def __init__(self, settings: Settings, url: str, metrics: BridgeMetrics) -> None:
        """Post to ``url`` by these settings."""
        self.url, self.waiting = url, Backoff("Alertmanager", 10.0)
        self._settings, self._metrics = settings, metrics
        self._sent: dict[str, str] = {}
        """By fingerprint, the id of the alert's state that was sent last."""

    async def post(self, latest: LatestAlerts, is_caught_up: asyncio.Event) -> None:
        """Post what changes, and what fires again and again, until cancelled."""
        resend = self._settings.resend
        sent_at = datetime.min.replace(tzinfo=UTC)
        # Before that an alert may seem to fire that a later record resolves.
        await is_caught_up.wait()
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_TIMEOUT_SECONDS)) as session:
            while True:
                now = datetime.now(UTC)
                alerts = latest.list_current(now)
                is_due = now - sent_at >= resend
                new = [alert for alert in alerts if is_due or self._sent.get(alert.fingerprint) != alert.id]
                sent_at = now if is_due else sent_at
                try:
                    await self._post_all(session, new, now)
                except (aiohttp.ClientError, OSError, TimeoutError) as error:
                    # An Alertmanager that was down may have lost its alerts: post all of them next time.
                    sent_at = datetime.min.replace(tzinfo=UTC)
                    self._metrics.failures.inc()
                    cause = f"{self.url}: {error or type(error).__name__}"
                    await self.waiting.wait_after_failure(without_user_info(cause))
                    continue
                self.waiting.note_success()
                current = {alert.fingerprint for alert in alerts}
                self._sent = {name: alert_id for name, alert_id in self._sent.items() if name in current}
                # An alert that begins waits a second at most, also where repetitions are minutes apart.
                await asyncio.sleep(min(1.0, resend.total_seconds()))

    async def _post_all(self, session: aiohttp.ClientSession, alerts: Sequence[AlertChanged], now: datetime) -> None:
        for start in range(0, len(alerts), MAX_POSTED):
            batch = alerts[start : start + MAX_POSTED]
            # Noted batch by batch: where a later one fails, those before it count as sent.
            await self._post_batch(session, batch, now)
            self._metrics.alerts.inc(len(batch))
            self._sent |= {alert.fingerprint: alert.id for alert in batch}

    async def _post_batch(self, session: aiohttp.ClientSession, alerts: Sequence[AlertChanged], now: datetime) -> None:
        """Post a batch. Raises ``aiohttp.ClientError`` if another try may succeed."""
        settings = self._settings
        posted = orjson.dumps(to_body(alerts, now, settings.resend, settings.base_urls, settings.language))
        headers = {"Content-Type": "application/json"}
        if settings.token:
            headers["Authorization"] = f"Bearer {settings.token.get_secret_value()}"
        # Read again for each batch, as the token's: both files may be replaced while this runs.
        trusted = ssl.create_default_context(cafile=settings.ca_file) if settings.ca_file else True
        path = f"{self.url}/api/v2/alerts"
        async with session.post(path, data=posted, headers=headers, ssl=trusted) as response:
            if response.status == 400:
                # Alertmanager accepts the valid alerts of a batch and answers 400 for the others: no retry can help.
                logger.error("Alertmanager refuses an alert, it is left out: %.500s", await response.text())
            else:
                response.raise_for_status()
