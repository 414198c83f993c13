"""Clauses of OpenSearch's query language. Pure."""

from collections.abc import Mapping, Sequence
from typing import Final

from schemas.json_types import Json


def sort_by(field: str, order: str = "asc", unmapped_type: str = "keyword") -> Json:
    """Build one entry of ``sort``. ``unmapped_type`` counts until a document has given the field a mapping."""
    return {field: {"order": order, "unmapped_type": unmapped_type}}


def sort_latest_first(field: str) -> Json:
    return sort_by(field, "desc", "date")


def match_term(field: str, value: str) -> Json:
    return {"term": {field: value}}


def match_cluster(cluster: str) -> Json:
    """Build the clause that every search has, because one index holds the documents of several clusters."""
    return match_term("cluster", cluster)


def combine(clauses: Sequence[Json]) -> Json:
    """Combine ``clauses`` into a query that meets all of them, as filters, which OpenSearch caches without scores."""
    return {"bool": {"filter": list(clauses)}}


WORKLOADS_SINCE: Final = "now-30m"
"""Age of the observation after which a workload without pods no longer counts: its watcher repeats it in time."""


def match_tried_since(since: str) -> Json:
    """Build a clause for pods whose latest attempt began at ``since`` or later, and for what has no attempt."""
    # Nobody tries a pod at a gate, so it is not observed again while it waits; the index forgets it after days.
    untried = {
        "bool": {"must_not": [{"exists": {"field": "attempt_id"}}], "filter": [{"exists": {"field": "pod_uid"}}]}
    }
    # A workload without pods has neither.
    workload = {
        "bool": {
            "must_not": [{"exists": {"field": "attempt_id"}}, {"exists": {"field": "pod_uid"}}],
            "filter": match_time_range("@timestamp", WORKLOADS_SINCE, None),
        }
    }
    tried = match_time_range("@timestamp", since, None)
    return {"bool": {"should": [*tried, untried, workload], "minimum_should_match": 1}}


def match_terms(values: Mapping[str, str | None]) -> list[Json]:
    """Build a ``match_term`` clause for each field (key) whose value is not None."""
    return [match_term(field, value) for field, value in values.items() if value is not None]


def match_time_range(field: str, since: str | None, until: str | None) -> list[Json]:
    """Build clauses for ``since`` or later and before ``until`` (RFC 3339); none for None."""
    # Half-open, so that two ranges that meet have no item in common.
    bounds = (("gte", since), ("lt", until))
    return [{"range": {field: {operator: time}}} for operator, time in bounds if time]
