"""``python -m pipeline alertmanager``: posts the alerts of the topic to an Alertmanager.

The process stores nothing: it reads the topic from its beginning whenever it starts.
"""

import asyncio
import logging
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import aiohttp
import orjson

from pipeline.alerts.alertmanager import LatestAlerts, body
from pipeline.alerts.metrics import BridgeMetrics
from runtime.backoff import Backoff
from runtime.kafka.consumer import Connection, followed, new_consumer, reconnecting
from runtime.settings.addresses import HostPort, without_user_info
from runtime.settings.kafka_connection import KafkaConnection
from runtime.signals import until_stopped
from runtime.telemetry.health import always, serving
from schemas.codec.records import decode
from schemas.events import AlertChanged
from schemas.topics import ALERTS

logger = logging.getLogger(__name__)

MAX_POSTED: Final = 200
"""Alerts in one request, so that thousands of them do not make one huge body."""
_TIMEOUT_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Settings:
    kafka: KafkaConnection
    url: str
    """The Alertmanager's address, without ``/api/v2``."""
    resend: timedelta
    """A firing alert is posted again after this time."""
    base_urls: dict[str, str] = field(default_factory=dict)
    metrics_address: HostPort | None = None


async def run(settings: Settings) -> None:
    """Work until SIGTERM or SIGINT. Raises ``SettingError`` where the metrics address is taken."""
    latest, is_caught_up = LatestAlerts(), asyncio.Event()
    metrics, kafka, alertmanager = BridgeMetrics(), Connection(), Backoff("Alertmanager", 10.0)

    def ready() -> str:
        return "waiting for Alertmanager" if alertmanager.is_waiting else kafka.waiting_for()

    async def session() -> None:
        async with followed(new_consumer(settings.kafka, ALERTS.name), kafka) as consumer:
            await _read(consumer, latest, is_caught_up)

    with serving(settings.metrics_address, metrics.registry, always, ready):
        await until_stopped(reconnecting(session, kafka), _post(settings, latest, is_caught_up, metrics, alertmanager))


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


async def _post(
    settings: Settings, latest: LatestAlerts, is_caught_up: asyncio.Event, metrics: BridgeMetrics, backoff: Backoff
) -> None:
    sent: dict[str, str] = {}
    sent_at = datetime.min.replace(tzinfo=UTC)
    timeout = aiohttp.ClientTimeout(total=_TIMEOUT_SECONDS)
    # Before that an alert may seem to fire that a later record resolves.
    await is_caught_up.wait()
    async with aiohttp.ClientSession(timeout=timeout) as session:
        while True:
            now = datetime.now(UTC)
            alerts = latest.to_post(now)
            if now - sent_at < settings.resend:
                alerts = [alert for alert in alerts if sent.get(alert.fingerprint) != alert.id]
            else:
                sent_at = now
            try:
                for start in range(0, len(alerts), MAX_POSTED):
                    batch = alerts[start : start + MAX_POSTED]
                    # Noted batch by batch: where a later one fails, those before it count as sent.
                    await _post_batch(session, settings, batch, now)
                    metrics.alerts.inc(len(batch))
                    sent |= {alert.fingerprint: alert.id for alert in batch}
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                # An Alertmanager that was down may have lost its alerts: post all of them next time.
                sent_at = datetime.min.replace(tzinfo=UTC)
                metrics.failures.inc()
                await backoff.failed(without_user_info(f"{settings.url}: {error or type(error).__name__}"))
                continue
            backoff.worked()
            sent = {
                alert.fingerprint: sent[alert.fingerprint] for alert in latest.to_post(now) if alert.fingerprint in sent
            }
            # An alert that begins waits a second at most, also where repetitions are minutes apart.
            await asyncio.sleep(min(1.0, settings.resend.total_seconds()))


async def _post_batch(session: Any, settings: Settings, alerts: list[AlertChanged], now: datetime) -> None:
    """Raises ``aiohttp.ClientError`` if another try may succeed."""
    posted = orjson.dumps(body(alerts, now, settings.resend, settings.base_urls))
    headers = {"Content-Type": "application/json"}
    async with session.post(f"{settings.url}/api/v2/alerts", data=posted, headers=headers) as response:
        if response.status == 400:
            # Alertmanager accepts the valid alerts of a batch and answers 400 for the others: no retry can help.
            logger.error("Alertmanager refuses an alert, it is left out: %.500s", await response.text())
        else:
            response.raise_for_status()
