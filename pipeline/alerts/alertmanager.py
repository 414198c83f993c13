"""Alerts as Prometheus' Alertmanager takes them: ``POST /api/v2/alerts``. Pure.

Alertmanager takes an alert for resolved when its ``endsAt`` has passed, so what fires is sent again and again with an
end some way ahead, as Prometheus does it; when the bridge dies the alerts end by themselves.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final

from schemas.codec.records import rfc3339
from schemas.events import AlertChanged

ENDS_AFTER_RESENDS: Final = 4
"""What Prometheus takes."""
RESOLVED_FOR: Final = timedelta(minutes=15)
"""What is resolved is sent so long: an Alertmanager that was away hears of it too."""


class Latest:
    """Every alert's latest state."""

    def __init__(self) -> None:
        self._alerts: dict[str, AlertChanged] = {}

    def __len__(self) -> int:
        return len(self._alerts)

    def put(self, alert: AlertChanged) -> None:
        self._alerts[alert.fingerprint] = alert

    def to_send(self, now: datetime) -> list[AlertChanged]:
        """Forgets what was resolved long ago."""
        for fingerprint, alert in list(self._alerts.items()):
            if alert.state == "resolved" and now - alert.changed_at > RESOLVED_FOR:
                del self._alerts[fingerprint]
        return list(self._alerts.values())


def body(
    alerts: Iterable[AlertChanged], now: datetime, resend: timedelta, links: dict[str, str]
) -> list[dict[str, Any]]:
    """``links``: base URL by kind of query (``api``, ``opensearch``), where people can reach them."""
    return [_posted(alert, now, resend, links) for alert in alerts]


def _posted(alert: AlertChanged, now: datetime, resend: timedelta, links: dict[str, str]) -> dict[str, Any]:
    ends = alert.changed_at if alert.state == "resolved" else now + ENDS_AFTER_RESENDS * resend
    named = {f"query_{kind}": said for kind, said in alert.query.items()}
    numbers = {name: f"{number:g}" for name, number in alert.numbers.items()}
    posted = {
        "labels": {"alertname": alert.rule, "severity": alert.severity} | alert.labels,
        "annotations": {"summary": alert.summary} | numbers | named,
        "startsAt": rfc3339(alert.started_at),
        "endsAt": rfc3339(ends),
    }
    found = (f"{links[kind]}{path}" for kind, path in alert.query.items() if links.get(kind))
    return posted | ({"generatorURL": link} if (link := next(found, "")) else {})
