"""Which pods wait now: those whose latest attempt placed them nowhere, unless they were seen placed or gone since.

A search of attempts can't say it: a pod that was placed long ago still has its failed attempts there.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from api.http.cluster import Cluster
from api.index.attempt_queries import SORT
from api.index.client import OpenSearch
from api.index.decoding import decode_document
from api.index.query_dsl import all_of, of_cluster, sort_latest_first, term, term_filters, time_range
from schemas.answers.waiting import Pending, PodWaiting, WorkloadBlocked, WorkloadWaiting
from schemas.codec.records import Rejected, read
from schemas.events import WorkloadObserved
from schemas.indices import ATTEMPTS, OBSERVATIONS

Json = dict[str, Any]

PAGE: Final = 500
"""Pods that one search returns, with the latest attempt of each."""
MAX_TRIED: Final = 20_000
"""Pods tried since the given time that are looked at."""
MAX_EXAMPLES: Final = 3
MAX_BLOCKED: Final = 1_000
"""Reports of workloads that could not make pods; the latest ones count."""
_MAX_OBSERVATIONS: Final = 10_000
_EXACT: Final = "uuuu-MM-dd'T'HH:mm:ss.SSSSSS'Z'"
"""The form of times in events, so that texts compare; OpenSearch keeps milliseconds."""
_DESCRIBED: Final = ["workload", "pod_group", "queue", "priority_class"]
_DESCRIBED_TIMES: Final = ["first_judged_at", "created_at"]
_FIELDS: Final = [
    "namespace", "pod", "pod_uid", "scheduler", "attempt_id", "status", "reasons", "repeats", *_DESCRIBED,
    *({"field": name, "format": _EXACT} for name in ("@timestamp", "episode_started_at", *_DESCRIBED_TIMES)),
]  # fmt: skip
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
    # Doc values are read without the documents, which hold every node.
    latest = {"top_hits": {"size": 1, "sort": SORT, "_source": False, "docvalue_fields": _FIELDS}}
    composite = {"size": PAGE, "sources": sources} | ({"after": after} if after else {})
    clauses = [of_cluster(cluster), *term_filters({"namespace": namespace}), *time_range("@timestamp", since, None)]
    return {
        "query": all_of(clauses),
        "size": 0,
        "track_total_hits": False,
        "aggs": {"pods": {"composite": composite, "aggs": {"latest": latest}}},
    }


def originals_query(cluster: str, attempt_ids: Collection[str]) -> Json:
    """The body of a search for what the attempts with these ids say of their pods."""
    return {
        "query": all_of([of_cluster(cluster), {"terms": {"attempt_id": sorted(attempt_ids)}}]),
        "size": len(attempt_ids),
        "_source": False,
        "docvalue_fields": _FIELDS,
        "track_total_hits": False,
    }


def _values(hit: Json) -> Json:
    """Field to value of a hit with ``_FIELDS``; all values of ``reasons``. Fields without a value are left out."""
    # OpenSearch gives every doc value as a list.
    return {name: values if name == "reasons" else values[0] for name, values in hit.get("fields", {}).items()}


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
        latest = [_values(hit) for bucket in buckets for hit in bucket["latest"]["hits"]["hits"]]
        waiting += await _waiting_of(index, cluster, [each for each in latest if each["status"] != "succeeded"])
        after = pods.get("after_key")
        if len(buckets) < PAGE:
            break
    waiting.sort(key=lambda pod: (pod.first_judged_at, pod.namespace, pod.name))
    return WaitingPods(waiting, is_complete=tried < MAX_TRIED)


async def _waiting_of(index: OpenSearch, cluster: Cluster, attempts: Sequence[Json]) -> list[PodWaiting]:
    if not attempts:
        return []
    first = min(attempt["@timestamp"] for attempt in attempts)
    answer = await index.search(
        OBSERVATIONS.alias, observations_query(cluster.name, (attempt["pod"] for attempt in attempts), first)
    )
    latest: dict[PodKey, Json] = {}
    for hit in answer["hits"]["hits"]:
        latest.setdefault(_key(hit["_source"]), hit["_source"])
    kept = [attempt for attempt in attempts if not has_left(attempt, latest.get(_key(attempt)))]
    # A retry that changed nothing is described where its original is.
    originals: dict[str, Json] = {}
    if ids := {attempt["repeats"] for attempt in kept if attempt.get("repeats")}:
        answer = await index.search(ATTEMPTS.alias, originals_query(cluster.name, ids))
        originals = {values["attempt_id"]: values for values in map(_values, answer["hits"]["hits"])}
    return [_pod(cluster, attempt, originals.get(attempt.get("repeats", ""), {})) for attempt in kept]


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


def _pod(cluster: Cluster, attempt: Json, original: Json) -> PodWaiting:
    described = {name: attempt.get(name) or original.get(name) for name in (*_DESCRIBED, *_DESCRIBED_TIMES)}
    namespace, name = _key(attempt)
    # An attempt from before the worker knew the first one: its episode began no later than itself.
    first = described["first_judged_at"] or attempt.get("episode_started_at") or attempt["@timestamp"]
    return PodWaiting(
        namespace=namespace,
        name=name,
        pod_uid=attempt.get("pod_uid") or "",
        scheduler=attempt["scheduler"],
        status=attempt["status"],
        reasons=attempt.get("reasons") or [],
        **{name: described[name] or "" for name in _DESCRIBED},
        created_at=described["created_at"],
        first_judged_at=first,
        last_judged_at=attempt["@timestamp"],
        attempt=cluster.attempt(attempt["attempt_id"]),
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
