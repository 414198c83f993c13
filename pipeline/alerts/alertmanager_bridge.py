"""``python -m pipeline alertmanager``: the alerts topic to an Alertmanager. Nothing is kept: the topic is read anew."""

import asyncio
import logging
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import aiohttp
import orjson
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError

from pipeline.alerts.alertmanager import Latest, body
from pipeline.runtime import until_stopped
from pipeline.sinks.backoff import Backoff
from schemas.codec.records import decode
from schemas.events import AlertChanged
from schemas.topics import ALERTS

logger = logging.getLogger(__name__)

MOST_AT_ONCE: Final = 200
_TIMEOUT_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Settings:
    servers: str
    url: str
    """Of the Alertmanager, without ``/api/v2``."""
    resend: timedelta
    links: dict[str, str] = field(default_factory=dict)


async def run(settings: Settings) -> None:
    """Work until SIGTERM or SIGINT."""
    latest, news = Latest(), asyncio.Event()
    await until_stopped(_read(settings, latest, news), _post(settings, latest, news))


async def _read(settings: Settings, latest: Latest, news: asyncio.Event) -> None:
    """Everything on the topic, then what is new; ``news`` is set when all that is there is read."""
    backoff = Backoff("Kafka", 10.0)
    while True:
        consumer = AIOKafkaConsumer(
            ALERTS.name, bootstrap_servers=settings.servers, group_id=None, auto_offset_reset="earliest"
        )
        try:
            await consumer.start()
            ends = await consumer.end_offsets(consumer.assignment())
            backoff.worked()
            while True:
                for records in (await consumer.getmany(timeout_ms=500)).values():
                    for record in records:
                        event = decode(record.value, record.headers)
                        if isinstance(event, AlertChanged):
                            latest.put(event)
                if all([await consumer.position(each) >= end for each, end in ends.items()]):
                    news.set()
        except (KafkaError, OSError) as error:
            await backoff.failed(f"{type(error).__name__}: {error}")
        finally:
            await consumer.stop()


async def _post(settings: Settings, latest: Latest, news: asyncio.Event) -> None:
    backoff = Backoff("Alertmanager", 10.0)
    sent: dict[str, str] = {}
    sent_at = datetime.min.replace(tzinfo=UTC)
    timeout = aiohttp.ClientTimeout(total=_TIMEOUT_SECONDS)
    await news.wait()
    async with aiohttp.ClientSession(timeout=timeout) as session:
        while True:
            now = datetime.now(UTC)
            alerts = latest.to_send(now)
            if now - sent_at < settings.resend:
                alerts = [alert for alert in alerts if sent.get(alert.fingerprint) != alert.id]
            else:
                sent_at = now
            try:
                for start in range(0, len(alerts), MOST_AT_ONCE):
                    some = alerts[start : start + MOST_AT_ONCE]
                    await _post_some(session, settings, some, now)
                    sent |= {alert.fingerprint: alert.id for alert in some}
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                sent_at = datetime.min.replace(tzinfo=UTC)
                await backoff.failed(f"{settings.url}: {error or type(error).__name__}")
                continue
            backoff.worked()
            sent = {
                alert.fingerprint: sent[alert.fingerprint] for alert in latest.to_send(now) if alert.fingerprint in sent
            }
            await asyncio.sleep(min(1.0, settings.resend.total_seconds()))


async def _post_some(session: Any, settings: Settings, alerts: list[AlertChanged], now: datetime) -> None:
    """Raises ``aiohttp.ClientError`` for what is worth another try."""
    said = orjson.dumps(body(alerts, now, settings.resend, settings.links))
    headers = {"Content-Type": "application/json"}
    async with session.post(f"{settings.url}/api/v2/alerts", data=said, headers=headers) as response:
        if response.status == 400:
            # It has taken those of the batch that are right.
            logger.error("Alertmanager refuses an alert: %.500s", await response.text())
        else:
            response.raise_for_status()
