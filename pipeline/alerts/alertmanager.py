"""Alerts in the form of ``POST /api/v2/alerts`` of Prometheus' Alertmanager. Pure.

Alertmanager treats an alert as resolved once its ``endsAt`` has passed. So a firing alert is posted again and again
with an end some way ahead, as Prometheus does; if the bridge dies, its alerts end by themselves.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final

from schemas.codec.records import rfc3339
from schemas.events import AlertChanged

ENDS_AFTER_RESENDS: Final = 4
"""As Prometheus does: three posts in a row may fail before an alert ends."""
RESOLVED_FOR: Final = timedelta(minutes=15)
"""A resolved alert is posted for this long, so that an Alertmanager that was down receives it too."""


class LatestAlerts:
    """The latest state of every alert on the topic."""

    def __init__(self) -> None:
        self._alerts: dict[str, AlertChanged] = {}

    def __len__(self) -> int:
        return len(self._alerts)

    def put(self, alert: AlertChanged) -> None:
        # The topic has one partition, so a later record is the newer state.
        self._alerts[alert.fingerprint] = alert

    def to_post(self, now: datetime) -> list[AlertChanged]:
        """All that fire or were resolved recently. The others are dropped."""
        for fingerprint, alert in list(self._alerts.items()):
            if alert.state == "resolved" and now - alert.changed_at > RESOLVED_FOR:
                del self._alerts[fingerprint]
        return list(self._alerts.values())


def body(
    alerts: Iterable[AlertChanged], now: datetime, resend: timedelta, base_urls: dict[str, str]
) -> list[dict[str, Any]]:
    """The JSON to post. ``base_urls``: where people reach the ``api`` and ``opensearch``, by that name."""
    return [_posted(alert, now, resend, base_urls) for alert in alerts]


def _posted(alert: AlertChanged, now: datetime, resend: timedelta, base_urls: dict[str, str]) -> dict[str, Any]:
    ends_at = alert.changed_at if alert.state == "resolved" else now + ENDS_AFTER_RESENDS * resend
    queries = {f"query_{kind}": query for kind, query in alert.query.items()}
    # Numbers are annotations: as labels they would make every change a new alert.
    numbers = {name: f"{number:g}" for name, number in alert.numbers.items()}
    posted = {
        "labels": {"alertname": alert.rule, "severity": alert.severity} | alert.labels,
        "annotations": {"summary": alert.summary} | numbers | queries,
        "startsAt": rfc3339(alert.started_at),
        "endsAt": rfc3339(ends_at),
    }
    urls = (f"{base_urls[kind]}{path}" for kind, path in alert.query.items() if base_urls.get(kind))
    # It has to be a URI in Alertmanager's schema, so it is left out if no base URL is known.
    return posted | ({"generatorURL": url} if (url := next(urls, "")) else {})
