"""Which pod was where, asked of the index: the questions, and what its documents say. Pure: nothing here is sent.

The index counts time in milliseconds, so it is asked a little wide; whoever needs to know exactly looks again.
"""

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any, Final

from api.handlers.listing import Listing
from api.index.attempt_queries import schedulerlog_path
from api.index.attempt_reader import readable
from api.index.query_dsl import Kind, PagePosition, all_of, by, latest_by, terms_of
from schemas.answers.placements import PlacementLog, PodPlacements
from schemas.codec.records import rfc3339
from schemas.documents.placements import placement_of
from schemas.indices import OCCUPANCY
from schemas.placements import PodPlacement

Json = dict[str, Any]

StaysPosition = PagePosition[tuple[int, str, str, str, str]]

MOST_PODS: Final = 10_000
"""Of one node at one time; Kubernetes recommends at most 110, and OpenSearch gives no more at once."""
_SORT: Final = [latest_by("@timestamp"), *map(by, ("namespace", "pod", "pod_uid", "node"))]
_KIND: Final = Kind(OCCUPANCY.alias, _SORT, {"excludes": ["known", "text"]})


def conditions(asked: Mapping[str, str | None], within: StaysPosition) -> list[Json]:
    """Stays that were not over when the range began, and had begun before it ended."""
    clauses = terms_of(asked)
    if within.since:
        clauses.append(_not_over("lte", within.since))
    if within.until:
        clauses.append({"range": {"@timestamp": {"lt": within.until}}})
    return clauses


def at_time(node: str, device: str | None, at: datetime) -> Json:
    """The body that asks for every stay on ``node`` at a time."""
    moment = rfc3339(at)
    asked = [*terms_of({"node": node, "devices": device}), {"range": {"@timestamp": {"lte": moment}}}]
    return {
        "query": all_of([*asked, _not_over("lt", moment)]),
        "sort": _SORT,
        "size": MOST_PODS,
        "_source": _KIND.source,
        "track_total_hits": False,
    }


def _not_over(word: str, moment: str) -> Json:
    return {"bool": {"must_not": [{"range": {"ended_at": {word: moment}}}]}}


def stay(hit: Json) -> PodPlacement:
    """Raises ``UnreadableError``."""
    return readable(partial(placement_of, hit["_id"]), hit["_source"], hit["_id"])


def _stay_log(hit: Json) -> PlacementLog:
    here = stay(hit)
    said = {
        "namespace": here.pod.namespace,
        "name": here.pod.name,
        "pod_uid": here.pod.uid,
        "node": here.node,
        "started_at": rfc3339(here.started_at),
        "ended_at": rfc3339(here.ended_at) if here.ended_at else None,
        "ended_by": here.ended_by,
        "phase": here.phase,
        "scheduler": here.scheduler,
        "attempt_id": here.attempt_id,
        "devices": here.allocations,
        "schedulerlog": schedulerlog_path(here.pod.namespace, here.pod.name),
    }
    return PlacementLog.model_validate(said)


LISTING: Final = Listing("stays", _KIND, StaysPosition, _stay_log, PodPlacements)
