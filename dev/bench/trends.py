"""Counts over time as rows of minutes, as rows of hours, and of a year: documents, bytes, and CPU of a question."""

import asyncio
import os
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

import httpx
import orjson

from api.http.trends_query import TrendsQuery
from api.index.trend_counts import build_trends_query
from dev.bench.backends import FOLDER
from dev.bench.backlog import post_all
from dev.bench.cpu import read_cpu_seconds
from dev.bench.report import Figure, Result
from dev.demo.stack import provisioned
from pipeline.admin.trend_hours import sum_up_hours
from pipeline.settings import RetentionSettings
from pipeline.sinks.bulk import Document
from runtime.opensearch.client import create_client
from schemas.documents.trends import build_trend_documents
from schemas.events import TrendsCounted
from schemas.indices import TRENDS

PARTITIONS: Final = 3
"""Partitions of the overlay `small`."""
NAMESPACES: Final = ("ml", "llm", "vision")
VALUES: Final = {
    "all": "", "reason": "CardInsufficientMemory", "obstacle": "CardInsufficientMemory", "model": "NVIDIA A100",
    "workload": "Job/train", "queue": "team-a",
}  # fmt: skip
"""Rows that an attempt adds to: value by dimension."""
DAYS: Final = 7
REQUESTS: Final = 60
NOW: Final = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
MONTH_AGO: Final = NOW - timedelta(days=30)


def measure_trends() -> Result:
    """Measure a year of hours, a week of minutes of a busy small cluster, and the same week as hours."""
    figures: list[Figure] = []
    with provisioned(FOLDER / "trends") as (backends, _):
        url, pid = backends.opensearch_url, backends.opensearch.pid
        # On new indices: rows of long ago that come after others were summed up are taken for repetitions.
        _post(url, [MONTH_AGO - timedelta(hours=hour) for hour in range(365 * 24)], 1)
        _sum_up(url)
        figures += _measure(url, pid, "a year of hours", timedelta(days=365), "1d")
        httpx.delete(f"{url}/{TRENDS.alias}-*", timeout=60).raise_for_status()
        week = [MONTH_AGO - timedelta(minutes=minute) for minute in range(DAYS * 24 * 60)]
        _post(url, week, PARTITIONS)
        figures += _measure(url, pid, f"{DAYS} days of minutes", timedelta(days=DAYS), "1h")
        begun = read_cpu_seconds(pid)
        count = _sum_up(url)
        spent = read_cpu_seconds(pid) - begun
        figures.append(Figure("summing up", round(spent, 1), "s of CPU", note=f"{count:,} rows of hours"))
        figures += _measure(url, pid, f"{DAYS} days of hours", timedelta(days=DAYS), "1h")
    return Result(
        "trends",
        "Rows of counts: documents and bytes after a merge, and CPU of OpenSearch for a question about obstacles, "
        "without its cache",
        f"every minute an attempt in each of {PARTITIONS} partitions, {len(NAMESPACES)} namespaces, {len(VALUES)} rows "
        f"an attempt; {REQUESTS} questions; load average {os.getloadavg()[0]:.1f} at the end",
        tuple(figures),
    )


def _post(url: str, minutes: list[datetime], partitions: int) -> None:
    latest = list(_build_rows(NOW, 0, random.Random(0)))
    chance = random.Random(len(minutes))
    rows = (
        row for minute in minutes for partition in range(partitions) for row in _build_rows(minute, partition, chance)
    )
    post_all(url, [*latest, *rows])


def _build_rows(minute: datetime, partition: int, chance: random.Random) -> Iterator[Document]:
    """Build the rows of a minute and partition, in which one namespace has an attempt."""
    count = len(VALUES)
    event = TrendsCounted.model_validate({
        "cluster": "default", "started_at": minute, "partition": partition, "version": 1,
        "recorded_at": minute.replace(minute=minute.minute // 10 * 10),
        "namespace": [chance.choice(NAMESPACES)] * count, "result": ["failed"] * count,
        "dimension": list(VALUES), "value": list(VALUES.values()),
        "attempts": [1] * count, "pods": [1] * count, "nodes": [10] * count, "devices": [80] * count,
    })  # fmt: skip
    for name, fields in build_trend_documents(event):
        yield Document(TRENDS.name(minute), name, orjson.dumps(fields), event.version)


def _sum_up(url: str) -> int:
    names = list(httpx.get(f"{url}/{TRENDS.alias}-*", timeout=60).raise_for_status().json())

    async def run() -> int:
        store = create_client(RetentionSettings.model_validate({"opensearch_url": url, "opensearch_timeout": "300s"}))
        try:
            return (await sum_up_hours(store, names, NOW, dry_run=False)).documents
        finally:
            await store.close()

    return asyncio.run(run())


def _measure(url: str, pid: int, name: str, span: timedelta, interval: str) -> list[Figure]:
    """Measure what the index has, and questions about ranges that end with the newest old row."""
    merge = httpx.post(f"{url}/{TRENDS.alias}-*/_forcemerge", params={"max_num_segments": 1}, timeout=600)
    merge.raise_for_status()
    stats = httpx.get(f"{url}/{TRENDS.alias}-*/_stats/docs,store", timeout=60).raise_for_status().json()
    total = stats["_all"]["primaries"]
    before = 0.0
    for number in range(REQUESTS + 10):
        # The first ones pay for what is compiled.
        before = read_cpu_seconds(pid) if number == 10 else before
        since = MONTH_AGO - span + timedelta(hours=number % 5)
        query = TrendsQuery.model_validate(
            {"since": f"{since:%FT%TZ}", "until": f"{MONTH_AGO:%FT%TZ}", "interval": interval}
        )
        body = build_trends_query("default", query, query.derive_range(NOW))
        params = {"request_cache": "false"}
        answer = (
            httpx.post(f"{url}/{TRENDS.alias}/_search", json=body, params=params, timeout=60).raise_for_status().json()
        )
        assert answer["aggregations"]["counted"]["series"]["buckets"][0]["total"]["value"] > 0
    spent = (read_cpu_seconds(pid) - before) / REQUESTS * 1000
    return [
        Figure(f"{name}: documents", total["docs"]["count"], "documents"),
        Figure(f"{name}: bytes", total["store"]["size_in_bytes"], "bytes"),
        Figure(f"{name}: question by {interval}", round(spent, 1), "CPU ms"),
    ]
