"""What audits found, as a list: by pod, node, device, kind, scheduler and time. Pure: nothing here is sent."""

from collections.abc import Mapping
from typing import Any, Final

from api.handlers.listing import Listing
from api.index.attempt_queries import schedulerlog_path
from api.index.query_dsl import Kind, PagePosition, between, by, latest_by, terms_of
from schemas.answers.placements import Finding, Findings
from schemas.indices import FINDINGS

Json = dict[str, Any]

FindingsPosition = PagePosition[tuple[int, str, str, str, str]]

_SORT: Final = [latest_by("found_at"), *map(by, ("attempt_id", "finding", "node", "device"))]
"""A finding's id has no more parts than these."""
_SAME: Final = ("finding", "found_at", "scheduler", "pod_uid", "attempt_id", "node", "device", "numbers", "evidence")


def finding(hit: Json) -> Finding:
    """What a document of the index says."""
    source = hit["_source"]
    namespace, name = source["namespace"], source["pod"]
    said = {field: source[field] for field in _SAME}
    return Finding(
        **said,
        namespace=namespace,
        name=name,
        started_at=source["@timestamp"],
        schedulerlog=schedulerlog_path(namespace, name),
    )


LISTING: Final = Listing("findings", Kind(FINDINGS.alias, _SORT, True), FindingsPosition, finding, Findings)


def conditions(asked: Mapping[str, str | None], within: FindingsPosition) -> list[Json]:
    """``asked``: field of the index to the word that it has to hold."""
    return [*terms_of(asked), *between("found_at", within)]
