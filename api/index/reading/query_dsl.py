"""Clauses of OpenSearch's query language. Pure."""

from collections.abc import Mapping, Sequence

from schemas.json_types import Json


def sort_by(field: str, order: str = "asc", unmapped_type: str = "keyword") -> Json:
    """One entry of ``sort``. ``unmapped_type`` is used while no document has given the field a mapping yet."""
    return {field: {"order": order, "unmapped_type": unmapped_type}}


def sort_latest_first(field: str) -> Json:
    return sort_by(field, "desc", "date")


def term(field: str, value: str) -> Json:
    return {"term": {field: value}}


def of_cluster(cluster: str) -> Json:
    """The clause of every search: one index holds the documents of several clusters."""
    return term("cluster", cluster)


def all_of(clauses: Sequence[Json]) -> Json:
    """A query that meets all ``clauses``; as filters, which OpenSearch caches and does not score."""
    return {"bool": {"filter": list(clauses)}}


def term_filters(values: Mapping[str, str | None]) -> list[Json]:
    """A ``term`` clause for each field (key) whose value is not None."""
    return [term(field, value) for field, value in values.items() if value is not None]


def time_range(field: str, since: str | None, until: str | None) -> list[Json]:
    """Clauses for ``since`` or later and before ``until`` (RFC 3339), without those that are None."""
    # Half-open, so that two ranges that meet have no item in common.
    bounds = (("gte", since), ("lt", until))
    return [{"range": {field: {operator: time}}} for operator, time in bounds if time]
