"""Facts for a diagnosis from the index. Pure.

The pod's last observation, the nodes' registrations and checks, the schedulers, and findings about the pod.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Final

from api.index.attempts.attempt_queries import PodName
from api.index.clusters import parse_schedulers
from api.index.nodes.node_list import build_nodes_query, parse_nodes
from api.index.reading.pages import decode_document
from api.index.reading.query_dsl import combine, match_cluster, match_term, sort_latest_first
from engine.diagnosis.facts import Evidence, NodeFacts, PodOnCluster, SchedulerState
from schemas.codec.records import Rejected, read
from schemas.documents.observations import Observed
from schemas.events import Condition, NodeChecked, NodeObserved, NodeRegistered, PodObserved
from schemas.json_types import Json

MAX_NODES: Final = 500
_MAX_OBSERVATIONS: Final = 20
"""Maximum number of observations of a pod: the latest with its phase, and its kubelet's reports since."""
_MAX_SCHEDULERS: Final = 50
_MAX_FINDINGS: Final = 5
_DECIDED_WITHIN: Final = "now-1d"


def build_pod_query(pod: PodName) -> Json:
    """Build the search for the latest observations of a pod."""
    filters = [match_term("kind", "pod-observed"), match_term("namespace", pod.namespace), match_term("pod", pod.name)]
    return {
        "query": combine([match_cluster(pod.cluster), *filters]),
        "sort": [sort_latest_first("@timestamp")],
        "size": _MAX_OBSERVATIONS,
        "_source": ["event"],
        "track_total_hits": False,
    }


def parse_pod_state(answer: Json) -> PodOnCluster | None:
    """Parse the pod in the answer to ``build_pod_query``; None if never observed. Raises ``UnreadableError``."""
    events = [decode_document(_decode_pod_event, hit["_source"], hit["_id"]) for hit in answer["hits"]["hits"]]
    # A kubelet's event has no phase.
    latest = next((event for event in events if event.phase or event.deleted), None)
    if latest is None:
        return None
    same = [event for event in events if event.pod.uid == latest.pod.uid and event.observed_at >= latest.observed_at]
    # The report of a deletion has no conditions: those before say by whom the pod was preempted or evicted.
    of_pod = [event for event in events if event.pod.uid == latest.pod.uid]
    described = [event for event in of_pod if event.conditions]
    created = (event.description.created_at for event in of_pod if event.description)
    return PodOnCluster(
        source=Evidence("pod", latest.id, latest.observed_at, "cluster"),
        uid=latest.pod.uid,
        phase=latest.phase,
        node=latest.node,
        is_gone=latest.deleted,
        # The report of a deletion has neither.
        scheduler=next((event.scheduler for event in of_pod if event.scheduler), ""),
        created_at=next(created, None),
        conditions=_collect_conditions(latest, described),
        problems=[problem for event in same for problem in event.problems],
        bind_phase=latest.bind_phase,
    )


def _collect_conditions(latest: PodObserved, described: Sequence[PodObserved]) -> list[Condition]:
    """Collect the conditions of a pod; of one that was deleted the latest of each type that were observed."""
    if latest.conditions and not latest.deleted:
        return latest.conditions
    conditions: dict[str, Condition] = {}
    for event in described if latest.deleted else ():
        for condition in event.conditions:
            conditions.setdefault(condition.type, condition)
    return list(conditions.values())


def build_winner_query(cluster: str, uid: str) -> Json:
    """Build the search for the pod with a UID, which took the place of another."""
    filters = [match_cluster(cluster), match_term("kind", "pod-observed"), match_term("pod_uid", uid)]
    return {
        "query": combine(filters),
        "sort": [sort_latest_first("@timestamp")],
        "size": _MAX_OBSERVATIONS,
        "_source": ["event"],
        "track_total_hits": False,
    }


def parse_winner(answer: Json) -> tuple[str, int | None] | None:
    """Parse the pod as namespace/name, with its priority; None if it was never observed. Raises ``UnreadableError``."""
    events = [decode_document(_decode_pod_event, hit["_source"], hit["_id"]) for hit in answer["hits"]["hits"]]
    priorities = (event.description.priority for event in events if event.description)
    priority = next((number for number in priorities if number is not None), None)
    return (str(events[0].pod), priority) if events else None


def _decode_pod_event(source: Json) -> PodObserved | Rejected:
    return read(PodObserved, source.get("event"), "document.event")


def build_registrations_query(cluster: str, names: Collection[str]) -> Json:
    """Build the search for registrations and checks of ``names``, or of the first ``MAX_NODES`` nodes."""
    body = build_nodes_query(cluster, None, MAX_NODES)
    if names:
        body["query"]["bool"]["filter"].append({"terms": {"node": sorted(names)[:MAX_NODES]}})
    return body


def parse_node_states(answer: Json, now: datetime) -> list[NodeFacts]:
    """Parse the nodes in the answer to ``build_registrations_query``. Raises ``UnreadableError``."""
    return [_describe_node(name, observed) for name, observed in parse_nodes(answer, now).items()]


def _describe_node(name: str, observed: Iterable[Observed]) -> NodeFacts:
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


def build_decisions_query(cluster: str) -> Json:
    """Build the search for the time of each scheduler's last decision."""
    within = {"range": {"@timestamp": {"gte": _DECIDED_WITHIN}}}
    latest = {"latest": {"max": {"field": "@timestamp"}}}
    return {
        "query": combine([match_cluster(cluster), within]),
        "size": 0,
        "track_total_hits": False,
        "aggs": {"schedulers": {"terms": {"field": "scheduler", "size": _MAX_SCHEDULERS}, "aggs": latest}},
    }


def parse_scheduler_states(observed: Json, deciding: Json) -> list[SchedulerState]:
    """Parse the answers to ``build_schedulers_query`` and ``build_decisions_query``. Raises ``UnreadableError``."""
    buckets = deciding.get("aggregations", {}).get("schedulers", {}).get("buckets", [])
    decided = {bucket["key"]: _parse_time(bucket["latest"]["value_as_string"]) for bucket in buckets}
    seen = {scheduler.scheduler: scheduler for scheduler in parse_schedulers(observed)}
    return [
        SchedulerState(
            name,
            Evidence(
                "scheduler",
                f"{name}@{listed.settings_digest}" if (listed := seen.get(name)) else name,
                decided.get(name) or (_parse_time(listed.observed_at) if listed else None),
                words=f"{listed.implementation} {listed.version}".strip() if listed else "",
            ),
            listed.implementation if listed else "",
            decided.get(name),
        )
        for name in sorted(decided.keys() | seen.keys())
    ]


def _parse_time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def build_findings_query(pod: PodName) -> Json:
    """Build the search for the latest findings about a pod."""
    return {
        "query": combine(
            [match_cluster(pod.cluster), match_term("namespace", pod.namespace), match_term("pod", pod.name)]
        ),
        "sort": [sort_latest_first("found_at")],
        "size": _MAX_FINDINGS,
        "_source": ["finding", "found_at", "scheduler", "numbers", "attempt_id", "node", "device"],
        "track_total_hits": False,
    }


def parse_findings(answer: Json) -> list[Evidence]:
    """Parse the findings in the answer to ``build_findings_query``, without their lines, which may name other pods."""
    return [
        Evidence(
            "finding",
            hit["_id"],
            _parse_time(source["found_at"]),
            source["scheduler"],
            source["numbers"],
            " ".join(filter(None, (source["finding"], source["node"], source["device"]))),
        )
        for hit in answer["hits"]["hits"]
        for source in [hit["_source"]]
    ]
