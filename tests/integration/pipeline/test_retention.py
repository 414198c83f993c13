"""Old daily indices of a real OpenSearch are deleted, and nothing else is."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from pipeline.admin.retention import drop_expired
from pipeline.settings import RetentionSettings
from runtime.opensearch.client import create_client
from tests.support.reused_backends import reused_backends


def list_names(url: str) -> set[str]:
    indices = httpx.get(f"{url}/_cat/indices/schedulerlog-*,other-*", params={"format": "json"}, timeout=30).json()
    return {item["index"] for item in indices}


def run_retention(url: str, *options: str, **more: str) -> str:
    settings = more | {"SCHEDULERLOG_OPENSEARCH_URL": url, "SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:9"}
    command = [sys.executable, "-m", "pipeline", "retention", *options]
    return subprocess.run(
        command, env=os.environ | settings, capture_output=True, text=True, timeout=120, check=True
    ).stdout


@pytest.fixture(scope="module")
def index() -> Iterator[str]:
    with reused_backends.taken(only="opensearch") as running:
        yield running.opensearch_url


@pytest.fixture
def url(index: str) -> str:
    """The index without anything in it."""
    for name in list_names(index):
        httpx.delete(f"{index}/{name}", timeout=30).raise_for_status()
    return index


def run_retention_later(url: str, *, dry_run: bool = False, later: datetime | None = None, **more: Any) -> list[str]:
    """Return what it says ``later``, else in some hundred days, where no month ends: every index was made today."""
    settings = RetentionSettings.model_validate({"opensearch_url": url, **more})
    lines: list[str] = []

    async def run() -> None:
        store = create_client(settings)
        try:
            moment = later or (datetime.now(UTC) + timedelta(days=130)).replace(day=10)
            await drop_expired(store, settings, moment, dry_run=dry_run, say=lambda line: lines.append(str(line)))
        finally:
            await store.close()

    asyncio.run(run())
    return lines


def test_only_expired_whole_days_are_deleted(url: str) -> None:
    old = {"schedulerlog-attempts-2020.01.01", "schedulerlog-devices-2020.01.01"}
    others = {"other-2020.01.01", "schedulerlog-attempts-2020.01.01-copy", "schedulerlog-attempts-2099.01.01"}
    for name in old | others:
        httpx.put(f"{url}/{name}", timeout=30).raise_for_status()
    assert {line.split()[1].rstrip(":") for line in run_retention_later(url, dry_run=True)} == old
    assert list_names(url) == old | others
    assert "\n".join(run_retention_later(url)).count(": dropped, ") == len(old)
    assert list_names(url) == others
    assert run_retention_later(url) == []


def test_a_log_of_years_ago_that_was_read_today_is_kept_from_today_on(url: str) -> None:
    for cluster, day in (("default", "2024.04.20"), ("archive", "2024.04.21")):
        document = {"cluster": cluster, "@timestamp": "2024-04-20T00:00:00Z"}
        for family in ("schedulerlog-attempts-" + day, "schedulerlog-pod-states-all"):
            where = f"{url}/{family}/_doc"
            httpx.post(where, json=document, params={"refresh": "true"}, timeout=30).raise_for_status()
    # A term of a text field: without the template the mapping is guessed.
    # With a ceiling the family gets no index of a month, on whatever day this runs.
    ceiling = {"SCHEDULERLOG_RETENTION_SIZES": "attempts=1Ti"}
    assert "attempts" not in run_retention(url, **ceiling), "both were made today"
    lines = run_retention_later(url, kept_clusters=["archive"])
    assert [line.split(":")[0] for line in lines] == ["index schedulerlog-attempts-2024.04.20"]
    assert list_names(url) == {"schedulerlog-attempts-2024.04.21", "schedulerlog-pod-states-all"}
    assert httpx.get(f"{url}/schedulerlog-attempts-2024.04.21/_count", timeout=30).json()["count"] == 1


def test_states_of_pods_expire_one_by_one(url: str) -> None:
    for days_ago, cluster in ((1, "default"), (20, "default"), (30, "default"), (20, "archive")):
        timestamp = (datetime.now(UTC) - timedelta(days=days_ago)).isoformat()
        where = f"{url}/schedulerlog-pod-states-all/_doc"
        state = {"cluster": cluster, "@timestamp": timestamp}
        httpx.post(where, json=state, params={"refresh": "true"}, timeout=30).raise_for_status()
    settings = {"SCHEDULERLOG_KEPT_CLUSTERS": "archive"}
    assert (
        run_retention(url, "--dry-run", **settings) == "index schedulerlog-pod-states: 2 documents would be dropped\n"
    )
    assert run_retention(url, **settings) == "index schedulerlog-pod-states: 2 documents dropped\n"
    httpx.post(f"{url}/schedulerlog-pod-states-all/_refresh", timeout=30)
    assert httpx.get(f"{url}/schedulerlog-pod-states-all/_count", timeout=30).json()["count"] == 2


def test_many_states_expire_at_once(url: str) -> None:
    """OpenSearch sends a header for each batch of a deletion, and refuses none; the client takes 128."""
    # 130 of its usual batches.
    action, state = b'{"index":{"_index":"schedulerlog-pod-states-all"}}\n', b'{"@timestamp":"2020-01-01T00:00:00Z"}\n'
    for _ in range(13):
        body, kind = (action + state) * 10_000, {"content-type": "application/x-ndjson"}
        answer = httpx.post(f"{url}/_bulk", params={"refresh": "true"}, content=body, headers=kind, timeout=120)
        assert not answer.json()["errors"]
    assert run_retention(url) == "index schedulerlog-pod-states: 130000 documents dropped\n"


def test_a_day_with_a_placement_that_has_not_ended_is_kept(url: str) -> None:
    ended, continuing = "schedulerlog-occupancy-2020.01.01", "schedulerlog-occupancy-2020.01.02"
    for name, placements in {
        ended: [{"ended_at": "2020-01-03"}],
        continuing: [{"ended_at": "2020-01-03"}, {"pod": "a"}],
    }.items():
        for placement in placements:
            httpx.post(f"{url}/{name}/_doc", json=placement, params={"refresh": "true"}, timeout=30).raise_for_status()
    assert f"index {ended}: dropped" in "\n".join(run_retention_later(url))
    assert list_names(url) == {continuing}


def list_sizes(url: str, family: str) -> dict[str, int]:
    options = {"format": "json", "bytes": "b", "h": "index,store.size"}
    rows = httpx.get(f"{url}/_cat/indices/{family}-*", params=options, timeout=30).json()
    return {row["index"]: int(row["store.size"]) for row in rows}


def test_a_family_above_its_limit_loses_its_oldest_days_and_no_more(url: str) -> None:
    days = [f"schedulerlog-devices-2020.01.0{day}" for day in range(1, 5)]
    other = "schedulerlog-attempts-2020.01.01"
    # Each made after the one before: their age decides, which is counted from then for a log of years ago.
    for name in [*days, other]:
        document = {"cluster": "archive" if name == days[1] else "default", "text": name * 20}
        httpx.post(f"{url}/{name}/_doc", json=document, params={"refresh": "true"}, timeout=30).raise_for_status()
        httpx.post(f"{url}/{name}/_flush", timeout=30).raise_for_status()
    sizes = list_sizes(url, "schedulerlog-devices")
    # Room for the last two days, and a day less than the oldest two have: the second is of a cluster that is kept.
    limit = sum(sizes.values()) - sizes[days[0]] - 1
    lines = run_retention_later(url, retention="100000h", retention_sizes=f"devices={limit}", kept_clusters="archive")
    assert [line.split(":")[0].split()[1] for line in lines] == [days[0], days[2]]
    assert all("bytes above its limit" in line for line in lines)
    assert list_names(url) == {days[1], days[3], other}
    (line,) = run_retention_later(
        url, retention="100000h", retention_sizes="devices=1", kept_clusters="archive,default"
    )
    assert line.endswith("and no index left that may be deleted")


def test_families_whose_days_have_little_get_an_index_for_the_next_month(url: str) -> None:
    later = datetime(2050, 3, 28, tzinfo=UTC)
    for family in ("attempts", "devices", "node-states"):
        where = f"{url}/schedulerlog-{family}-2050.03.26/_doc"
        httpx.post(where, json={"a": 1}, params={"refresh": "true"}, timeout=30).raise_for_status()
    ceiling: dict[str, Any] = {"retention_sizes": "devices=1000000000"}
    months = {f"schedulerlog-{family}-2050.04.00" for family in ("attempts", "node-states")}
    announced = run_retention_later(url, later=later, dry_run=True, **ceiling)
    assert {line.split()[1].rstrip(":") for line in announced} == months
    assert not months & list_names(url)
    assert len(run_retention_later(url, later=later, **ceiling)) == 2
    assert months <= list_names(url)
    assert run_retention_later(url, later=later, **ceiling) == []
