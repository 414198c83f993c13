"""Replays recorded binds of HAMi v2.10.0 (bind_cases.jsonl) against our Binder on a scripted API server.

The API server is a fake as it was for HAMi: it keeps objects and answers as the case's `faults` say. Time is the case's
clock, moved on by every sleep.
"""

import asyncio
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from engine.hami.annotations import NODE_LOCK
from runtime import durations
from runtime.kubernetes.errors import KubeApiError, build_missing_error
from scheduler.bind.bind_request import BindRequest
from scheduler.bind.binder import Binder
from scheduler.bind.node_locks import LockPolicy
from scheduler.cluster.cluster_api import Object, PodVersion
from tests.conformance.difference import Case, Difference


class ScriptedApi:
    """Implements `ClusterApi` as one case describes it."""

    def __init__(self, case: Case) -> None:
        self.case, self.faults = case, case.get("faults") or {}
        self.now = datetime.fromisoformat(case["clock"])
        self.started = self.now
        self.node = dict(case["node_annotations_before"])
        self.pod = dict(case["pod"]["annotations"] or {})
        self.version = 1
        self.conflicts = int(self.faults.get("patch_node", "0").split()[0])
        self.calls = 0

    def read_clock(self) -> datetime:
        return self.now

    def read_monotonic(self) -> float:
        return self.now.timestamp()

    async def sleep(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        after = self.faults.get("lock_released_after")
        if after and self.now - self.started >= durations.parse(after):
            self.node.pop(NODE_LOCK, None)

    def find_problem(self) -> str:
        return ""

    def get_node_seen(self, name: str) -> dict[str, Any] | None:
        return self._build_node(name) if self.case["node_in_cache"] else None

    def get_pod_seen(self, namespace: str, name: str) -> dict[str, Any] | None:
        return self._build_pod() if self.case["pod_in_cache"] else None

    def note_offered(self, pod: Any) -> None:
        raise AssertionError("a bind offers no pod")

    def _build_node(self, name: str) -> dict[str, Any]:
        return {"metadata": {"name": name, "annotations": dict(self.node), "resourceVersion": str(self.version)}}

    def _build_pod(self) -> dict[str, Any]:
        pod = self.case["pod"]
        metadata = {key: pod.get(key) for key in ("name", "namespace", "uid", "labels")}
        spec = {key: _to_containers(pod[key] or []) for key in ("initContainers", "containers")}
        return {"metadata": metadata | {"annotations": dict(self.pod)}, "spec": spec}

    async def get_node(self, name: str) -> dict[str, Any]:
        self.calls += 1
        if not self.case["node_in_api"]:
            raise build_missing_error("nodes", name)
        return self._build_node(name)

    async def get_pod(self, namespace: str, name: str) -> dict[str, Any]:
        self.calls += 1
        if "get_pod" in self.faults:
            raise KubeApiError(500, self.faults["get_pod"])
        if f"{namespace}/{name}" not in self.case["other_pods_in_api"]:
            raise build_missing_error("pods", name)
        return {"metadata": {"namespace": namespace, "name": name}}

    async def patch_node(self, name: str, annotations: Mapping[str, str | None], resource_version: str) -> None:
        self.calls += 1
        if not self.case["node_in_api"]:
            raise build_missing_error("nodes", name)
        if self.conflicts or resource_version != str(self.version):
            self.conflicts = max(self.conflicts - 1, 0)
            raise KubeApiError(409, f'Operation cannot be fulfilled on nodes "{name}": the object has been modified')
        self.version += 1
        _merge(self.node, annotations)

    async def patch_pod(self, pod: PodVersion, annotations: Mapping[str, str | None], labels: Any = None) -> Object:
        self.calls += 1
        if "patch_pod" in self.faults:
            raise KubeApiError(500, self.faults["patch_pod"])
        _merge(self.pod, annotations)
        return self._build_pod()

    def get_term(self) -> int:
        return 0

    async def bind(self, pod: PodVersion, node: str) -> None:
        self.calls += 1
        if thief := self.faults.get("lock_stolen_before_release"):
            self.node[NODE_LOCK] = f"{self.case['clock']},{thief}"
        if "binding" in self.faults:
            raise KubeApiError(409, self.faults["binding"])


def _merge(annotations: dict[str, Any], patch: Mapping[str, str | None]) -> None:
    annotations.update(patch)
    for key in [key for key, value in patch.items() if value is None]:
        del annotations[key]


def _to_containers(listed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"name": spec["name"], "resources": {key: spec[key] for key in ("limits", "requests") if key in spec}}
        for spec in listed
    ]


def compare_bind(case: Case) -> Iterator[Difference]:
    """Compare our bind with HAMi's: calls, answer and annotations."""
    api = ScriptedApi(case)
    policy = LockPolicy(durations.parse(case["node_lock_timeout"]), durations.parse(case["node_lock_retry_timeout"]))
    request = case["request"]
    args = BindRequest(request["PodNamespace"], request["PodName"], request["PodUID"], request["Node"])
    binder = Binder(api, policy, api.read_clock, api.sleep, monotonic=api.read_monotonic)
    error = asyncio.run(binder.bind(args, api.now)).error
    if error != case["out_wire_reply"]["Error"]:
        yield Difference("", "answer", error, case["out_wire_reply"]["Error"])
    theirs = case["out_node_annotations_after"]
    if theirs is not None and _drop_lock_time(api.node) != _drop_lock_time(theirs):
        yield Difference("", "node", api.node, theirs)
    if theirs is not None and not _is_as_late(api.node.get(NODE_LOCK, ""), theirs.get(NODE_LOCK, "")):
        yield Difference("", "lock", api.node, theirs)
    if api.pod != case["out_pod_annotations_after"]:
        yield Difference("", "pod", api.pod, case["out_pod_annotations_after"])


def _drop_lock_time(annotations: Mapping[str, str]) -> dict[str, str]:
    return {key: value.split(",", 1)[-1] if key == NODE_LOCK else value for key, value in annotations.items()}


def _is_as_late(ours: str, theirs: str) -> bool:
    """Tell whether two locks are of the same second, or the next one: pauses between tries are random."""
    if ours == theirs:
        return True
    ages = [datetime.fromisoformat(lock.split(",")[0]) for lock in (ours, theirs)]
    return abs(ages[0] - ages[1]) <= timedelta(seconds=1)
