"""Searches for what the index has of pods and nodes, and their answers decoded. No I/O but the log."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from pydantic import TypeAdapter, ValidationError

from engine.summaries.node_history import NodeKey
from engine.summaries.occupancy import DerivedPlacement
from engine.summaries.overcommit import Holding
from engine.summaries.pod_facts import BindFact, Fact, LayerMark, PodSighting
from pipeline.placements.input_decoder import BoundAttempt, RefusedAgain
from pipeline.placements.observation_dedup import REMEMBERED, ObservationDigest
from pipeline.placements.subjects import ObservedKey, PodKey, SchedulerKey
from pipeline.sinks.msearch import Search, search_page, select_indices, sort_by_time
from schemas.codec.records import Rejected, format_rfc3339
from schemas.documents.forecasts import FORECAST_KIND, match_pods_before, read_forecast
from schemas.documents.observations import OBSERVATION_KINDS, Observed, read_observation
from schemas.documents.placements import read_placement
from schemas.events import PodWait
from schemas.forecasts import StartForecast
from schemas.indices import ATTEMPTS, FINDINGS, NOT_ENDED, OBSERVATIONS, OCCUPANCY, POD_STATES
from schemas.placements import PodPlacement

logger = logging.getLogger(__name__)

MAX_PLACEMENTS: Final = 16
"""Placements of one pod name in memory: the latest, as older ones no longer change."""
PAGE: Final = 1_000
PLACEMENT_TIEBREAKERS: Final = ("cluster", "namespace", "pod")
"""Order placements that begin at the same instant: a name has one pod at a time. Not all of them have an attempt."""
_MAX_SCHEDULERS: Final = 4
"""Maximum number of schedulers that report one node: each has observations of its own."""
_MAX_EPISODES: Final = 100
MAX_HOLDS: Final = 1_000
"""Number of the latest holds of a namespace that a forecast is made from."""
_MAX_FORECASTS: Final = 32
"""Number of the latest forecasts that are read of the pods of one name."""
_NODE_KINDS: Final = [kind for kind in OBSERVATION_KINDS if kind.startswith("node")]


@dataclass(frozen=True, slots=True)
class StoredPlacement:
    """A document of a placement as the index has it."""

    index: str
    id: str
    version: int
    source: dict[str, Any]


class _Facts(NamedTuple):
    binds: tuple[BindFact, ...] = ()
    sights: tuple[PodSighting, ...] = ()
    marks: tuple[LayerMark, ...] = ()


_FACTS: Final = TypeAdapter(_Facts)


def to_facts_field(derived: DerivedPlacement) -> dict[str, Any]:
    """Return the facts that the document keeps so that the placement can be derived again."""
    facts = {"binds": derived.binds, "sights": derived.sights}
    return facts | ({"marks": derived.marks} if derived.marks else {})


def decode_facts(document: StoredPlacement) -> list[Fact]:
    """Decode the facts that a placement was derived from; none of a document that another program wrote."""
    facts = _decode(document)
    return [*facts.binds, *facts.sights]


def decode_marks(document: StoredPlacement) -> list[LayerMark]:
    """Decode the layers that held the pod of a placement while it waited."""
    return list(_decode(document).marks)


def _decode(document: StoredPlacement) -> _Facts:
    try:
        stored_facts = document.source.get("known") or {}
        return _FACTS.validate_python(tuple(stored_facts.get(name, ()) for name in _Facts._fields))
    except (ValidationError, AttributeError) as error:
        logger.warning(
            "document %s of %s is ignored: its field `stored_facts` is not one that this process wrote: %.300s",
            document.id,
            document.index,
            error,
        )
        return _Facts()


def search_placements_of_pod(pod: PodKey) -> Search:
    # With the version of each document, which the next write has to exceed.
    body = {"query": _match_all(*_list_pod_terms(pod)), "sort": [sort_by_time("desc")], "version": True}
    return select_indices(OCCUPANCY.alias), body | {"size": MAX_PLACEMENTS, "track_total_hits": False}


def search_observations_of_pod(pod: PodKey) -> Search:
    terms = _match_all({"kind": "pod-observed"}, *_list_pod_terms(pod))
    return select_indices(OBSERVATIONS.alias), _search_observations(terms, REMEMBERED)


def search_forecasts_of_pod(pod: PodKey) -> Search:
    terms = _match_all({"kind": FORECAST_KIND}, *_list_pod_terms(pod))
    return select_indices(OBSERVATIONS.alias), _search_observations(terms, _MAX_FORECASTS)


def decode_forecasts(hits: Iterable[dict[str, Any]]) -> list[StartForecast]:
    forecasts = (read_forecast(hit["_source"]) for hit in hits)
    return [forecast for forecast in forecasts if not isinstance(forecast, Rejected)]


def search_pods_before(refusal: RefusedAgain, wait: PodWait) -> Search:
    """Search for two waiting pods that are not behind the refused one in the order; it is one of them."""
    judged_at = refusal.first_judged_at or refusal.episode_started_at
    query = match_pods_before(refusal.cluster, wait, refusal.description, judged_at)
    return select_indices(POD_STATES.alias), {"query": query, "size": 2, "_source": ["pod_uid"]}


def is_first(refusal: RefusedAgain, hits: Iterable[dict[str, Any]]) -> bool:
    """Tell whether the refused pod is the only one of the search. Without it the index does not know the present."""
    return [hit["_source"].get("pod_uid") for hit in hits] == [refusal.pod.uid]


def search_ended_holds(cluster: str, namespace: str) -> Search:
    """Search for the latest placements with devices of a namespace that have ended."""
    fields = ["cluster", "namespace", "pod", "pod_uid", "node", "@timestamp", "ended_at", "ended_by", "allocations"]
    filters = [{"term": {"cluster": cluster}}, {"term": {"namespace": namespace}}]
    filters += [{"exists": {"field": name}} for name in ("devices", "ended_at")]
    body = {"query": {"bool": {"filter": filters}}, "sort": [sort_by_time("desc")], "track_total_hits": False}
    return select_indices(OCCUPANCY.alias), body | {"size": MAX_HOLDS, "_source": [*fields, "description"]}


def decode_placements(hits: Iterable[dict[str, Any]]) -> list[PodPlacement]:
    placements = (read_placement(hit["_id"], hit["_source"]) for hit in hits)
    return [placement for placement in placements if not isinstance(placement, Rejected)]


def _list_pod_terms(pod: PodKey) -> list[dict[str, Any]]:
    return [{"cluster": pod.cluster}, {"namespace": pod.namespace}, {"pod": pod.name}]


def search_observations_of_node(node: NodeKey) -> list[Search]:
    """Search for each kind by itself, so that frequent kinds do not displace rare ones."""
    return [
        (
            select_indices(OBSERVATIONS.alias),
            _search_observations(
                _match_all({"kind": kind}, {"cluster": node.cluster}, {"node": node.name}), _MAX_SCHEDULERS * REMEMBERED
            ),
        )
        for kind in _NODE_KINDS
    ]


def search_observations_of(key: ObservedKey) -> Search:
    """Search for observations of a workload or of all instances of a scheduler."""
    if isinstance(key, SchedulerKey):
        terms = [{"kind": "scheduler-observed"}, {"cluster": key.cluster}, {"scheduler": key.name}]
    else:
        workload_terms = [{"cluster": key.cluster}, {"namespace": key.namespace}, {"workload": key.name}]
        terms = [{"kind": "workload-observed"}, *workload_terms]
    return select_indices(OBSERVATIONS.alias), _search_observations(_match_all(*terms), REMEMBERED)


def search_refusals(attempt: BoundAttempt) -> Search:
    """Search for the pod's failed attempts before this one; one of each episode, which is refused for the same
    reasons."""
    pod = attempt.pod
    terms = {"cluster": attempt.cluster, "namespace": pod.namespace, "pod": pod.name, "pod_uid": pod.uid}
    filters: list[Any] = [{"term": {name: value}} for name, value in (terms | {"status": "failed"}).items()]
    filters.append({"range": {"@timestamp": {"lt": format_rfc3339(attempt.started_at)}}})
    body = {
        "query": {"bool": {"filter": filters}},
        "collapse": {"field": "episode"},
        "sort": [sort_by_time("desc")],
        "size": _MAX_EPISODES,
        "_source": ["reasons", "obstacle", "episode_started_at"],
        "track_total_hits": False,
    }
    return select_indices(ATTEMPTS.alias), body


def list_reasons(hits: Iterable[dict[str, Any]]) -> list[str]:
    """List the reasons of the attempts, sorted."""
    return sorted({str(reason) for hit in hits for reason in hit["_source"].get("reasons") or ()})


def choose_obstacle(hits: Iterable[dict[str, Any]], until: datetime, since: datetime | None = None) -> str:
    """Choose the obstacle of the attempts that kept the pod longest ``until`` the attempt that placed it.

    An episode keeps it until the next one begins. No obstacle is known of the time before the first one, ``since`` the
    pod was made, and of attempts that an earlier version wrote: where this is the longest, the answer is empty. Among
    equals the latest.
    """
    seconds: dict[str, float] = {}
    # Latest first, as they are searched for.
    for hit in hits:
        document = hit["_source"]
        began = datetime.fromisoformat(document.get("episode_started_at") or until.isoformat())
        code = str(document.get("obstacle") or "")
        seconds[code] = seconds.get(code, 0.0) + max((until - began).total_seconds(), 0.0)
        until = min(began, until)
    if since:
        seconds[""] = seconds.get("", 0.0) + max((until - since).total_seconds(), 0.0)
    return max(seconds, key=lambda code: seconds[code], default="")


def _search_observations(query: dict[str, Any], size: int) -> dict[str, Any]:
    source = {"_source": ["kind", "digest", "event"], "track_total_hits": False}
    return {"query": query, "sort": [sort_by_time("desc")], "size": size} | source


def search_holdings(since: datetime, after: list[Any] | None) -> Search:
    """Search for a page of the placements with devices that have not ended, or ended after ``since``."""
    # Those that ended lately too: records that arrive late may overlap with them.
    recent = {"bool": {"should": [NOT_ENDED, {"range": {"ended_at": {"gte": format_rfc3339(since)}}}]}}
    filters = [{"exists": {"field": "devices"}}, recent]
    return search_page(OCCUPANCY, filters, PLACEMENT_TIEBREAKERS, PAGE, after, version=True)


def search_findings(ids: Sequence[str]) -> Search:
    """Search for the findings of these ids that the index has."""
    body = {"query": {"ids": {"values": list(ids)}}, "size": len(ids), "_source": False, "track_total_hits": False}
    return select_indices(FINDINGS.alias), body


def _match_all(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"bool": {"filter": [{"term": term} for term in terms]}}


def decode_stored(hits: Iterable[dict[str, Any]]) -> list[StoredPlacement]:
    return [StoredPlacement(hit["_index"], hit["_id"], hit.get("_version", 0), hit["_source"]) for hit in hits]


def decode_observed(hits: Iterable[dict[str, Any]]) -> Iterator[tuple[ObservationDigest, Observed]]:
    for hit in hits:
        event = read_observation(hit["_source"])
        if not isinstance(event, Rejected):
            yield ObservationDigest(event.observed_at, hit["_id"], hit["_source"].get("digest") or ""), event


def decode_holding(document: StoredPlacement) -> Holding | None:
    placement = read_placement(document.id, document.source)
    # The bind has the start of the attempt, which the placement itself does not keep.
    bind = next((fact for fact in decode_facts(document) if isinstance(fact, BindFact)), None)
    if isinstance(placement, Rejected):
        return None
    return Holding(placement, bind.started_at if bind else placement.started_at)
