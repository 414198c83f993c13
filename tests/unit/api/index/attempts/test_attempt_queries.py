"""Queries about attempts, and list items from their documents."""

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from api.http.cluster import Cluster
from api.http.pagination import derive_token_scope
from api.http.query_params import SearchQuery
from api.index.attempts.attempt_queries import (
    NODE_COLUMNS,
    SEARCH_SOURCE,
    SearchPosition,
    build_refusal_counts,
    build_search_filters,
    decode_without_nodes,
    does_filter_line_need_nodes,
    does_item_need_nodes,
    to_search_item,
)
from api.index.reading.client import IndexDownError, IndexRefusedError, to_index_error
from api.index.reading.pages import build_first_position, build_page_body
from schemas.answers.attempts import AttemptFound
from schemas.codec.records import Rejected, encode_value
from schemas.documents.attempts import build_attempt_document
from schemas.events import AttemptSummarized, BindOutcome
from tests.support.builders.events import STARTED, a_summary

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
FITS: dict[str, Any] = {
    "chosen": "node2",
    "verdict": [0, 2],
    "refused_by": [0, -1],
    "refusal": [0, -1],
    "ended_at": STARTED,
}


def a_search(**parameters: str) -> SearchQuery:
    return SearchQuery.model_validate(parameters)


DEFAULT = Cluster("default")


def build_first(query: SearchQuery) -> SearchPosition:
    return build_first_position(SearchPosition, query.since, query.until, NOW)


def search(query: SearchQuery, position: SearchPosition) -> dict[str, Any]:
    return build_page_body(SEARCH_SOURCE, build_search_filters("default", query, position), position, query.limit)


def test_a_node_and_a_reason_are_one_refusal_and_each_alone_is_anywhere() -> None:
    def list_terms(**parameters: str) -> list[Any]:
        query = a_search(**parameters)
        filters: list[Any] = search(query, build_first(query))["query"]["bool"]["filter"]
        return filters[1:]

    assert list_terms(node="node1", reason="NumaNotFit") == [{"term": {"node_reasons": "node1|NumaNotFit"}}]
    assert list_terms(node="node1") == [{"term": {"nodes": "node1"}}]
    assert list_terms(reason="NumaNotFit") == [{"term": {"reasons": "NumaNotFit"}}]


def test_names_are_counted_as_they_are_and_not_as_expressions() -> None:
    def include(node: str | None, reason: str | None) -> str | None:
        pattern: str | None = build_refusal_counts(node, reason)["nodes"]["terms"].get("include")
        return pattern

    assert include("gpu-1.a", None) == r"gpu\-1\.a\|.*"
    assert include(None, ".*|@(x)#~") == r".*\|\.\*\|\@\(x\)\#\~"
    assert include(None, None) is None


def test_every_parameter_becomes_one_condition() -> None:
    query = a_search(
        namespace="llm",
        pod="a",
        node="node1",
        reason="NumaNotFit",
        status="failed",
        device="GPU-1",
        scheduler="hami-scheduler",
        workload="Job/train",
        queue="research",
        since="2h",
        until="2026-11-21T11:30:00Z",
        q="locked within",
    )
    body = search(query, build_first(query))
    assert body["query"] == {
        "bool": {
            "filter": [
                {"term": {"cluster": "default"}},
                {"term": {"namespace": "llm"}},
                {"term": {"pod": "a"}},
                {"term": {"node_reasons": "node1|NumaNotFit"}},
                {"term": {"status": "failed"}},
                {"term": {"picked_devices": "GPU-1"}},
                {"term": {"scheduler": "hami-scheduler"}},
                {"term": {"workload": "Job/train"}},
                {"term": {"queue": "research"}},
                {"range": {"@timestamp": {"gte": "2026-11-21T10:00:00.000000Z"}}},
                {"range": {"@timestamp": {"lt": "2026-11-21T11:30:00.000000Z"}}},
                {"match": {"text": {"query": "locked within", "operator": "and"}}},
            ]
        }
    }
    assert body["size"] == 51
    assert body["track_total_hits"] is True


def test_a_later_page_keeps_what_durations_meant_at_the_first() -> None:
    query = a_search(since="2h")
    position = SearchPosition(sort=(17, "a"), total=3, since="2026-11-21T10:00:00.000000Z", until=None)
    body = search(query, position)
    assert body["search_after"] == [17, "a"]
    assert {"range": {"@timestamp": {"gte": "2026-11-21T10:00:00.000000Z"}}} in body["query"]["bool"]["filter"]


