"""Refusals of the real kube-scheduler, read from its events into a real Kafka: by reason, once, also after a kill."""

import asyncio
import contextlib
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from dev.embedded.control_plane import ControlPlane
from ingest.readers.kube.reader import CONDITION_SECONDS
from schemas.events import AttemptEvent, Event, NodeObserved, NodeRegistered, PodObserved
from schemas.json_types import Json
from tests.support.backends import Addresses
from tests.support.builders.api_server_objects import a_pod_group
from tests.support.control_plane.objects import a_gpu_node, create, created_nodes
from tests.support.control_plane.plain_scheduler import SCHEDULER, a_pod, list_attempts, read_events
from tests.support.harness.forked import Forked
from tests.support.harness.ingest_process import Replicas, get_versions, wait_until_taken
from tests.support.harness.pipeline_process import pipeline
from tests.support.harness.topics import provision_all
from tests.support.reused_backends import reused_backends
from tests.support.waiting import MAX_SHOWN, eventually, until


@pytest.fixture
def plain_scheduler(control_plane: ControlPlane) -> None:
    control_plane.start_scheduler(
        {"profiles": [{"schedulerName": SCHEDULER}], "podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 1}
    )


@pytest.fixture
async def kafka(backends: Addresses) -> str:
    await provision_all(backends.bootstrap_servers)
    return backends.bootstrap_servers


def start_watcher(cluster: ControlPlane, namespace: str, kafka: str, log: Path, *flags: str) -> Forked:
    """Start ``python -m ingest kube-events`` as a process."""
    command = ["ingest", "kube-events", "--kubeconfig", str(cluster.kubeconfig)]
    command += ["--namespace", namespace, "--kafka", kafka, "--event-reporters", f"{SCHEDULER},*-controller,kubelet"]
    with log.open("ab") as output:
        return Forked(*command, *flags, stdout=output, stderr=output)


@contextlib.contextmanager
def watching(cluster: ControlPlane, namespace: str, kafka: str, log: Path) -> Iterator[Forked]:
    """``python -m ingest kube-events`` as a process; ends with the block."""
    process = start_watcher(cluster, namespace, kafka, log)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(timeout=120)


PODS: dict[str, Json] = {
    "cpu": {"requests": {"cpu": "1000"}},
    "selector": {"nodeSelector": {"no": "where"}},
    "extended": {"limits": {"nvidia.com/gpu": "1000"}},
}


@pytest.fixture
def refused_pods(control_plane: ControlPlane, plain_scheduler: None, namespace: str) -> Iterator[str]:
    """Two nodes, one of them tainted, and pods that can't be placed; gives the name of the node without the taint."""
    first, tainted = f"{namespace}-a", f"{namespace}-b"
    taint = {"spec": {"taints": [{"key": "gpu", "value": "only", "effect": "NoSchedule"}]}}
    nodes = [label(a_gpu_node(first)), label(a_gpu_node(tainted)) | taint]
    with created_nodes(control_plane, nodes), control_plane.open_client() as client:
        for name, spec in PODS.items():
            create(client, f"/api/v1/namespaces/{namespace}/pods", a_pod(name, **dict(spec)))
        yield first


def label(node: Json) -> Json:
    node["metadata"]["labels"] = {"here": node["metadata"]["name"]}
    return node


def list_tries(client: httpx.Client, namespace: str, pod: str) -> set[str]:
    """List the times at which kube-scheduler's events say that it tried the pod."""
    events = client.get(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events").json()["items"]
    mine = [event for event in events if event["reason"] == "FailedScheduling" and event["regarding"]["name"] == pod]
    stamps = [(event["eventTime"], (event.get("series") or {}).get("lastObservedTime")) for event in mine]
    return {stamp for pair in stamps for stamp in pair if stamp}


async def wait_for_events(kafka: str, namespace: str, names: set[str], log: Path) -> list[Event]:
    """Return all events of the namespace, when there are attempts of all these pods."""
    for _ in range(60):
        events = await read_events(kafka, f"{namespace}/")
        if names <= {attempt.pod.name for attempt in list_attempts(events)}:
            return events
        await asyncio.sleep(0.5)
    raise AssertionError(
        f"only {sorted({attempt.pod.name for attempt in list_attempts(events)})} of {names}; see {log}"
    )


async def test_refusals_are_recorded_by_reason_and_once_also_after_a_kill(
    control_plane: ControlPlane, refused_pods: str, kafka: str, namespace: str, tmp_path: Path
) -> None:
    log = tmp_path / "kube-events.log"
    with watching(control_plane, namespace, kafka, log) as process:
        first = list_attempts(await wait_for_events(kafka, namespace, set(PODS), log))
        process.kill()
    counts = {summary.pod.name: summary for summary in first}
    cpu, extended, selector = (counts[name] for name in ("cpu", "extended", "selector"))
    assert cpu.refused_nodes["Insufficient cpu"] >= 1
    assert extended.refused_nodes["Insufficient nvidia.com/gpu"] >= 1
    assert selector.refused_nodes["node(s) didn't match Pod's node affinity/selector"] >= 1
    for attempt in (cpu, extended):
        assert sum(attempt.refused_nodes.values()) == attempt.offered_nodes >= 2
        assert any("taint" in reason for reason in attempt.refused_nodes)
    with watching(control_plane, namespace, kafka, log), control_plane.open_client() as client:
        for name in PODS:
            await _wait_until_equal(client, kafka, namespace, name)


@pytest.fixture
def replicas(
    control_plane: ControlPlane, refused_pods: str, kafka: str, namespace: str, tmp_path: Path
) -> Iterator[Replicas]:
    def start(port: str) -> Forked:
        flags = ("--lease", f"schedulerlog-kube-events-{namespace}", "--metrics-address", port)
        return start_watcher(control_plane, namespace, kafka, tmp_path / "kube-events.log", *flags)

    with Replicas(start) as replicas:
        yield replicas


async def test_of_two_watchers_one_publishes_and_the_other_takes_over_from_it(
    control_plane: ControlPlane, replicas: Replicas, kafka: str, namespace: str, tmp_path: Path
) -> None:
    """Two replicas of the component: one node fails, and no attempt is missing or there twice."""
    log = tmp_path / "kube-events.log"

    def describe() -> str:
        return f"{replicas.read()}; the last lines of both: {log.read_text()[-MAX_SHOWN:]}"

    eventually(replicas.find_working, describe)
    events = await wait_for_events(kafka, namespace, set(PODS), log)
    ids = [event.id for event in events if isinstance(event, AttemptEvent)]
    assert len(ids) == len(set(ids))
    working = eventually(replicas.find_working, describe)
    replicas.kill(working)
    with control_plane.open_client() as client:
        create(client, f"/api/v1/namespaces/{namespace}/pods", a_pod("later", requests={"cpu": "1000"}))
        eventually(replicas.has_ready, describe)
        for name in (*PODS, "later"):
            await _wait_until_equal(client, kafka, namespace, name)


async def _wait_until_equal(client: httpx.Client, kafka: str, namespace: str, name: str) -> None:
    """Wait until there are as many attempts as the API server's events show, each once."""
    for _ in range(60):
        events = await read_events(kafka, f"{namespace}/")
        starts = [attempt.started_at for attempt in list_attempts(events) if attempt.pod.name == name]
        tried = {datetime.fromisoformat(stamp) for stamp in list_tries(client, namespace, name)}
        if tried <= set(starts):
            break
        await asyncio.sleep(0.5)
    assert tried <= set(starts)
    assert len(starts) == len(set(starts))


async def test_a_preemption_is_recorded_of_both_pods_and_nodes_are_observed(
    control_plane: ControlPlane, refused_pods: str, kafka: str, namespace: str, tmp_path: Path
) -> None:
    pods, important = f"/api/v1/namespaces/{namespace}/pods", f"{namespace}-important"
    here: Json = {"requests": {"cpu": "40"}, "nodeSelector": {"here": refused_pods}}
    log = tmp_path / "kube-events.log"
    with control_plane.open_client() as client, watching(control_plane, namespace, kafka, log):
        create(client, pods, a_pod("low", **dict(here)))
        eventually(lambda: client.get(f"{pods}/low").json()["spec"].get("nodeName"), "the pod is not placed")
        priority = {"metadata": {"name": important}, "value": 1000}
        create(client, "/apis/scheduling.k8s.io/v1/priorityclasses", priority)
        high_pod = a_pod("high", priorityClassName=important, **dict(here))
        # Admission looks classes up in a cache, which follows what was written a moment later.
        eventually(
            lambda: client.post(pods, params={"dryRun": "All"}, json=high_pod).is_success,
            "the API server does not know the priority class",
        )
        create(client, pods, high_pod)
        eventually(lambda: client.get(f"{pods}/high").json()["spec"].get("nodeName"), "nothing made room")
        events = await wait_for_events(kafka, namespace, {"low", "high"}, log)
        about_nodes = await read_events(kafka, refused_pods)
        client.delete(f"/apis/scheduling.k8s.io/v1/priorityclasses/{important}")
    high = [attempt for attempt in list_attempts(events) if attempt.pod.name == "high"]
    assert high[0].refused_nodes["Insufficient cpu"] >= 1
    assert any(attempt.nominated == refused_pods or attempt.chosen == refused_pods for attempt in high)
    conditions = [condition for event in events if isinstance(event, PodObserved) for condition in event.conditions]
    assert any(condition.type == "Preempted" and "Preempted by" in condition.message for condition in conditions)
    assert any(isinstance(node, NodeRegistered) and len(node.uuid) == 4 for node in about_nodes)
    assert any(isinstance(node, NodeObserved) and node.capacity["cpu"] == "64" for node in about_nodes)


def test_watching_a_cluster_twice_leaves_the_index_as_it_was(
    control_plane: ControlPlane, refused_pods: str, namespace: str, tmp_path: Path
) -> None:
    log, mine = tmp_path / "kube-events.log", {"term": {"namespace": namespace}}
    with (
        reused_backends.taken() as servers,
        pipeline(tmp_path, servers) as running,
        control_plane.open_client() as client,
    ):
        events = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
        eventually(lambda: len(client.get(events).json()["items"]) >= len(PODS), "kube-scheduler tried nothing")
        # From here on nothing is tried again, so that both watches see the same.
        control_plane.scheduler.stop()
        running.start_all()

        def watch_once() -> dict[str, tuple[int, Any]]:
            with watching(control_plane, namespace, servers.bootstrap_servers, log):
                until(lambda: running.get_documents(mine), lambda documents: len(documents) >= len(PODS))
                time.sleep(CONDITION_SECONDS + 2)
            wait_until_taken(running)
            return get_versions(running, mine)

        before = watch_once()
        assert {source["pod"] for _, source in before.values() if "pod" in source} == set(PODS)
        assert watch_once() == before


POD_GROUPS: Json = {
    "metadata": {"name": "podgroups.scheduling.run.ai"},
    "spec": {
        "group": "scheduling.run.ai",
        "names": {"kind": "PodGroup", "plural": "podgroups", "singular": "podgroup", "listKind": "PodGroupList"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v2alpha2", "served": True, "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}  # fmt: skip


async def test_kais_pod_groups_are_watched_where_the_cluster_has_them(
    control_plane: ControlPlane, namespace: str, kafka: str, tmp_path: Path
) -> None:
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    groups = f"/apis/scheduling.run.ai/v2alpha2/namespaces/{namespace}/podgroups"
    why = "no nodes with enough resources were found: 2 node(s) didn't have enough resources: GPU memory."
    group = a_pod_group(why, pod=f"{namespace}/infer-0")
    group["metadata"]["namespace"] = namespace
    with control_plane.open_client() as client:
        create(client, definitions, POD_GROUPS)
        try:
            eventually(lambda: client.get(groups).is_success, "the pod groups are not served")
            kind = {"apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup"}
            create(client, groups, kind | group)
            with watching(control_plane, namespace, kafka, log := tmp_path / "kube-events.log"):
                attempts = list_attempts(await wait_for_events(kafka, namespace, {"infer-0"}, log))
        finally:
            client.delete(f"{definitions}/{POD_GROUPS['metadata']['name']}")
    assert [(attempt.scheduler, attempt.scheduler_message) for attempt in attempts] == [("kai-scheduler", why)]
