"""Old daily indices of a real OpenSearch are deleted, and nothing else is."""

import os
import subprocess
import sys
from collections.abc import Callable

import httpx

import embedded


def names(url: str) -> set[str]:
    found = httpx.get(f"{url}/_cat/indices/schedulerlog-*,other-*", params={"format": "json"}, timeout=30).json()
    return {each["index"] for each in found}


def retention(url: str, *options: str) -> str:
    settings = {"SCHEDULERLOG_OPENSEARCH_URL": url, "SCHEDULERLOG_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:9"}
    command = [sys.executable, "-m", "pipeline", "retention", *options]
    return subprocess.run(
        command, env=os.environ | settings, capture_output=True, text=True, timeout=60, check=True
    ).stdout


def test_only_expired_whole_days_are_deleted(own_backends: Callable[..., embedded.Backends]) -> None:
    url = own_backends(only="opensearch").opensearch_url
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


def test_a_day_with_a_placement_that_has_not_ended_is_kept(own_backends: Callable[..., embedded.Backends]) -> None:
    url = own_backends(only="opensearch").opensearch_url
    ended, continuing = "schedulerlog-occupancy-2020.01.01", "schedulerlog-occupancy-2020.01.02"
    for name, placements in {
        ended: [{"ended_at": "2020-01-03"}],
        continuing: [{"ended_at": "2020-01-03"}, {"pod": "a"}],
    }.items():
        for placement in placements:
            httpx.post(f"{url}/{name}/_doc", json=placement, params={"refresh": "true"}, timeout=30).raise_for_status()
    assert f"index {ended}: dropped" in retention(url)
    assert names(url) == {continuing}
