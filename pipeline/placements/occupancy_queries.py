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
from engine.summaries.pod_facts import BindFact, Fact, PodSighting
from pipeline.placements.input_decoder import BoundAttempt
from pipeline.placements.observation_dedup import REMEMBERED, ObservationDigest
from pipeline.placements.subjects import ObservedKey, PodKey, SchedulerKey
from pipeline.sinks.msearch import Search, by_time, in_indices, page_search
from schemas.codec.records import Rejected, rfc3339
from schemas.documents.observations import OBSERVATION_KINDS, Observed, observation_of
from schemas.documents.placements import placement_of
from schemas.indices import ATTEMPTS, FINDINGS, NOT_ENDED, OBSERVATIONS, OCCUPANCY

logger = logging.getLogger(__name__)

MAX_PLACEMENTS: Final = 16
"""Placements of one pod name in memory: the latest, as older ones no longer change."""
PAGE: Final = 1_000
PLACEMENT_TIEBREAKERS: Final = ("cluster", "namespace", "pod")
"""Order placements that begin at the same instant: a name has one pod at a time. Not all of them have an attempt."""
_MAX_SCHEDULERS: Final = 4
"""That observe one node: each has observations of its own."""
_MAX_EPISODES: Final = 100
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


_FACTS: Final = TypeAdapter(_Facts)


def facts_field(derived: DerivedPlacement) -> dict[str, Any]:
    """What the document keeps so that the placement can be derived again."""
    return {"binds": derived.binds, "sights": derived.sights}


def facts_of(document: StoredPlacement) -> list[Fact]:
    """The facts that a placement was derived from; none of a document that was written by another program."""
    try:
        known = document.source.get("known") or {}
        facts = _FACTS.validate_python((known.get("binds", ()), known.get("sights", ())))
    except (ValidationError, AttributeError) as error:
        logger.warning(
            "document %s of %s is ignored: its field `known` is not one that this process wrote: %.300s",
            document.id,
            document.index,
            error,
        )
        return []
    return [*facts.binds, *facts.sights]


def placements_of_pod(pod: PodKey) -> Search:
    # With the version of each document, which the next write has to exceed.
    body = {"query": _all(*_about_pod(pod)), "sort": [by_time("desc")], "version": True}
    return in_indices(OCCUPANCY.alias), body | {"size": MAX_PLACEMENTS, "track_total_hits": False}


def observations_of_pod(pod: PodKey) -> Search:
    terms = _all({"kind": "pod-observed"}, *_about_pod(pod))
    return in_indices(OBSERVATIONS.alias), _observations(terms, REMEMBERED)


def _about_pod(pod: PodKey) -> list[dict[str, Any]]:
    return [{"cluster": pod.cluster}, {"namespace": pod.namespace}, {"pod": pod.name}]


def observations_of_node(node: NodeKey) -> list[Search]:
    """One search for each kind, so that frequent kinds do not displace rare ones."""
    return [
        (
            in_indices(OBSERVATIONS.alias),
            _observations(
                _all({"kind": kind}, {"cluster": node.cluster}, {"node": node.name}), _MAX_SCHEDULERS * REMEMBERED
            ),
        )
        for kind in _NODE_KINDS
    ]


def observations_of(key: ObservedKey) -> Search:
    """The search for observations of a workload or of all instances of a scheduler."""
    if isinstance(key, SchedulerKey):
        terms = [{"kind": "scheduler-observed"}, {"cluster": key.cluster}, {"scheduler": key.name}]
    else:
        about = [{"cluster": key.cluster}, {"namespace": key.namespace}, {"workload": key.name}]
        terms = [{"kind": "workload-observed"}, *about]
    return in_indices(OBSERVATIONS.alias), _observations(_all(*terms), REMEMBERED)


def refusals_before(attempt: BoundAttempt) -> Search:
    """The failed attempts of the pod before this one; of each episode, which is refused for the same reasons, one."""
    pod = attempt.pod
    about = {"cluster": attempt.cluster, "namespace": pod.namespace, "pod": pod.name, "pod_uid": pod.uid}
    filters: list[Any] = [{"term": {name: value}} for name, value in (about | {"status": "failed"}).items()]
    filters.append({"range": {"@timestamp": {"lt": rfc3339(attempt.started_at)}}})
    body = {
        "query": {"bool": {"filter": filters}},
        "collapse": {"field": "episode"},
        "sort": [by_time("desc")],
        "size": _MAX_EPISODES,
        "_source": ["reasons"],
        "track_total_hits": False,
    }
    return in_indices(ATTEMPTS.alias), body


def reasons_in(hits: Iterable[dict[str, Any]]) -> list[str]:
    """Every reason of some attempt, sorted."""
    return sorted({str(reason) for hit in hits for reason in hit["_source"].get("reasons") or ()})


def _observations(query: dict[str, Any], size: int) -> dict[str, Any]:
    source = {"_source": ["kind", "digest", "event"], "track_total_hits": False}
    return {"query": query, "sort": [by_time("desc")], "size": size} | source


def holdings_since(since: datetime, after: list[Any] | None) -> Search:
    """A page of the placements with devices that have not ended, or ended after ``since``."""
    # Those that ended lately too: records that arrive late may overlap with them.
    recent = {"bool": {"should": [NOT_ENDED, {"range": {"ended_at": {"gte": rfc3339(since)}}}]}}
    filters = [{"exists": {"field": "devices"}}, recent]
    return page_search(OCCUPANCY, filters, PLACEMENT_TIEBREAKERS, PAGE, after, version=True)


def reported_findings(ids: Sequence[str]) -> Search:
    """Which of these findings the index has."""
    body = {"query": {"ids": {"values": list(ids)}}, "size": len(ids), "_source": False, "track_total_hits": False}
    return in_indices(FINDINGS.alias), body


def _all(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"bool": {"filter": [{"term": term} for term in terms]}}


def stored(hits: Iterable[dict[str, Any]]) -> list[StoredPlacement]:
    return [StoredPlacement(hit["_index"], hit["_id"], hit.get("_version", 0), hit["_source"]) for hit in hits]


def observed(hits: Iterable[dict[str, Any]]) -> Iterator[tuple[ObservationDigest, Observed]]:
    for hit in hits:
        event = observation_of(hit["_source"])
        if not isinstance(event, Rejected):
            yield ObservationDigest(event.observed_at, hit["_id"], hit["_source"].get("digest") or ""), event


def holding_of(document: StoredPlacement) -> Holding | None:
    placement = placement_of(document.id, document.source)
    # The bind has the start of the attempt, which the placement itself does not keep.
    bind = next((fact for fact in facts_of(document) if isinstance(fact, BindFact)), None)
    if isinstance(placement, Rejected):
        return None
    return Holding(placement, bind.started_at if bind else placement.started_at)
