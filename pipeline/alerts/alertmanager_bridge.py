"""``python -m pipeline alertmanager``: the alerts topic to an Alertmanager. Each start reads the whole topic again."""

import asyncio
import logging
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import aiohttp
import orjson
from prometheus_client import CollectorRegistry, Counter, disable_created_metrics

from broker.consumer import Connection, connected, new_consumer, reconnecting
from pipeline.alerts.alertmanager import Latest, body
from process.addresses import HostPort, without_user_info
from process.backoff import Backoff
from process.health import always, serving
from process.signals import until_stopped
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
    metrics_address: HostPort | None = None


class Metrics:
    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self.alerts = Counter(
            "schedulerlog_alertmanager_alerts", "Alerts posted, each as often as it was sent.", registry=self.registry
        )
        self.failures = Counter(
            "schedulerlog_alertmanager_failures", "Posts that are tried again.", registry=self.registry
        )


async def run(settings: Settings) -> None:
    """Work until SIGTERM or SIGINT. Raises ``SettingError`` where the metrics address is taken."""
    latest, has_read_all = Latest(), asyncio.Event()
    metrics, kafka, alertmanager = Metrics(), Connection(), Backoff("Alertmanager", 10.0)

    def ready() -> str:
        return "waiting for Alertmanager" if alertmanager.is_waiting else kafka.waiting_for()

    async def session() -> None:
        async with connected(new_consumer(settings.servers, ALERTS.name)) as consumer:
            kafka.established()
            await _read(consumer, latest, has_read_all)

    with serving(settings.metrics_address, metrics.registry, always, ready):
        await until_stopped(reconnecting(session, kafka), _post(settings, latest, has_read_all, metrics, alertmanager))


async def _read(consumer: Any, latest: Latest, has_read_all: asyncio.Event) -> None:
    """Everything on the topic, then what is new."""
    ends = await consumer.end_offsets(consumer.assignment())
    while True:
        for records in (await consumer.getmany(timeout_ms=500)).values():
            for record in records:
                event = decode(record.value, record.headers)
                if isinstance(event, AlertChanged):
                    latest.put(event)
        if all([await consumer.position(partition) >= end for partition, end in ends.items()]):
            has_read_all.set()


async def _post(
    settings: Settings, latest: Latest, has_read_all: asyncio.Event, metrics: Metrics, backoff: Backoff
) -> None:
    sent: dict[str, str] = {}
    sent_at = datetime.min.replace(tzinfo=UTC)
    timeout = aiohttp.ClientTimeout(total=_TIMEOUT_SECONDS)
    await has_read_all.wait()
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
                    metrics.alerts.inc(len(some))
                    sent |= {alert.fingerprint: alert.id for alert in some}
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                sent_at = datetime.min.replace(tzinfo=UTC)
                metrics.failures.inc()
                await backoff.failed(without_user_info(f"{settings.url}: {error or type(error).__name__}"))
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
