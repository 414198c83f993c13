"""Binds end as HAMi v2.10.0's do, and two schedulers that bind at once do not share a lock."""

import asyncio
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from engine.hami.annotations import NODE_LOCK
from runtime.kubernetes.errors import NO_ANSWER, KubeApiError
from scheduler.bind.bind_request import BindRequest
from scheduler.bind.binder import Binder, BindResult
from scheduler.bind.node_locks import LockPolicy
from scheduler.cluster.cluster_api import PodVersion
from tests.conformance.bind_replay import ScriptedApi, compare_bind

CASES = Path(__file__).parent / "cases"
BINDS = [json.loads(line) for line in (CASES / "bind_cases.jsonl").read_text().splitlines()]
NOON = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
TIMEOUT = timedelta(minutes=5)


@pytest.mark.parametrize("case", BINDS, ids=[case["name"] for case in BINDS])
def test_a_bind_ends_as_hami_ends_it(case: Mapping[str, Any]) -> None:
    assert list(compare_bind(case)) == []


def test_a_bind_takes_three_calls() -> None:
    case = next(case for case in BINDS if case["name"] == "free node")
    api = ScriptedApi(case)
    request = BindRequest(case["pod"]["namespace"], case["pod"]["name"], case["pod"]["uid"], case["node"])
    assert asyncio.run(Binder(api, LockPolicy(), api.read_clock, api.sleep).bind(request, api.now)) == BindResult()
    assert api.calls == 3


@pytest.mark.parametrize("labels", [None, [], ["scheduling.x-k8s.io/pod-group"], "text", 7, {"other": "label"}])
def test_a_pod_whose_labels_are_no_mapping_is_bound_as_one_without_a_group(labels: object) -> None:
    case = next(case for case in BINDS if case["name"] == "free node")
    api = ScriptedApi({**case, "pod": {**case["pod"], "labels": labels}})
    request = BindRequest(case["pod"]["namespace"], case["pod"]["name"], case["pod"]["uid"], case["node"])
    assert asyncio.run(Binder(api, LockPolicy(), api.read_clock, api.sleep).bind(request, api.now)) == BindResult()


class RacingApi(ScriptedApi):
    """Another scheduler takes the lock between our look and our patch."""

    async def patch_node(self, name: str, annotations: Mapping[str, str | None], resource_version: str) -> None:
        if NODE_LOCK not in self.node:
            self.node[NODE_LOCK] = f"{self.case['clock']},other,first"
            self.version += 1
        await super().patch_node(name, annotations, resource_version)

    async def get_pod(self, namespace: str, name: str) -> dict[str, Any]:
        return {"metadata": {"namespace": namespace, "name": name}}


def test_the_pod_that_loses_the_race_for_the_lock_leaves_it_to_the_winner() -> None:
    case = next(case for case in BINDS if case["name"] == "free node")
    api = RacingApi(case)
    request = BindRequest(case["pod"]["namespace"], case["pod"]["name"], case["pod"]["uid"], case["node"])
    error = asyncio.run(Binder(api, LockPolicy(), api.read_clock, api.sleep).bind(request, api.now)).error
    assert error == f"node {case['node']} has been locked within 5m0s: node lock contention"
    assert api.node[NODE_LOCK].endswith("other,first")


class BrokenApi(ScriptedApi):
    """The connection is lost in the binding, and in the first ``losses`` patches of the node after it."""

    losses = 2

    async def bind(self, pod: PodVersion, node: str) -> None:
        raise KubeApiError(403, "the binding is refused")

    async def patch_node(self, name: str, annotations: Mapping[str, str | None], resource_version: str) -> None:
        if annotations[NODE_LOCK] is None and self.losses:
            self.losses -= 1
            raise KubeApiError(NO_ANSWER, "Server disconnected")
        await super().patch_node(name, annotations, resource_version)


@pytest.mark.parametrize(("losses", "is_locked"), [(0, False), (2, False), (9, True)])
def test_a_lock_is_released_when_the_connection_is_back(losses: int, is_locked: bool) -> None:
    case = next(case for case in BINDS if case["name"] == "free node")
    api = BrokenApi(case)
    api.losses = losses
    request = BindRequest(case["pod"]["namespace"], case["pod"]["name"], case["pod"]["uid"], case["node"])
    error = asyncio.run(Binder(api, LockPolicy(), api.read_clock, api.sleep).bind(request, api.now)).error
    assert error == "the binding is refused"
    assert (NODE_LOCK in api.node) is is_locked
