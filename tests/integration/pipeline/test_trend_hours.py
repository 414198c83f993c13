"""Counts of minutes that become counts of hours in a real OpenSearch: no sum changes, at no moment."""

import asyncio
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import httpx
import numpy as np
import pytest
from opensearchpy import AsyncOpenSearch
from opensearchpy.exceptions import TransportError

from api.http.trends_query import TrendsQuery
from api.index.reading.client import OpenSearch
from api.index.trend_counts import read_trends
from pipeline.admin.trend_hours import SummedHours, sum_up_hours
from pipeline.settings import RetentionSettings
from runtime.opensearch.client import create_client
from schemas.answers.trends import Trends
from schemas.events import TrendsCounted
from schemas.indices import TRENDS
from tests.support.builders.events import build_trends
from tests.support.harness.index_filling import Filling
from tests.support.reused_backends import reused_backends

NOW: Final = datetime(2026, 11, 28, 14, 45, tzinfo=UTC)
CUT: Final = datetime(2026, 11, 20, tzinfo=UTC)
"""Eight days before, at the beginning of the day."""
NUMBERS: Final = ("attempts", "pods", "nodes", "devices")
Sums = Counter[tuple[str, ...]]


@pytest.fixture
def url() -> Iterator[str]:
    """An OpenSearch with our templates and no counts."""
    with reused_backends.taken() as running:
        httpx.delete(f"{running.opensearch_url}/{TRENDS.alias}-*", timeout=30).raise_for_status()
        filling = Filling(running.bootstrap_servers, running.opensearch_url)
        filling.provision()
        yield running.opensearch_url


def count(started_at: datetime, recorded_at: datetime, partition: int, *rows: tuple[str, ...], **numbers: int) -> Any:
    """Build counts of a minute; ``rows``: namespace, result, dimension and value of each."""
    columns = dict(zip(("namespace", "result", "dimension", "value"), map(list, zip(*rows, strict=True)), strict=True))
    arrays = {name: np.full(len(rows), numbers.get(name, 1)) for name in NUMBERS}
    return build_trends(
        started_at=started_at, recorded_at=recorded_at, partition=partition, version=1, **columns, **arrays
    )


