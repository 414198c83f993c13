"""Handler of alerts: those that fire, and those that ended within a day."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from api.authority.access import get_access
from api.authority.rights import LIST_NODES, list_pods
from api.handlers.redaction import Replace, redact_texts
from api.http.cluster import Cluster
from api.http.errors import UnavailableError, to_json_response
from api.http.param_types import Keyword, NamespaceName
from api.http.query_params import Query, refuse_repeated
from api.memory.alert_memory import AlertMemory
from schemas.answers.alerts import AlertListed, Alerts
from schemas.codec.records import format_rfc3339
from schemas.events import AlertChanged

_SEVERITIES: Final = ("critical", "warning", "info")
MAX_ITEMS: Final = 1_000


class AlertsQuery(Query):
    namespace: NamespaceName | None = Field(None, description="Only alerts about this namespace.")
    state: Literal["firing", "resolved", "all"] = Field("firing", description="resolved: those of the last 24 hours.")
    rule: Keyword | None = Field(None, description="Only alerts of this rule.")
    limit: int = Field(200, ge=1, le=MAX_ITEMS, description="Number of alerts.")


@dataclass(frozen=True, slots=True)
class AlertHandlers:
    alerts: AlertMemory

    async def list_alerts(self, request: Request, cluster: Cluster, query: AlertsQuery) -> Response:
        """List the alerts that fire, most severe first, with the evidence of each.

        Only callers who may list nodes see alerts about nodes and schedulers. `is_current` is false while no process
        evaluates the rules.
        """
        refuse_repeated(request)
        access = get_access(request)
        await access.require(cluster, list_pods(query.namespace))
        if not self.alerts.is_caught_up:
            raise UnavailableError(
                "the alerts are not read yet",
                "Try again in a few seconds; the API's log says whether the topic schedulerlog.alerts is missing.",
            )
        now, sees_nodes = datetime.now(UTC), await access.allows(cluster, LIST_NODES)
        alerts = [
            alert
            for alert in self.alerts.list_alerts(now)
            if alert.cluster == cluster.name and _matches(alert, query, sees_nodes=sees_nodes)
        ]
        items = [_to_listed(alert) for alert in _sort(alerts)]
        items = [*await redact_texts(access, cluster, query.namespace, items[: query.limit], _change_summary)]
        until = self.alerts.evaluated_until
        answer = Alerts(
            total=len(alerts),
            items=items,
            evaluated_until=format_rfc3339(until) if until else None,
            is_current=self.alerts.is_current(now),
        )
        return to_json_response(200, answer)


def _matches(alert: AlertChanged, query: AlertsQuery, *, sees_nodes: bool) -> bool:
    namespace = alert.labels.get("namespace", "")
    return (
        query.state in ("all", alert.state)
        and query.rule in (None, alert.rule)
        and query.namespace in (None, namespace)
        and bool(namespace or sees_nodes)
    )


def _sort(alerts: Iterable[AlertChanged]) -> list[AlertChanged]:
    latest = sorted(alerts, key=lambda alert: alert.changed_at, reverse=True)
    return sorted(latest, key=_rank_severity)


def _rank_severity(alert: AlertChanged) -> int:
    return _SEVERITIES.index(alert.severity) if alert.severity in _SEVERITIES else len(_SEVERITIES)


def _to_listed(alert: AlertChanged) -> AlertListed:
    return AlertListed(
        rule=alert.rule,
        severity=alert.severity,
        state=alert.state,
        summary=alert.summary,
        summary_zh=alert.summary_zh,
        labels=alert.labels,
        numbers=alert.numbers,
        started_at=format_rfc3339(alert.started_at),
        changed_at=format_rfc3339(alert.changed_at),
        evidence=alert.query,
    )


def _change_summary(alert: AlertListed, replace: Replace) -> AlertListed:
    return alert.model_copy(update={"summary": replace(alert.summary), "summary_zh": replace(alert.summary_zh)})
