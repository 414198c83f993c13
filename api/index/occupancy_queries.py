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
from schemas.answers.placements import StayLog, Stays
from schemas.codec.records import rfc3339
from schemas.documents.attempts import stay_of
from schemas.indices import OCCUPANCY
from schemas.occupancy import Stay

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
    return {"bool": {"must_not": [{"range": {"until": {word: moment}}}]}}


def stay(hit: Json) -> Stay:
    """Raises ``UnreadableError``."""
    return readable(partial(stay_of, hit["_id"]), hit["_source"], hit["_id"])


def _stay_log(hit: Json) -> StayLog:
    here = stay(hit)
    said = {
        "namespace": here.pod.namespace,
        "name": here.pod.name,
        "pod_uid": here.pod.uid,
        "node": here.node,
        "from": rfc3339(here.began),
        "until": rfc3339(here.until) if here.until else None,
        "ended_by": here.ended_by,
        "phase": here.phase,
        "scheduler": here.scheduler,
        "attempt_id": here.attempt_id,
        "devices": here.held,
        "schedulerlog": schedulerlog_path(here.pod.namespace, here.pod.name),
    }
    return StayLog.model_validate(said)


LISTING: Final = Listing("stays", _KIND, StaysPosition, _stay_log, Stays)
