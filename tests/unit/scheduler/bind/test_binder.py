"""Binds end as HAMi v2.10.0's do, and two schedulers that bind at once do not share a lock."""

import asyncio
import contextlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from hami import durations, node_lock
from hami.node_lock import LOCK, LockError, Step
from scheduler.bind.binder import Binder, LockPolicy, Outcome
from scheduler.http.extender_protocol import BindArgs
from tests.conformance.bind_replay import ScriptedApi, bind_differences

CASES = Path(__file__).parent / "cases"
BINDS = [json.loads(line) for line in (CASES / "bind_cases.jsonl").read_text().splitlines()]
LOCKS = [json.loads(line) for line in (CASES / "node_lock_cases.jsonl").read_text().splitlines()]
NOON = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
TIMEOUT = timedelta(minutes=5)


@pytest.mark.parametrize("case", BINDS, ids=[case["name"] for case in BINDS])
def test_a_bind_ends_as_hami_ends_it(case: Mapping[str, Any]) -> None:
    assert list(bind_differences(case)) == []


def test_a_bind_takes_three_calls() -> None:
    case = next(case for case in BINDS if case["name"] == "free node")
    api = ScriptedApi(case)
    asked = BindArgs(case["pod"]["namespace"], case["pod"]["name"], case["pod"]["uid"], case["node"])
    assert asyncio.run(Binder(api, LockPolicy(), api.clock, api.sleep).bind(asked, api.now)) == Outcome()
    assert api.calls == 3


@pytest.mark.parametrize("labels", [None, [], ["scheduling.x-k8s.io/pod-group"], "text", 7, {"other": "label"}])
def test_a_pod_whose_labels_are_no_mapping_is_bound_as_one_without_a_group(labels: object) -> None:
    case = next(case for case in BINDS if case["name"] == "free node")
    api = ScriptedApi({**case, "pod": {**case["pod"], "labels": labels}})
    asked = BindArgs(case["pod"]["namespace"], case["pod"]["name"], case["pod"]["uid"], case["node"])
    assert asyncio.run(Binder(api, LockPolicy(), api.clock, api.sleep).bind(asked, api.now)) == Outcome()


@pytest.mark.parametrize("case", LOCKS, ids=[repr(case["in"]) for case in LOCKS])
def test_a_lock_is_read_as_hami_reads_it(case: Mapping[str, Any]) -> None:
    if case["error"]:
        with pytest.raises(LockError) as refused:
            node_lock.parse(case["in"])
        assert str(refused.value) == case["error"]
    else:
        lock = node_lock.parse(case["in"])
        assert lock.owner == (case["out"]["namespace"], case["out"]["name"])
        assert lock.since == datetime.fromisoformat(case["out"]["time"])


@given(st.text(max_size=60))
def test_no_lock_annotation_makes_it_fail_otherwise_than_with_its_own_error(value: str) -> None:
    with contextlib.suppress(LockError):
        node_lock.next_step(value, ("ns", "pod"), NOON, TIMEOUT)
    node_lock.is_ours_to_release(value, ("ns", "pod"))


names = st.text("abcdefghijklmnopqrstuvwxyz0123456789-.", min_size=1, max_size=20)


@given(names, names, st.datetimes(datetime(1970, 1, 2), datetime(9000, 1, 1)))  # noqa: DTZ001 - zone added below
def test_a_lock_that_was_written_is_ours(namespace: str, name: str, since: datetime) -> None:
    moment = since.replace(tzinfo=UTC)
    value = node_lock.format_lock(moment, (namespace, name))
    assert node_lock.parse(value).owner == (namespace, name)
    assert node_lock.next_step(value, (namespace, name), moment, TIMEOUT) is Step.KEEP
    assert node_lock.next_step(value, ("other", name), moment, TIMEOUT) is Step.ASK
    assert node_lock.next_step(value, ("other", name), moment + timedelta(seconds=302), TIMEOUT) is Step.TAKE
    assert node_lock.is_ours_to_release(value, (namespace, name))
    assert not node_lock.is_ours_to_release(value, ("other", name))


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (timedelta(minutes=5), "5m0s"),
        (timedelta(seconds=28), "28s"),
        (timedelta(minutes=1, seconds=30), "1m30s"),
        (timedelta(hours=1), "1h0m0s"),
        (timedelta(hours=100, seconds=1.5), "100h0m1.5s"),
        (timedelta(milliseconds=1500), "1.5s"),
        (timedelta(milliseconds=100), "100ms"),
        (timedelta(microseconds=1500), "1.5ms"),
        (timedelta(microseconds=7), "7µs"),
        (timedelta(), "0s"),
    ],
)
def test_a_duration_is_written_as_go_writes_it(duration: timedelta, text: str) -> None:
    assert durations.text(duration) == text


@pytest.mark.parametrize("text", ["5m", "90s", "1h30m", "0s", "500ms", "1.5h"])
def test_a_duration_is_read_as_go_reads_it(text: str) -> None:
    assert durations.parse(durations.text(durations.parse(text))) == durations.parse(text)


@pytest.mark.parametrize("text", ["", "5", "m", "5 m", "-5m", "5minutes", "1e3s", "٥m"])
def test_what_is_no_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="write one such as 5m"):
        durations.parse(text)


class RacingApi(ScriptedApi):
    """Another scheduler takes the lock between our look and our patch."""

    async def patch_node(self, name: str, annotations: Mapping[str, str | None], resource_version: str) -> None:
        if LOCK not in self.node:
            self.node[LOCK] = f"{self.case['clock']},other,first"
            self.version += 1
        await super().patch_node(name, annotations, resource_version)

    async def get_pod(self, namespace: str, name: str) -> dict[str, Any]:
        return {"metadata": {"namespace": namespace, "name": name}}


def test_whoever_loses_the_race_for_the_lock_leaves_it_to_the_winner() -> None:
    case = next(case for case in BINDS if case["name"] == "free node")
    api = RacingApi(case)
    asked = BindArgs(case["pod"]["namespace"], case["pod"]["name"], case["pod"]["uid"], case["node"])
    error = asyncio.run(Binder(api, LockPolicy(), api.clock, api.sleep).bind(asked, api.now)).error
    assert error == f"node {case['node']} has been locked within 5m0s: node lock contention"
    assert api.node[LOCK].endswith("other,first")
