"""The latest state of every alert, from the topic of alerts, and the time up to which the rules are evaluated."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from api.memory.topic_replay import replay
from runtime.backoff import Backoff
from runtime.kafka.consumer import TopicPartition
from runtime.kafka.errors import UNAVAILABLE, explain_kafka_error
from runtime.kafka.topics import administration
from runtime.kubernetes.object_fields import parse_moment
from runtime.log_once import LoggedProblem
from runtime.settings.kafka_connection import KafkaConnection
from runtime.settings.names import ALERTS_GROUP
from runtime.signals import run_until_first_ends
from schemas.codec.records import Rejected, decode
from schemas.events import AlertChanged
from schemas.topics import ALERTS

RESOLVED_FOR: Final = timedelta(days=1)
"""Time for which a resolved alert is listed."""
MAX_ALERTS: Final = 10_000
CURRENT_FOR: Final = timedelta(minutes=2)
"""Age of the last evaluation up to which it counts as current; the rules are evaluated every 15 seconds."""
_ASK_SECONDS: Final = 10.0

log = logging.getLogger(__name__)


@dataclass(slots=True)
class AlertMemory:
    """Alerts by fingerprint, the one that changed longest ago first."""

    is_caught_up: bool = False
    evaluated_until: datetime | None = None
    _alerts: dict[str, AlertChanged] = field(default_factory=dict)

    def put(self, alert: AlertChanged) -> None:
        """Store the state of an alert, and forget the oldest beyond ``MAX_ALERTS``."""
        # The topic has one partition, so a later record is the newer state.
        self._alerts.pop(alert.fingerprint, None)
        self._alerts[alert.fingerprint] = alert
        if len(self._alerts) > MAX_ALERTS:
            self._alerts.pop(next(iter(self._alerts)))

    def list_alerts(self, now: datetime) -> list[AlertChanged]:
        """List the alerts that fire, and those resolved within a day."""
        return [
            alert
            for alert in self._alerts.values()
            if alert.state == "firing" or now - alert.changed_at <= RESOLVED_FOR
        ]

    def is_current(self, now: datetime) -> bool:
        """Tell whether the rules were evaluated within two minutes."""
        return self.evaluated_until is not None and now - self.evaluated_until <= CURRENT_FOR


class AlertsTopic:
    """Consumer that fills ``alerts``, at every start from the beginning of the topic."""

    def __init__(self, kafka: KafkaConnection, alerts: AlertMemory) -> None:
        self._kafka, self._alerts = kafka, alerts
        self._rejects = LoggedProblem(partial(log.warning, "alerts: %s; the first: %s"))

    async def follow(self) -> None:
        """Read until cancelled; after a failure, again from the beginning."""
        await run_until_first_ends(
            replay(self._kafka, ALERTS, self._take, self._note_caught_up), self._follow_evaluation()
        )

    def _note_caught_up(self) -> None:
        self._alerts.is_caught_up = True

    async def _take(self, records: Sequence[Any]) -> None:
        for record in records:
            event = decode(record.value, record.headers)
            if isinstance(event, AlertChanged):
                self._alerts.put(event)
            elif isinstance(event, Rejected):
                self._rejects.note("records that are not alerts are left out", event)

    async def _follow_evaluation(self) -> None:
        backoff = Backoff("Kafka", 30.0)
        while True:
            try:
                await self._read_evaluations(backoff)
            except UNAVAILABLE as error:
                await backoff.wait_after_failure(explain_kafka_error(error))

    async def _read_evaluations(self, backoff: Backoff) -> None:
        async with administration(self._kafka) as admin:
            while True:
                offsets = await admin.list_consumer_group_offsets(ALERTS_GROUP)
                backoff.note_success()
                committed = offsets.get(TopicPartition(ALERTS.name, 0))
                self._alerts.evaluated_until = parse_moment(committed.metadata if committed else "")
                await asyncio.sleep(_ASK_SECONDS)
