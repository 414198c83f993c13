"""Old daily indices of a real OpenSearch are deleted, and nothing else is."""

import os
import subprocess
import sys
from collections.abc import Iterator

import httpx
import pytest

import embedded
from tests.support.backends import chosen


def names(url: str) -> set[str]:
    found = httpx.get(f"{url}/_cat/indices/schedulerlog-*,other-*", params={"format": "json"}, timeout=30).json()
    return {each["index"] for each in found}


def retention(url: str, *options: str) -> str:
    settings = {"SCHEDULERLOG_OPENSEARCH_URL": url, "SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:9"}
    command = [sys.executable, "-m", "pipeline", "retention", *options]
    return subprocess.run(
        command, env=os.environ | settings, capture_output=True, text=True, timeout=120, check=True
    ).stdout


@pytest.fixture(scope="module")
def index() -> Iterator[str]:
    if chosen(os.environ) != "embedded":
        pytest.skip("deletes indices, which it may do only in its own OpenSearch")
    with embedded.backends(only="opensearch") as running:
        yield running.opensearch_url


@pytest.fixture
def url(index: str) -> str:
    """The index without anything in it."""
    for name in names(index):
        httpx.delete(f"{index}/{name}", timeout=30).raise_for_status()
    return index


def test_only_expired_whole_days_are_deleted(url: str) -> None:
    old = {"schedulerlog-attempts-2020.01.01", "schedulerlog-devices-2020.01.01"}
    others = {"other-2020.01.01", "schedulerlog-attempts-2020.01.01-copy", "schedulerlog-attempts-2099.01.01"}
    for name in old | others:
        httpx.put(f"{url}/{name}", timeout=30).raise_for_status()
    output = retention(url, "--dry-run")
    assert {line.split()[1].rstrip(":") for line in output.splitlines()} == old
    assert names(url) == old | others
    assert retention(url).count(": dropped, ") == len(old)
    assert names(url) == others
    assert retention(url) == ""


def test_a_day_with_a_placement_that_has_not_ended_is_kept(url: str) -> None:
    ended, continuing = "schedulerlog-occupancy-2020.01.01", "schedulerlog-occupancy-2020.01.02"
    for name, placements in {
        ended: [{"ended_at": "2020-01-03"}],
        continuing: [{"ended_at": "2020-01-03"}, {"pod": "a"}],
    }.items():
        for placement in placements:
            httpx.post(f"{url}/{name}/_doc", json=placement, params={"refresh": "true"}, timeout=30).raise_for_status()
    assert f"index {ended}: dropped" in retention(url)
    assert names(url) == {continuing}
