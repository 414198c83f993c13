"""List of findings of audits: by pod, node, device, type, scheduler and time. Pure."""

from collections.abc import Mapping
from typing import Final

from api.http.cluster import Cluster
from api.http.param_types import Milliseconds
from api.index.reading.pages import ListDefinition, ListSource, PagePosition
from api.index.reading.query_dsl import match_terms, match_time_range, sort_by, sort_latest_first
from schemas.answers.placements import Finding, Findings
from schemas.indices import FINDINGS
from schemas.json_types import Json

FindingsPosition = PagePosition[tuple[Milliseconds, str, str, str, str]]

# Unique, because the id of a finding is made from these fields.
_SORT: Final = [sort_latest_first("found_at"), *map(sort_by, ("attempt_id", "finding", "node", "device"))]
_SAME_IN_ANSWER: Final = (
    "finding", "found_at", "scheduler", "pod_uid", "attempt_id", "node", "device", "numbers", "evidence",
)  # fmt: skip
"""Fields with the same name in the answer and in the document."""


def to_finding(cluster: Cluster, hit: Json) -> Finding:
    """Convert a hit into an item. Raises ``KeyError`` or ``ValidationError`` for a document that is not a finding."""
    source = hit["_source"]
    namespace, name = source["namespace"], source["pod"]
    fields = {field: source[field] for field in _SAME_IN_ANSWER}
    # Documents of an earlier version lack this field.
    fields["evidence_pods"] = source.get("evidence_pods", [])
    return Finding(
        **fields,
        namespace=namespace,
        name=name,
        started_at=source["@timestamp"],
        attempt=cluster.link_attempt(source["attempt_id"]),
        schedulerlog=cluster.link_schedulerlog(namespace, name),
    )


FINDINGS_LIST: Final = ListDefinition(
    "findings", ListSource(FINDINGS.alias, _SORT, True), FindingsPosition, to_finding, Findings
)


def build_finding_filters(values: Mapping[str, str | None], position: FindingsPosition) -> list[Json]:
    """Build the clauses of a search for findings. ``values``: field to its required value, None for any."""
    return [*match_terms(values), *match_time_range("found_at", position.since, position.until)]
