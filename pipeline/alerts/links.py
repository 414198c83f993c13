"""Paths at the API and at OpenSearch that show the evidence behind an alert. Pure."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import quote, urlencode

from schemas.codec.records import format_rfc3339
from schemas.events import PodRef
from schemas.indices import ATTEMPTS, FINDINGS, OBSERVATIONS

_MARGIN: Final = timedelta(minutes=5)
"""An attempt is found by its start, which is some time before the failed bind or check that the alert counted."""


def link_pod(cluster: str, pod: PodRef, attempt_id: str = "") -> dict[str, str]:
    """Link a pod's history, and the attempt ``attempt_id`` that the alert begins with."""
    # `safe=''`: a slash in a name would make another path of it.
    path = f"namespaces/{quote(pod.namespace, safe='')}/pods/{quote(pod.name, safe='')}/schedulerlog/history"
    return {
        "api": _build_path(cluster, path),
        "opensearch": _search(ATTEMPTS.alias, cluster, {"namespace": pod.namespace, "pod": pod.name}),
        **({"attempt": _build_path(cluster, f"attempts/{quote(attempt_id, safe='')}")} if attempt_id else {}),
    }


def link_diagnosis(cluster: str, pod: PodRef) -> dict[str, str]:
    """Link a pod's diagnosis, and its observations."""
    path = f"namespaces/{quote(pod.namespace, safe='')}/pods/{quote(pod.name, safe='')}/diagnosis"
    fields = {"kind": "pod-observed", "namespace": pod.namespace, "pod": pod.name}
    return {"api": _build_path(cluster, path), "opensearch": _search(OBSERVATIONS.alias, cluster, fields)}


def link_waiting(cluster: str, workload: PodRef) -> dict[str, str]:
    """Link the list with a workload that has no pods, named as ``job/train``, and its observations."""
    fields = {"kind": "workload-observed", "namespace": workload.namespace}
    return {
        "api": _build_path(cluster, "pending", namespace=workload.namespace, group_by="pod"),
        "opensearch": _search(OBSERVATIONS.alias, cluster, fields),
    }


def link_workload(cluster: str, namespace: str, workload: str, since: datetime, until: datetime) -> dict[str, str]:
    fields = {"namespace": namespace, "workload": workload, "status": "failed"}
    # The refusals that the alert counted began before it.
    since, until = since - _MARGIN, until + _MARGIN
    return {
        "api": _build_path(
            cluster, "schedulerlogs", **fields, since=format_rfc3339(since), until=format_rfc3339(until)
        ),
        "opensearch": _search(ATTEMPTS.alias, cluster, fields, since, until),
    }


def link_reason(cluster: str, reason: str, since: datetime, until: datetime) -> dict[str, str]:
    api = _build_path(cluster, "schedulerlogs", reason=reason, since=format_rfc3339(since), until=format_rfc3339(until))
    return {"api": api, "opensearch": _search(ATTEMPTS.alias, cluster, {"reasons": reason}, since, until)}


def link_node(cluster: str, node: str, since: datetime, until: datetime, *, status: str = "") -> dict[str, str]:
    filters = {"status": status} if status else {}
    since, until = since - _MARGIN, until + _MARGIN
    api = _build_path(
        cluster, "schedulerlogs", node=node, since=format_rfc3339(since), until=format_rfc3339(until), **filters
    )
    return {"api": api, "opensearch": _search(ATTEMPTS.alias, cluster, {"nodes": node, **filters}, since, until)}


def link_checks(cluster: str, node: str, moment: datetime) -> dict[str, str]:
    """Link a node's registrations at that time, and the results of their checks."""
    path = f"nodes/{quote(node, safe='')}"
    return {
        "api": _build_path(cluster, path, at=format_rfc3339(moment)),
        "opensearch": _search(OBSERVATIONS.alias, cluster, {"kind": "node-checked", "node": node}),
    }


def link_finding(cluster: str, finding: str, node: str) -> dict[str, str]:
    fields = {"finding": finding, "node": node}
    return {
        "api": _build_path(cluster, "findings", **fields),
        "opensearch": _search(FINDINGS.alias, cluster, fields),
    }


def link_scheduler(cluster: str, scheduler: str) -> dict[str, str]:
    return {
        "api": _build_path(cluster, "schedulerlogs", scheduler=scheduler),
        "opensearch": _search(ATTEMPTS.alias, cluster, {"scheduler": scheduler}),
    }


def link_dead_letters() -> dict[str, str]:
    # Dead letters are on Kafka alone: neither the API nor the index has them.
    return {"command": "schedulerlog pipeline dead-letters list"}


def _build_path(cluster: str, path: str, **parameters: str) -> str:
    return f"/api/v1/clusters/{quote(cluster, safe='')}/{path}{'?' if parameters else ''}{urlencode(parameters)}"


def _search(
    alias: str,
    cluster: str,
    fields: Mapping[str, str],
    since: datetime | None = None,
    until: datetime | None = None,
) -> str:
    terms = [f"{name}:{_quote_phrase(value)}" for name, value in {"cluster": cluster, **fields}.items()]
    if since and until:
        terms.append(f'@timestamp:["{format_rfc3339(since)}" TO "{format_rfc3339(until)}"]')
    return f"/{alias}/_search?{urlencode({'q': ' AND '.join(terms), 'sort': '@timestamp:desc'})}"


def _quote_phrase(value: str) -> str:
    """Quote the value as a phrase of Lucene's query language, in which operators have no meaning."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
