"""Which pods wait now: those whose latest attempt placed them nowhere, unless they were seen placed or gone since.

A search of attempts can't say it: a pod that was placed long ago still has its failed attempts there.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from api.http.cluster import Cluster
from api.index.attempt_queries import SORT
from api.index.attempt_reader import read_documents
from api.index.client import OpenSearch
from api.index.decoding import decode_document
from api.index.query_dsl import all_of, of_cluster, sort_latest_first, term, term_filters, time_range
from schemas.answers.waiting import Pending, PodWaiting, WorkloadBlocked, WorkloadWaiting
from schemas.codec.records import Rejected, read
from schemas.events import WorkloadObserved
from schemas.indices import ATTEMPTS, OBSERVATIONS

Json = dict[str, Any]

PAGE: Final = 1_000
"""Pods that one search returns, with the latest attempt of each."""
MAX_TRIED: Final = 20_000
"""Pods tried since the given time that are looked at."""
MAX_EXAMPLES: Final = 3
MAX_BLOCKED: Final = 1_000
"""Reports of workloads that could not make pods; the latest ones count."""
_MAX_OBSERVATIONS: Final = 10_000
_DESCRIBED: Final = ["workload", "pod_group", "queue", "priority_class", "summary.first_judged_at",
                     "summary.description.created_at"]  # fmt: skip
_FIELDS: Final = ["namespace", "pod", "pod_uid", "scheduler", "attempt_id", "status", "reasons", "repeats",
                  "@timestamp", "episode_started_at", *_DESCRIBED]  # fmt: skip
_ENDED: Final = ("Succeeded", "Failed")

PodKey = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, slots=True)
class WaitingPods:
    pods: list[PodWaiting]
    """Longest wait first."""
    is_complete: bool
    """False where more than ``MAX_TRIED`` pods were tried."""


def latest_attempts_query(cluster: str, namespace: str | None, since: str, after: Json | None) -> Json:
    """The body of a search for the latest attempt of each of ``PAGE`` pods, by namespace and name behind ``after``."""
    sources = [{field: {"terms": {"field": field}}} for field in ("namespace", "pod")]
    latest = {"top_hits": {"size": 1, "sort": SORT, "_source": _FIELDS}}
    composite = {"size": PAGE, "sources": sources} | ({"after": after} if after else {})
    clauses = [of_cluster(cluster), *term_filters({"namespace": namespace}), *time_range("@timestamp", since, None)]
    return {
        "query": all_of(clauses),
        "size": 0,
        "track_total_hits": False,
        "aggs": {"pods": {"composite": composite, "aggs": {"latest": latest}}},
    }


def observations_query(cluster: str, names: Iterable[str], since: str) -> Json:
    """The body of a search for what the cluster reported since then of pods with these names, latest first."""
    clauses = [of_cluster(cluster), term("kind", "pod-observed"), {"terms": {"pod": sorted(set(names))}}]
    return {
        "query": all_of([*clauses, *time_range("@timestamp", since, None)]),
        "sort": [sort_latest_first("@timestamp")],
        "size": _MAX_OBSERVATIONS,
        "_source": ["namespace", "pod", "pod_uid", "node", "phase", "@timestamp", "event.deleted"],
        "track_total_hits": False,
    }


async def read_waiting_pods(index: OpenSearch, cluster: Cluster, namespace: str | None, since: str) -> WaitingPods:
    """The pods that wait, of those that were tried at ``since`` (RFC 3339) or later."""
    waiting: list[PodWaiting] = []
    after: Json | None = None
    tried = 0
    while tried < MAX_TRIED:
        body = latest_attempts_query(cluster.name, namespace, since, after)
        pods = (await index.search(ATTEMPTS.alias, body)).get("aggregations", {}).get("pods", {})
        buckets = pods.get("buckets", [])
        tried += len(buckets)
        hits = [hit for bucket in buckets for hit in bucket["latest"]["hits"]["hits"]]
        waiting += await _waiting_of(index, cluster, [hit for hit in hits if hit["_source"]["status"] != "succeeded"])
        after = pods.get("after_key")
        if len(buckets) < PAGE:
            break
    waiting.sort(key=lambda pod: (pod.first_judged_at, pod.namespace, pod.name))
    return WaitingPods(waiting, is_complete=tried < MAX_TRIED)


async def _waiting_of(index: OpenSearch, cluster: Cluster, hits: Sequence[Json]) -> list[PodWaiting]:
    if not hits:
        return []
    sources = [hit["_source"] for hit in hits]
    first = min(source["@timestamp"] for source in sources)
    answer = await index.search(
        OBSERVATIONS.alias, observations_query(cluster.name, (source["pod"] for source in sources), first)
    )
    latest: dict[PodKey, Json] = {}
    for hit in answer["hits"]["hits"]:
        latest.setdefault((hit["_source"]["namespace"], hit["_source"]["pod"]), hit["_source"])
    kept = [hit for hit in hits if not has_left(hit["_source"], latest.get(_key(hit["_source"])))]
    # A retry that changed nothing is described where its original is.
    places = {(hit["_index"], hit["_source"]["repeats"]) for hit in kept if hit["_source"].get("repeats")}
    originals = await read_documents(index, sorted(places), _DESCRIBED)
    return [_pod(cluster, hit["_source"], originals.get(hit["_source"].get("repeats", ""), {})) for hit in kept]


def _key(source: Json) -> PodKey:
    return source["namespace"], source["pod"]


def has_left(attempt: Json, observed: Json | None) -> bool:
    """Does the latest observation of the pod, after its latest attempt began, show it placed, ended or deleted?"""
    if observed is None or observed["@timestamp"] < attempt["@timestamp"]:
        return False
    # Of another pod that has the name now; its own attempt will come.
    if attempt.get("pod_uid") and observed.get("pod_uid") and attempt["pod_uid"] != observed["pod_uid"]:
        return True
    is_deleted = bool((observed.get("event") or {}).get("deleted"))
    return is_deleted or bool(observed.get("node")) or observed.get("phase") in _ENDED


def _pod(cluster: Cluster, source: Json, original: Json) -> PodWaiting:
    described = original | {name: source[name] for name in _DESCRIBED if source.get(name)}
    summary = source.get("summary") or original.get("summary") or {}
    namespace, name = _key(source)
    # An attempt from before the worker knew the first one: its episode began no later than itself.
    first = summary.get("first_judged_at") or source.get("episode_started_at") or source["@timestamp"]
    return PodWaiting(
        namespace=namespace,
        name=name,
        pod_uid=source.get("pod_uid") or "",
        scheduler=source["scheduler"],
        status=source["status"],
        reasons=source.get("reasons") or [],
        workload=described.get("workload") or "",
        pod_group=described.get("pod_group") or "",
        queue=described.get("queue") or "",
        priority_class=described.get("priority_class") or "",
        created_at=(summary.get("description") or {}).get("created_at"),
        first_judged_at=first,
        last_judged_at=source["@timestamp"],
        attempt=cluster.attempt(source["attempt_id"]),
        schedulerlog=cluster.schedulerlog(namespace, name),
    )


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
    latest: dict[PodKey, WorkloadObserved] = {}
    for event in events:
        latest.setdefault((event.namespace, str(event.workload)), event)
    return [
        WorkloadBlocked(namespace=namespace, workload=workload, problem=event.problem)
        for (namespace, workload), event in latest.items()
    ]


def _workload_event(source: Json) -> WorkloadObserved | Rejected:
    return read(WorkloadObserved, source.get("event"), "document.event")


def pending(waiting: WaitingPods, blocked: list[WorkloadBlocked], limit: int) -> Pending:
    """The waiting pods by workload, those with the most pods first, at most ``limit``."""
    by_workload = groupby(sorted(waiting.pods, key=_workload), key=_workload)
    workloads = [_workload_waiting(name, list(pods)) for (_, name), pods in by_workload]
    workloads.sort(key=lambda each: (-each.pods, each.first_judged_at, each.namespace, each.workload))
    return Pending(
        pods=len(waiting.pods),
        reasons=_by_reason(waiting.pods),
        total=len(workloads),
        items=workloads[:limit],
        blocked=blocked[:limit],
        complete=waiting.is_complete,
    )


def _workload(pod: PodWaiting) -> tuple[str, str]:
    return pod.namespace, pod.workload or f"Pod/{pod.name}"


def _workload_waiting(name: str, pods: Sequence[PodWaiting]) -> WorkloadWaiting:
    # The sort by workload was stable: within it, the longest wait still comes first.
    return WorkloadWaiting(
        namespace=pods[0].namespace,
        workload=name,
        queue=next((pod.queue for pod in pods if pod.queue), ""),
        pods=len(pods),
        reasons=_by_reason(pods),
        first_judged_at=pods[0].first_judged_at,
        last_judged_at=max(pod.last_judged_at for pod in pods),
        examples=list(pods[:MAX_EXAMPLES]),
    )


def _by_reason(pods: Iterable[PodWaiting]) -> dict[str, int]:
    counted = Counter(reason for pod in pods for reason in pod.reasons)
    return dict(sorted(counted.items(), key=lambda item: (-item[1], item[0])))
