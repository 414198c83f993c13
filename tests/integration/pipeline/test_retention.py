"""Old daily indices of a real OpenSearch are dropped, and nothing else is."""

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


def test_only_whole_days_past_their_age_are_dropped(own_backends: Callable[..., embedded.Backends]) -> None:
    url = own_backends(only="opensearch").opensearch_url
    old = {"schedulerlog-attempts-2020.01.01", "schedulerlog-devices-2020.01.01"}
    others = {"other-2020.01.01", "schedulerlog-attempts-2020.01.01-copy", "schedulerlog-attempts-2099.01.01"}
    for each in old | others:
        httpx.put(f"{url}/{each}", timeout=30).raise_for_status()
    said = retention(url, "--dry-run")
    assert {line.split()[1].rstrip(":") for line in said.splitlines()} == old
    assert names(url) == old | others
    assert retention(url).count(": dropped, ") == len(old)
    assert names(url) == others
    assert retention(url) == ""


def test_a_day_in_which_a_stay_began_that_goes_on_is_kept(own_backends: Callable[..., embedded.Backends]) -> None:
    url = own_backends(only="opensearch").opensearch_url
    over, goes_on = "schedulerlog-occupancy-2020.01.01", "schedulerlog-occupancy-2020.01.02"
    for name, stays in {
        over: [{"ended_at": "2020-01-03"}],
        goes_on: [{"ended_at": "2020-01-03"}, {"pod": "a"}],
    }.items():
        for stay in stays:
            httpx.post(f"{url}/{name}/_doc", json=stay, params={"refresh": "true"}, timeout=30).raise_for_status()
    assert f"index {over}: dropped" in retention(url)
    assert names(url) == {goes_on}