def test_the_page_size_may_change_from_page_to_page_and_nothing_else() -> None:
    failed = derive_token_scope("alice", "here", a_search(status="failed"))
    assert derive_token_scope("alice", "here", a_search(status="failed", limit="5")) == failed
    assert derive_token_scope("alice", "here", a_search(status="pending")) != failed
    assert derive_token_scope("alice", "there", a_search(status="failed")) != failed
    assert derive_token_scope("bob", "here", a_search(status="failed")) != failed


def strip_nodes(summary: AttemptSummarized) -> AttemptSummarized | Rejected:
    """Strip the node columns, as the index gives an attempt when they are left out."""
    document = orjson.loads(encode_value(build_attempt_document(summary, "")))
    for column in NODE_COLUMNS:
        del document["summary"][column.removeprefix("summary.")]
    return decode_without_nodes(document)


def test_an_item_of_a_list_needs_no_nodes_unless_its_text_names_some() -> None:
    refused = a_summary(ended_at=STARTED)
    bare = strip_nodes(refused)
    assert isinstance(bare, AttemptSummarized)
    assert not does_item_need_nodes(bare)
    assert to_search_item(DEFAULT, bare) == to_search_item(DEFAULT, refused)
    terms = {"slots": [0.0, 1.5], "memory": [0.0, 0.25]}
    fitting = strip_nodes(a_summary(**FITS, score_terms=terms))
    assert isinstance(fitting, AttemptSummarized)
    assert does_item_need_nodes(fitting)
    bound = strip_nodes(
        a_summary(**FITS, score_terms=terms, bind=BindOutcome(node="node2", bound=True, ended_at=STARTED))
    )
    assert isinstance(bound, AttemptSummarized)
    assert not does_item_need_nodes(bound)
    assert does_filter_line_need_nodes(bound)


def test_an_item_has_the_text_of_the_last_phase_and_the_path_of_the_schedulerlog() -> None:
    bind = BindOutcome(node="node2", bound=False, error="node node2 has been locked", ended_at=STARTED)
    assert to_search_item(DEFAULT, a_summary(**FITS, bind=bind)) == AttemptFound(
        attempt_id="0f" * 16,
        namespace="llm",
        name="deepseek-a",
        scheduler="hami-scheduler",
        started_at="2026-11-21T03:06:23.217054Z",
        ended_at="2026-11-21T03:06:23.217054Z",
        status="failed",
        complete=True,
        chosen="node2",
        offered_nodes=2,
        fit_nodes=0,
        reasons=["BindingFailed", "CardInsufficientMemory"],
        summary="node node2 has been locked",
        workload="",
        attempt="/api/v1/attempts/" + "0f" * 16,
        schedulerlog="/api/v1/namespaces/llm/pods/deepseek-a/schedulerlog",
    )


@pytest.mark.parametrize("source", [{}, {"summary": None}, {"summary": "x"}, {"summary": {}}, {"summary": [1]}])
def test_a_document_without_a_summary_is_rejected(source: dict[str, object]) -> None:
    assert isinstance(decode_without_nodes(source), Rejected)


# Answers of OpenSearch 3.8, shortened.
@pytest.mark.parametrize(
    ("status", "answer", "kind"),
    [
        (
            404,
            {
                "error": {
                    "type": "search_phase_execution_exception",
                    "reason": "all shards failed",
                    "failed_shards": [{"reason": {"type": "search_context_missing_exception", "reason": "gone"}}],
                }
            },
            IndexRefusedError,
        ),
        (429, {"error": {"type": "rejected_execution_exception", "reason": "full"}}, IndexDownError),
        (503, {"error": {"type": "search_phase_execution_exception", "reason": "all shards failed"}}, IndexDownError),
        (500, "oops", IndexDownError),
        (502, None, IndexDownError),
        (400, {"error": {"type": "parsing_exception", "reason": "unknown query"}}, IndexRefusedError),
        (401, "Unauthorized", IndexDownError),
        (404, {"error": None}, IndexRefusedError),
        (404, {"error": {"root_cause": None, "failed_shards": [{}], "caused_by": None}}, IndexRefusedError),
    ],
)
def test_an_error_of_opensearch_becomes_the_exception_that_says_what_to_do(
    status: int, answer: object, kind: type[Exception]
) -> None:
    assert type(to_index_error(status, answer)) is kind
