"""What the index knows of a pod and its cluster now, as facts for a diagnosis. Pure.

The pod as it was observed last, the nodes' registrations and checks, the schedulers, findings about the pod.
"""

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Final

from api.index.attempts.attempt_queries import PodName
from api.index.nodes.node_list import nodes_of, nodes_query
from api.index.reading.decoding import decode_document
from api.index.reading.query_dsl import all_of, of_cluster, sort_latest_first, term
from api.index.schedulers import schedulers_of
from engine.diagnosis.facts import Evidence, NodeFacts, ObservedPod, SchedulerState
from schemas.codec.records import Rejected, read
from schemas.documents.observations import Observed
from schemas.events import NodeChecked, NodeObserved, NodeRegistered, PodObserved
from schemas.json_types import Json

MAX_NODES: Final = 500
_MAX_OBSERVATIONS: Final = 20
"""Observations of a pod: the latest that has its phase, and what its kubelet reported since."""
_MAX_SCHEDULERS: Final = 50
_MAX_FINDINGS: Final = 5
_DECIDED_WITHIN: Final = "now-1d"


def pod_query(pod: PodName) -> Json:
    """The body of a search for the latest observations of a pod."""
    about = [term("kind", "pod-observed"), term("namespace", pod.namespace), term("pod", pod.name)]
    return {
        "query": all_of([of_cluster(pod.cluster), *about]),
        "sort": [sort_latest_first("@timestamp")],
        "size": _MAX_OBSERVATIONS,
        "_source": ["event"],
        "track_total_hits": False,
    }


def pod_state_of(answer: Json) -> ObservedPod | None:
    """The pod in the answer to ``pod_query``; None where it was never observed. Raises ``UnreadableError``."""
    events = [decode_document(_pod_event, hit["_source"], hit["_id"]) for hit in answer["hits"]["hits"]]
    # A kubelet's event says nothing of the phase.
    latest = next((event for event in events if event.phase or event.deleted), None)
    if latest is None:
        return None
    same = [event for event in events if event.pod.uid == latest.pod.uid and event.observed_at >= latest.observed_at]
    return ObservedPod(
        source=Evidence("pod", latest.id, latest.observed_at, "cluster"),
        uid=latest.pod.uid,
        phase=latest.phase,
        node=latest.node,
        is_gone=latest.deleted,
        scheduler=latest.scheduler,
        created_at=latest.description.created_at if latest.description else None,
        conditions=latest.conditions,
        problems=[problem for event in same for problem in event.problems],
        bind_phase=latest.bind_phase,
    )


def _pod_event(source: Json) -> PodObserved | Rejected:
    return read(PodObserved, source.get("event"), "document.event")


def registrations_query(cluster: str, names: Collection[str]) -> Json:
    """The body of a search for registrations and checks of ``names``, or of the first ``MAX_NODES`` nodes."""
    body = nodes_query(cluster, None, MAX_NODES)
    if names:
        body["query"]["bool"]["filter"].append({"terms": {"node": sorted(names)[:MAX_NODES]}})
    return body


def node_states_of(answer: Json, now: datetime) -> list[NodeFacts]:
    """The nodes in the answer to ``registrations_query``. Raises ``UnreadableError``."""
    return [_node_state(name, observed) for name, observed in nodes_of(answer, now).items()]


def _node_state(name: str, observed: Iterable[Observed]) -> NodeFacts:
    events = list(observed)
    registrations = [event for event in events if isinstance(event, NodeRegistered)]
    checks = [event for event in events if isinstance(event, NodeChecked)]
    statuses = [event for event in events if isinstance(event, NodeObserved)]
    latest = max((*registrations, *checks, *statuses), key=lambda event: event.observed_at)
    ready = next(
        (condition.status for event in statuses for condition in event.conditions if condition.type == "Ready"), ""
    )
    return NodeFacts(
        name,
        Evidence("node", latest.id, latest.observed_at, latest.scheduler or "cluster"),
        ready == "True" if ready else None,
        devices=max((len(event.uuid) for event in registrations), default=0),
        problems=[problem for event in checks for problem in event.problems],
    )


def deciding_query(cluster: str) -> Json:
    """The body of a search for when each scheduler last decided."""
    within = {"range": {"@timestamp": {"gte": _DECIDED_WITHIN}}}
    latest = {"latest": {"max": {"field": "@timestamp"}}}
    return {
        "query": all_of([of_cluster(cluster), within]),
        "size": 0,
        "track_total_hits": False,
        "aggs": {"schedulers": {"terms": {"field": "scheduler", "size": _MAX_SCHEDULERS}, "aggs": latest}},
    }


def scheduler_states_of(observed: Json, deciding: Json) -> list[SchedulerState]:
    """From the answers to ``schedulers_query`` and ``deciding_query``. Raises ``UnreadableError``."""
    buckets = deciding.get("aggregations", {}).get("schedulers", {}).get("buckets", [])
    decided = {bucket["key"]: _time(bucket["latest"]["value_as_string"]) for bucket in buckets}
    seen = {scheduler.scheduler: scheduler for scheduler in schedulers_of(observed)}
    return [
        SchedulerState(
            name,
            Evidence(
                "scheduler",
                f"{name}@{listed.settings_digest}" if (listed := seen.get(name)) else name,
                decided.get(name) or (_time(listed.observed_at) if listed else None),
                words=f"{listed.implementation} {listed.version}".strip() if listed else "",
            ),
            listed.implementation if listed else "",
            decided.get(name),
        )
        for name in sorted(decided.keys() | seen.keys())
    ]


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def findings_query(pod: PodName) -> Json:
    """The body of a search for the latest findings about a pod."""
    return {
        "query": all_of([of_cluster(pod.cluster), term("namespace", pod.namespace), term("pod", pod.name)]),
        "sort": [sort_latest_first("found_at")],
        "size": _MAX_FINDINGS,
        "_source": ["finding", "found_at", "scheduler", "numbers", "attempt_id", "node", "device"],
        "track_total_hits": False,
    }


def findings_of(answer: Json) -> list[Evidence]:
    """The findings in the answer to ``findings_query``, without their lines, which may name pods of others."""
    return [
        Evidence(
            "finding",
            hit["_id"],
            _time(source["found_at"]),
            source["scheduler"],
            source["numbers"],
            " ".join(filter(None, (source["finding"], source["node"], source["device"]))),
        )
        for hit in answer["hits"]["hits"]
        for source in [hit["_source"]]
    ]
