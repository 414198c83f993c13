"""What the index is asked, and what its answers say: pure."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from pydantic import TypeAdapter, ValidationError

from pipeline.placements.observation_dedup import KEPT, Known
from pipeline.sinks.msearch import Search, by_time, in_indices, page_search
from schemas.codec.records import Rejected, rfc3339
from schemas.documents.observations import OBSERVATION_KINDS, Observed, observation_of
from schemas.documents.placements import placement_of
from schemas.indices import FINDINGS, NOT_ENDED, OBSERVATIONS, OCCUPANCY
from summaries.occupancy import DerivedPlacement
from summaries.overcommit import Holding
from summaries.pod_timelines import BindFact, Fact, PodSighting

logger = logging.getLogger(__name__)

MOST_LIVES: Final = 16
"""Stays of one name that are at hand; older ones are as they were left."""
PAGE: Final = 1_000
_NODE_KINDS: Final = [kind for kind in OBSERVATION_KINDS if kind.startswith("node")]


@dataclass(frozen=True, slots=True)
class Stored:
    """A document of a stay as it stands in the index."""

    index: str
    id: str
    version: int
    source: dict[str, Any]


class _Facts(NamedTuple):
    binds: tuple[BindFact, ...] = ()
    sights: tuple[PodSighting, ...] = ()


_FACTS: Final = TypeAdapter(_Facts)


def known(made: DerivedPlacement) -> dict[str, Any]:
    """What the document keeps so that the stay can be made again."""
    return {"binds": made.binds, "sights": made.sights}


def facts_of(stored: Stored) -> list[Fact]:
    """Raises nothing: a document that somebody else wrote says nothing."""
    try:
        said = stored.source.get("known") or {}
        found = _FACTS.validate_python((said.get("binds", ()), said.get("sights", ())))
    except (ValidationError, AttributeError) as error:
        logger.warning(
            "document %s of %s says nothing of what it was made from: %.300s", stored.id, stored.index, error
        )
        return []
    return [*found.binds, *found.sights]


def stays_of_pod(namespace: str, name: str) -> Search:
    body = {"query": _all({"namespace": namespace}, {"pod": name}), "sort": [by_time("desc")], "version": True}
    return in_indices(OCCUPANCY.alias), body | {"size": MOST_LIVES, "track_total_hits": False}


def observations_of_pod(namespace: str, name: str) -> Search:
    about = _all({"kind": "pod-observed"}, {"namespace": namespace}, {"pod": name})
    return in_indices(OBSERVATIONS.alias), _observed(about, KEPT)


def observations_of_node(node: str) -> list[Search]:
    """One for each kind. Several schedulers may register a node."""
    return [
        (in_indices(OBSERVATIONS.alias), _observed(_all({"kind": kind}, {"node": node}), 4 * KEPT))
        for kind in _NODE_KINDS
    ]


def _observed(query: dict[str, Any], size: int) -> dict[str, Any]:
    source = {"_source": ["kind", "digest", "event"], "track_total_hits": False}
    return {"query": query, "sort": [by_time("desc")], "size": size} | source


def holdings_since(since: datetime, after: list[Any] | None) -> Search:
    """Stays with devices that go on, or ended since then; a page."""
    recent = {"bool": {"should": [NOT_ENDED, {"range": {"ended_at": {"gte": rfc3339(since)}}}]}}
    filters = [{"exists": {"field": "devices"}}, recent]
    return page_search(OCCUPANCY, filters, "attempt_id", PAGE, after, version=True)


def told_findings(ids: Sequence[str]) -> Search:
    body = {"query": {"ids": {"values": list(ids)}}, "size": len(ids), "_source": False, "track_total_hits": False}
    return in_indices(FINDINGS.alias), body


def _all(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"bool": {"filter": [{"term": each} for each in terms]}}


def stored(hits: Iterable[dict[str, Any]]) -> list[Stored]:
    return [Stored(hit["_index"], hit["_id"], hit.get("_version", 0), hit["_source"]) for hit in hits]


def observed(hits: Iterable[dict[str, Any]]) -> Iterator[tuple[Known, Observed]]:
    for hit in hits:
        event = observation_of(hit["_source"])
        if not isinstance(event, Rejected):
            yield Known(event.observed_at, hit["_id"], hit["_source"].get("digest") or ""), event


def holding_of(document: Stored) -> Holding | None:
    stay = placement_of(document.id, document.source)
    bind = next((each for each in facts_of(document) if isinstance(each, BindFact)), None)
    return None if isinstance(stay, Rejected) else Holding(stay, bind.started_at if bind else stay.started_at)
