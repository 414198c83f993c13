"""Saved searches: lists to read row by row, each row with a link to its pod's page. Pure.

Their columns fit beside the list of fields at 1,280 pixels: six, or nine where there is no column of the time.
"""

from typing import Final, NamedTuple

from deploy.dashboards.index_patterns import DEVICE_COUNT, PLACEMENTS_NOW, POD_LINK
from deploy.dashboards.saved_objects import SavedObject, build_search_source
from schemas.indices import ATTEMPTS, FINDINGS, POD_STATES


class SavedSearch(NamedTuple):
    id: str
    title: str
    description: str
    index_pattern: str
    query: str
    """Query in Lucene's syntax."""
    columns: tuple[str, ...]
    sort: str = "@timestamp"
    order: str = "desc"


NOT_PLACED: Final = "NOT status:succeeded"
"""Attempts that placed their pod nowhere."""
WAITING: Final = "state:waiting"
"""Pods that wait now."""
LASTING: Final = "NOT _exists_:ended_at"
"""Placements that have not ended."""

SEARCHES: Final = (
    SavedSearch(
        "schedulerlog-waiting-pods",
        "schedulerlog: waiting pods",
        "Pods that wait now, whenever they were judged last: the longest wait first.",
        POD_STATES.alias,
        WAITING,
        (POD_LINK, "namespace", "pod", "first_judged_at", "status", "obstacle", "attempts", "queue", "workload"),
        sort="first_judged_at",
        order="asc",
    ),
    SavedSearch(
        "schedulerlog-refused-attempts",
        "schedulerlog: attempts without a placement",
        "Attempts that placed their pod nowhere, latest first; the pod may have been placed since.",
        ATTEMPTS.alias,
        NOT_PLACED,
        (POD_LINK, "namespace", "pod", "status", "obstacle", "episode_started_at"),
    ),
    SavedSearch(
        "schedulerlog-bind-failures",
        "schedulerlog: failed binds",
        "A node was chosen, and the bind to it failed.",
        ATTEMPTS.alias,
        "bound:false",
        (POD_LINK, "namespace", "pod", "chosen", "scheduler", "text"),
    ),
    SavedSearch(
        "schedulerlog-findings-list",
        "schedulerlog: findings",
        "Attempts and placements that contradict the state of the cluster.",
        FINDINGS.alias,
        "",
        ("finding", POD_LINK, "namespace", "pod", "node", "evidence"),
        sort="found_at",
    ),
    SavedSearch(
        "schedulerlog-pod-history",
        "schedulerlog: one pod's history",
        "Every attempt of one pod: write its namespace and name into the query.",
        ATTEMPTS.alias,
        'namespace:"default" AND pod:"gpu-pod"',
        (POD_LINK, "status", "chosen", "obstacle", "fit_nodes", "changes"),
    ),
    SavedSearch(
        "schedulerlog-placements-now",
        "schedulerlog: pods on devices now",
        "Placements that have not ended, whenever they began.",
        PLACEMENTS_NOW,
        LASTING,
        ("node", POD_LINK, "namespace", "pod", DEVICE_COUNT, "phase", "bound_at", "workload"),
    ),
)


def list_saved_searches() -> list[SavedObject]:
    return [_build_saved_object(search) for search in SEARCHES]


def _build_saved_object(search: SavedSearch) -> SavedObject:
    source, references = build_search_source(search.query, search.index_pattern, highlightAll=True, version=True)
    attributes = {
        "title": search.title,
        "description": search.description,
        "hits": 0,
        "columns": search.columns,
        "sort": [[search.sort, search.order]],
        "version": 1,
        **source,
    }
    return SavedObject("search", search.id, attributes, references)