def build_random_counts(chance: random.Random, until: datetime, hours: int, number: int) -> list[TrendsCounted]:
    """Build counts of minutes in the hours before ``until``, recorded soon or a day later, of four partitions."""
    events = {}
    for _ in range(number):
        started_at = (until - timedelta(minutes=chance.randrange(hours * 60))).replace(second=0)
        recorded_at = started_at + timedelta(minutes=chance.choice((0, 10, 1440)))
        recorded_at = recorded_at.replace(minute=recorded_at.minute // 10 * 10)
        rows = [
            (chance.choice(("ml", "llm")), chance.choice(("failed", "succeeded")), "all", ""),
            ("ml", "failed", "reason", chance.choice(("NumaNotFit", "CardNotHealth"))),
        ]
        # Below 0: it takes back what was counted of an attempt of which more became known.
        numbers = {name: chance.randrange(-2, 50) for name in NUMBERS}
        event = count(started_at, recorded_at, chance.randrange(4), *rows, **numbers)
        events[event.id] = event
    return list(events.values())


def sum_by_hour(events: Sequence[TrendsCounted]) -> Sums:
    """Sum the rows by hour and combination, as Python adds."""
    sums = Sums()
    for event in events:
        hour = f"{event.started_at:%Y-%m-%dT%H}"
        for row, key in enumerate(zip(event.namespace, event.result, event.dimension, event.value, strict=True)):
            for name in NUMBERS:
                sums[hour, *key, name] += int(getattr(event, name)[row])
    return Sums({key: number for key, number in sums.items() if number})


def read_by_hour(url: str) -> Sums:
    """Read every document that the alias shows, and sum it in the same way."""
    httpx.post(f"{url}/{TRENDS.alias}-*/_refresh", timeout=30).raise_for_status()
    answer = httpx.post(f"{url}/{TRENDS.alias}/_search", json={"size": 10_000}, timeout=30).raise_for_status().json()
    sums = Sums()
    for document in (hit["_source"] for hit in answer["hits"]["hits"]):
        key = tuple(document[name] for name in ("namespace", "result", "dimension", "value"))
        for name in NUMBERS:
            sums[document["@timestamp"][:13], *key, name] += document[name]
    return Sums({key: number for key, number in sums.items() if number})


def list_documents(url: str) -> list[dict[str, Any]]:
    """List all documents, whether the alias shows them or not."""
    httpx.post(f"{url}/{TRENDS.alias}-*/_refresh", timeout=30).raise_for_status()
    answer = httpx.post(f"{url}/{TRENDS.alias}-*/_search", json={"size": 10_000}, timeout=30).raise_for_status()
    return [hit["_source"] for hit in answer.json()["hits"]["hits"]]


def sum_up(
    url: str, store: AsyncOpenSearch | None = None, *, now: datetime = NOW, dry_run: bool = False
) -> SummedHours:
    names = list(httpx.get(f"{url}/{TRENDS.alias}-*", timeout=30).raise_for_status().json())

    async def run() -> SummedHours:
        client = store or create_client(RetentionSettings.model_validate({"opensearch_url": url}))
        try:
            return await sum_up_hours(client, names, now, dry_run=dry_run)
        finally:
            await client.close()

    return asyncio.run(run())


def test_sums_are_equal_before_and_after(url: str) -> None:
    chance = random.Random(60)
    # Of two months; the last ones are of minutes that are still shown.
    old = build_random_counts(chance, CUT - timedelta(days=2), hours=30 * 24, number=300)
    new = build_random_counts(chance, NOW, hours=5 * 24, number=100)
    filling = Filling("", url)
    filling.index_trends(*old, *new)
    expected = sum_by_hour([*old, *new])
    assert read_by_hour(url) == expected
    assert sum_up(url, dry_run=True).documents == sum_up(url).documents > 0
    assert read_by_hour(url) == expected
    documents = list_documents(url)
    minutes = [document for document in documents if "partition" in document]
    assert sorted(document["@timestamp"] for document in minutes) == sorted(
        f"{event.started_at:%Y-%m-%dT%H:%M:%S}.000000Z" for event in new for _ in event.value
    )
    assert all(document["@timestamp"].endswith(":00:00.000000Z") for document in documents if document not in minutes)
    # Nothing is left to do, and doing it changes nothing.
    assert sum_up(url).documents == 0
    assert read_by_hour(url) == expected


def test_many_rows_of_an_hour_become_one(url: str) -> None:
    hour, row = datetime(2026, 11, 3, 9, tzinfo=UTC), ("ml", "failed", "all", "")
    rows = [
        count(hour + timedelta(minutes=minute), hour + timedelta(minutes=minute // 10 * 10), partition, row, devices=8)
        for minute in range(60)
        for partition in range(3)
    ]
    latest = count(NOW, NOW, 0, row)
    Filling("", url).index_trends(*rows, latest)
    assert sum_up(url).documents == 1
    (document,) = [document for document in list_documents(url) if "partition" not in document]
    assert (document["@timestamp"], document["attempts"], document["devices"]) == (
        "2026-11-03T09:00:00.000000Z", 180, 1440,
    )  # fmt: skip


def test_minutes_of_long_ago_that_are_counted_today_add_up(url: str) -> None:
    minute, row = datetime(2026, 10, 3, 9, 30, tzinfo=UTC), ("ml", "failed", "all", "")
    filling = Filling("", url)
    first = count(minute, minute, 0, row, attempts=5)
    filling.index_trends(first, count(NOW, NOW, 0, row))
    assert sum_up(url).documents == 1
    # An old log is read today; and the row that was summed up is written again, by an index writer that reads again.
    late = count(minute, NOW, 0, row, attempts=2)
    filling.index_trends(late, first)
    expected = sum_by_hour([first, late, count(NOW, NOW, 0, row)])
    assert read_by_hour(url) == expected
    assert sum_up(url).documents == 0
    assert read_by_hour(url) == expected
    assert len(list_documents(url)) == 3
    # Nine days later the late one is old as well: a row of another day, beside that of the first.
    later = NOW + timedelta(days=9)
    filling.index_trends(count(later, later, 0, row))
    assert sum_up(url, now=later).documents == 2
    assert read_by_hour(url) == expected + sum_by_hour([count(later, later, 0, row)])


class EndingClient:
    """Client that ends before a request to this path, as a process that is killed."""

    def __init__(self, url: str, path: str) -> None:
        self._client, self._path = create_client(RetentionSettings.model_validate({"opensearch_url": url})), path
        self.transport = self
        self.bulk, self.close = self._client.bulk, self._client.close

    async def perform_request(self, method: str, path: str, **options: Any) -> Any:
        if path.endswith(self._path):
            raise TransportError("N/A", "killed")
        return await self._client.transport.perform_request(method, path, **options)


@pytest.mark.parametrize("path", ["/_aliases", "/_delete_by_query"])
def test_a_run_that_is_killed_changes_no_sum_and_the_next_one_ends_its_work(url: str, path: str) -> None:
    events = build_random_counts(random.Random(61), CUT - timedelta(days=2), hours=48, number=60)
    latest = count(NOW, NOW, 0, ("ml", "failed", "all", ""))
    Filling("", url).index_trends(*events, latest)
    expected = sum_by_hour([*events, latest])
    with pytest.raises(TransportError):
        sum_up(url, EndingClient(url, path))
    assert read_by_hour(url) == expected
    sum_up(url)
    assert read_by_hour(url) == expected
    assert [
        document
        for document in list_documents(url)
        if "partition" in document and document["@timestamp"] < "2026-11-20"
    ] == []


def test_a_clock_that_is_ahead_sums_up_nothing_that_is_still_counted(url: str) -> None:
    latest, row = NOW - timedelta(days=30), ("ml", "failed", "all", "")
    rows = [count(latest - timedelta(days=days), latest - timedelta(days=days), 0, row) for days in (0, 7, 8, 9)]
    Filling("", url).index_trends(*rows)
    # To us it is thirty days later than the latest decision: what was counted in its last week is left.
    assert sum_up(url).documents == 1


def test_the_api_counts_the_same_before_and_after(url: str) -> None:
    events = build_random_counts(random.Random(62), CUT - timedelta(days=2), hours=48, number=200)
    Filling("", url).index_trends(*events, count(NOW, NOW, 0, ("ml", "failed", "all", "")))
    span = {"since": "2026-11-15T00:00:00Z", "until": "2026-11-20T00:00:00Z"}
    query = TrendsQuery.model_validate({"by": "reason", **span})

    async def ask() -> Trends:
        client = create_client(RetentionSettings.model_validate({"opensearch_url": url}))
        try:
            return await read_trends(OpenSearch(client, lambda *_: None, 10), "default", query, NOW)
        finally:
            await client.close()

    read_by_hour(url)
    before = asyncio.run(ask())
    assert sum_up(url).documents
    assert asyncio.run(ask()) == before
    assert before.interval_seconds == 6 * 3600
    assert sum(item.total for item in before.items)
