"""Paths at the API and at OpenSearch that show the evidence behind an alert. Pure."""

from datetime import datetime, timedelta
from typing import Final
from urllib.parse import quote, urlencode

from schemas.codec.records import rfc3339
from schemas.events import PodRef
from schemas.indices import ATTEMPTS, FINDINGS

_MARGIN: Final = timedelta(minutes=5)
"""An attempt is found by its start, which is some time before the failed bind or check that the alert counted."""


def of_pod(pod: PodRef) -> dict[str, str]:
    # `safe=''`: a slash in a name would make another path of it.
    path = f"/api/v1/namespaces/{quote(pod.namespace, safe='')}/pods/{quote(pod.name, safe='')}/schedulerlog/history"
    return {"api": path, "opensearch": _search(ATTEMPTS.alias, namespace=pod.namespace, pod=pod.name)}


def of_reason(reason: str, since: datetime, until: datetime) -> dict[str, str]:
    api = _api(reason=reason, since=rfc3339(since), until=rfc3339(until))
    return {"api": api, "opensearch": _search(ATTEMPTS.alias, since, until, reasons=reason)}


def of_node(node: str, since: datetime, until: datetime, *, status: str = "") -> dict[str, str]:
    filters = {"status": status} if status else {}
    since, until = since - _MARGIN, until + _MARGIN
    api = _api(node=node, since=rfc3339(since), until=rfc3339(until), **filters)
    return {"api": api, "opensearch": _search(ATTEMPTS.alias, since, until, nodes=node, **filters)}


def of_finding(finding: str, node: str) -> dict[str, str]:
    return {"opensearch": _search(FINDINGS.alias, finding=finding, node=node)}


def of_scheduler(scheduler: str) -> dict[str, str]:
    return {"opensearch": _search(ATTEMPTS.alias, scheduler=scheduler)}


def of_dead_letters() -> dict[str, str]:
    # Dead letters are on Kafka alone: neither the API nor the index has them.
    return {"command": "python -m pipeline dead-letters list"}


def _api(**parameters: str) -> str:
    return f"/api/v1/schedulerlogs?{urlencode(parameters)}"


def _search(alias: str, since: datetime | None = None, until: datetime | None = None, **fields: str) -> str:
    terms = [f"{name}:{_quoted(value)}" for name, value in fields.items()]
    if since and until:
        terms.append(f'@timestamp:["{rfc3339(since)}" TO "{rfc3339(until)}"]')
    return f"/{alias}/_search?{urlencode({'q': ' AND '.join(terms), 'sort': '@timestamp:desc'})}"


def _quoted(value: str) -> str:
    """The value as a phrase of Lucene's query language, in which no operator inside it has a meaning."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
