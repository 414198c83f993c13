"""Path and query parameters: what is accepted, and how an error names what is wrong."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from api.http.param_types import parse_time
from api.http.query_params import HistoryQuery, SchedulerlogQuery, SearchQuery

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("15m", NOW - timedelta(minutes=15)),
        ("2h", NOW - timedelta(hours=2)),
        ("7d", NOW - timedelta(days=7)),
        ("0s", NOW),
        ("2026-01-02T03:04:05Z", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("2026-01-02t03:04:05.5z", datetime(2026, 1, 2, 3, 4, 5, 500_000, tzinfo=UTC)),
        ("2026-01-02T03:04:05.123456789Z", datetime(2026, 1, 2, 3, 4, 5, 123_456, tzinfo=UTC)),
        ("2026-01-02T03:04:05+08:00", datetime(2026, 1, 1, 19, 4, 5, tzinfo=UTC)),
        ("2026-01-02T03:04:05 08:00", datetime(2026, 1, 1, 19, 4, 5, tzinfo=UTC)),
    ],
)
def test_times_and_durations(text: str, expected: datetime) -> None:
    assert parse_time(text, NOW) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "2h30m",
        "-2h",
        "1e3s",
        "٣h",
        "9999999d",
        "999999d",
        "2026-01-02",
        "2026-01-02T03:04:05",
        "2026-13-02T03:04:05Z",
        "2026-02-30T00:00:00Z",
        "0001-01-01T00:00:00+08:00",
    ],
)
def test_a_text_that_is_not_a_time_is_refused_in_the_query(text: str) -> None:
    with pytest.raises(ValidationError):
        SearchQuery.model_validate({"since": text})


@given(st.text(max_size=40))
def test_any_text_for_a_time_is_taken_or_refused_and_never_fails_otherwise(text: str) -> None:
    try:
        query = SearchQuery.model_validate({"until": text})
    except ValidationError:
        return
    assert query.until == text
    assert parse_time(text, NOW).tzinfo is not None


@pytest.mark.parametrize(
    ("parameters", "cause"),
    [
        ({"stauts": "failed"}, "'stauts' is unknown here; known are: namespace, pod, node"),
        ({"continue_": "x"}, "'continue_' is unknown"),
        ({"limit": "0"}, "greater than or equal to 1"),
        ({"limit": "201"}, "less than or equal to 200"),
        ({"limit": " 5"}, "not a whole number"),
        ({"limit": "1_0"}, "not a whole number"),
        ({"limit": "٣"}, "not a whole number"),
        ({"limit": "5.0"}, "not a whole number"),
        ({"status": "Failed"}, "placed, refused, undecided (in answers: succeeded, failed, pending)"),
        ({"namespace": "a.b"}, "'.'"),
        ({"node": "Node1"}, "'N'"),
        ({"reason": ""}, "at least 1 character"),
        ({"q": "x" * 501}, "at most 500"),
    ],
)
def test_a_wrong_search_names_its_mistake(parameters: dict[str, str], cause: str) -> None:
    with pytest.raises(ValidationError) as refused:
        SearchQuery.model_validate(parameters)
    assert cause in refused.value.errors()[0]["msg"]


def test_nodes_may_be_repeated_or_stand_between_commas_and_count_once() -> None:
    query = SchedulerlogQuery.model_validate({"node": ["node1,node2", "node2", "node3"]})
    assert query.node == ["node1", "node2", "node3"]


@pytest.mark.parametrize("nodes", [[""], ["node1,"], ["a,,b"], ["Node"], [",".join(f"n{i}" for i in range(101))]])
def test_wrong_node_lists_are_refused(nodes: list[str]) -> None:
    with pytest.raises(ValidationError):
        SchedulerlogQuery.model_validate({"node": nodes})


def test_the_documented_defaults() -> None:
    assert SearchQuery.model_validate({}).limit == 50
    assert HistoryQuery.model_validate({}).limit == 20
    assert SchedulerlogQuery.model_validate({}).limit is None
