"""Which workloads could not make their pods, by what the cluster reports: an exceeded quota, a webhook. Pure."""

from collections.abc import Mapping
from typing import Final

from api.index.reading.decoding import decode_document
from api.index.reading.query_dsl import all_of, of_cluster, sort_latest_first, term, term_filters, time_range
from schemas.answers.waiting import WorkloadBlocked
from schemas.codec.records import Rejected, read
from schemas.events import WorkloadObserved
from schemas.json_types import Json

MAX_BLOCKED: Final = 1_000
"""Reports of workloads that could not make pods; the latest ones count."""


def blocked_query(cluster: str, values: Mapping[str, str | None], since: str) -> Json:
    """The body of a search for workloads that could not make their pods since then. ``values``: field to its value."""
    clauses = [of_cluster(cluster), term("kind", "workload-observed"), *term_filters(values)]
    return {
        "query": all_of([*clauses, *time_range("@timestamp", since, None)]),
        "sort": [sort_latest_first("@timestamp")],
        "size": MAX_BLOCKED,
        "_source": ["event"],
        "track_total_hits": False,
    }


def blocked_of(answer: Json) -> list[WorkloadBlocked]:
    """Each workload in the answer to ``blocked_query`` once, with its latest problem. Raises ``UnreadableError``."""
    events = [decode_document(_workload_event, hit["_source"], hit["_id"]) for hit in answer["hits"]["hits"]]
    latest: dict[tuple[str, str], WorkloadObserved] = {}
    for event in events:
        latest.setdefault((event.namespace, str(event.workload)), event)
    return [
        WorkloadBlocked(namespace=namespace, workload=workload, problem=event.problem)
        for (namespace, workload), event in latest.items()
    ]


def _workload_event(source: Json) -> WorkloadObserved | Rejected:
    return read(WorkloadObserved, source.get("event"), "document.event")
