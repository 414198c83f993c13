"""Counts over time by what decided: each attempt once, and those of which that is not known beside them."""

from datetime import UTC, datetime
from typing import Any

import pytest

from api.http.trends_query import TrendsQuery
from api.index.trend_counts import read_trends
from schemas.json_types import Json

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
Counts = dict[str, list[int]]


class TrendsIndex:
    """Index of trends with counts by hour, of obstacles and of results; the range before has as many."""

    def __init__(self, obstacles: Counts, results: Counts) -> None:
        self._obstacles, self._results = obstacles, results

    async def search(self, _alias: str, body: Json) -> Json:
        if "counted" not in body["aggs"]:
            return {"aggregations": self._aggregate(self._results)}
        unplaced = {key: values for key, values in self._results.items() if key != "succeeded"}
        return {"aggregations": {"counted": self._aggregate(self._obstacles), "unplaced": self._aggregate(unplaced)}}

    def _aggregate(self, counts: Counts) -> Json:
        hours = [round(NOW.timestamp() * 1000) - (2 - hour) * 3_600_000 for hour in range(2)]
        all_hours = [sum(values) for values in zip(*counts.values(), strict=True)] if counts else [0, 0]
        buckets = [
            {"key": key, "total": {"value": sum(values)}, "times": _build_times(hours, values)}
            for key, values in counts.items()
        ]
        return {
            "series": {"buckets": buckets}, "times": _build_times(hours, all_hours),
            "total": {"value": sum(all_hours)},
        }  # fmt: skip


def _build_times(hours: list[int], values: list[int]) -> dict[str, Any]:
    times = [{"key": hour, "total": {"value": value}} for hour, value in zip(hours, values, strict=True)]
    return {"buckets": times}


@pytest.mark.parametrize(
    ("obstacles", "results", "unknown"),
    [
        ({"NumaNotFit": [3, 1]}, {"failed": [4, 1], "pending": [0, 2], "succeeded": [9, 9]}, [1, 2]),
        ({"NumaNotFit": [3, 1], "CardCordoned": [1, 0]}, {"failed": [4, 1], "succeeded": [5, 0]}, None),
        ({}, {"failed": [2, 2]}, [2, 2]),
        # A refresh showed the rows under obstacles first.
        ({"NumaNotFit": [3, 1]}, {"failed": [2, 1]}, None),
    ],
    ids=["some", "none", "all of an earlier version", "fewer"],
)
async def test_attempts_under_no_obstacle_are_a_series_of_their_own(
    obstacles: Counts, results: Counts, unknown: list[int] | None
) -> None:
    query = TrendsQuery.model_validate({"since": "2h", "interval": "1h"})
    trends = await read_trends(TrendsIndex(obstacles, results), "default", query, NOW)  # type: ignore[arg-type]
    assert {series.key: series.values for series in trends.items} == obstacles
    assert (trends.unknown.values if trends.unknown else None) == unknown
    if trends.unknown and unknown:
        assert (trends.unknown.total, trends.unknown.total_before) == (sum(unknown), sum(unknown))


async def test_other_dimensions_have_no_unknown_attempts() -> None:
    for dimension in ("reason", "result", "namespace"):
        query = TrendsQuery.model_validate({"by": dimension, "since": "2h", "interval": "1h"})
        index = TrendsIndex({}, {"failed": [2, 2]})
        assert (await read_trends(index, "default", query, NOW)).unknown is None  # type: ignore[arg-type]
