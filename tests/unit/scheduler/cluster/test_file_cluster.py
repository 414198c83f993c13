"""The file is the cluster: its edits are seen, and what was written over it stays until it says otherwise."""

import asyncio
import logging
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from engine.fit.manifests import Manifest, parse
from engine.hami.annotations import ASSIGNED_NODE, BIND_PHASE, DEVICES_TO_ALLOCATE, NODE_LOCK
from runtime.kubernetes.errors import KubeApiError
from scheduler.cluster.cluster_api import NamespacedName, Object, PodVersion, get_annotation
from scheduler.cluster.file_cluster import MAX_OFFERED, SimulatedCluster
from scheduler.cluster.watch_file import FileWatch
from scheduler.metrics import Metrics
from schemas.json_types import Json
from tests.support.builders.kube_objects import a_node, a_pod


class Seen:
    """Remembers the changes, as (what, name or UID)."""

    def __init__(self) -> None:
        self._changes: list[tuple[str, str]] = []

    def on_node(self, node: Object) -> None:
        self._changes.append(("node changed", node["metadata"]["name"]))

    def on_node_deleted(self, name: str) -> None:
        self._changes.append(("node gone", name))

    def on_pod(self, pod: Object) -> None:
        self._changes.append(("pod changed", pod["metadata"]["uid"]))

    def on_pod_deleted(self, uid: str) -> None:
        self._changes.append(("pod gone", uid))

    def on_quota(self, quota: Object) -> None:
        self._changes.append(("quota changed", quota["metadata"]["name"]))

    def on_quota_deleted(self, namespace: str, name: str) -> None:
        self._changes.append(("quota gone", f"{namespace}/{name}"))

    def take_changes(self) -> list[tuple[str, str]]:
        changes, self._changes = self._changes, []
        return changes


def a_file(*objects: Json) -> Manifest:
    return parse(yaml.safe_dump_all(objects).encode(), Path("cluster.yaml"))


def a_cluster_of(*objects: Json) -> tuple[SimulatedCluster, Seen]:
    seen = Seen()
    cluster = SimulatedCluster(seen)
    cluster.apply(a_file(*objects))
    seen.take_changes()
    return cluster, seen


def get_version(cluster: SimulatedCluster, node: str) -> str:
    node_object = cluster.get_node_seen(node)
    assert node_object
    return str(node_object["metadata"]["resourceVersion"])


def get_node_annotation(cluster: SimulatedCluster, node: str, key: str) -> str | None:
    node_object = cluster.get_node_seen(node)
    assert node_object
    return get_annotation(node_object, key)


def test_only_the_difference_of_an_edit_is_reported() -> None:
    quota = {"kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "ml"}, "spec": {"hard": {"a": "1"}}}
    cluster, seen = a_cluster_of(a_node("same"), a_node("changed"), a_node("gone"), a_pod("ended"), quota)
    ended = a_pod("ended") | {"status": {"phase": "Succeeded"}}
    cluster.apply(a_file(a_node("same"), a_node("changed", devices=4), a_node("new"), ended, a_pod("fresh")))
    assert sorted(seen.take_changes()) == [
        ("node changed", "changed"),
        ("node changed", "new"),
        ("node gone", "gone"),
        ("pod changed", "uid-ended"),
        ("pod changed", "uid-fresh"),
        ("pod gone", "uid-ended"),
        ("quota gone", "ml/q"),
    ]


async def test_a_patch_of_what_has_changed_meanwhile_conflicts() -> None:
    cluster, _ = a_cluster_of(a_node("node1"))
    old = get_version(cluster, "node1")
    await cluster.patch_node("node1", {NODE_LOCK: "x"}, old)
    with pytest.raises(KubeApiError, match="the object has been modified") as refused:
        await cluster.patch_node("node1", {NODE_LOCK: "y"}, old)
    assert refused.value.is_conflict


@pytest.mark.parametrize(
    "call",
    [
        lambda c: c.get_node("x"),
        lambda c: c.get_pod("n", "x"),
        lambda c: c.bind(PodVersion(NamespacedName("n", "x"), "", ""), "y"),
    ],
)
async def test_what_is_not_there_is_not_found(call: Any) -> None:
    cluster, _ = a_cluster_of()
    with pytest.raises(KubeApiError, match='"x" not found') as refused:
        await call(cluster)
    assert refused.value.is_missing


async def test_a_bound_pod_has_its_devices_and_the_node_is_free_again() -> None:
    cluster, _ = a_cluster_of(a_node("node1"))
    cluster.note_offered(a_pod("pod1"))
    devices = "GPU-a,NVIDIA,3000,30:;;"
    annotations = {ASSIGNED_NODE: "node1", DEVICES_TO_ALLOCATE: devices}
    await cluster.patch_pod(PodVersion(NamespacedName("default", "pod1"), "uid-pod1", ""), annotations, {"l": "v"})
    await cluster.patch_node("node1", {NODE_LOCK: "2026-11-21T03:00:00Z,default,pod1"}, get_version(cluster, "node1"))
    await cluster.bind(PodVersion(NamespacedName("default", "pod1"), "uid-pod1", ""), "node1")
    pod = await cluster.get_pod("default", "pod1")
    assert pod["spec"]["nodeName"] == "node1"
    assert (get_annotation(pod, BIND_PHASE), get_annotation(pod, DEVICES_TO_ALLOCATE)) == ("success", ";;")
    assert pod["metadata"]["labels"] == {"l": "v"}
    assert get_node_annotation(cluster, "node1", NODE_LOCK) is None


async def test_another_pods_lock_is_not_released() -> None:
    lock = "2026-11-21T03:00:00Z,default,other"
    cluster, _ = a_cluster_of(a_node("node1", annotations={NODE_LOCK: lock}))
    cluster.note_offered(a_pod("pod1"))
    await cluster.bind(PodVersion(NamespacedName("default", "pod1"), "uid-pod1", ""), "node1")
    assert get_node_annotation(cluster, "node1", NODE_LOCK) == lock


async def test_a_pod_is_bound_once() -> None:
    cluster, _ = a_cluster_of(a_node("node1"))
    cluster.note_offered(a_pod("pod1"))
    await cluster.bind(PodVersion(NamespacedName("default", "pod1"), "uid-pod1", ""), "node1")
    with pytest.raises(KubeApiError, match='pod pod1 is already assigned to node "node1"'):
        await cluster.bind(PodVersion(NamespacedName("default", "pod1"), "uid-pod1", ""), "node2")


async def test_a_pod_that_was_made_again_is_not_bound_for_the_old_one() -> None:
    cluster, _ = a_cluster_of(a_node("node1"))
    cluster.note_offered(a_pod("pod1", uid="new"))
    with pytest.raises(KubeApiError, match="UID in precondition: old, UID in object meta: new"):
        await cluster.bind(PodVersion(NamespacedName("default", "pod1"), "old", ""), "node1")


async def test_an_edit_keeps_our_lock_unless_it_speaks_of_the_lock() -> None:
    cluster, _ = a_cluster_of(a_node("node1"))
    await cluster.patch_node("node1", {NODE_LOCK: "ours"}, get_version(cluster, "node1"))
    cluster.apply(a_file(a_node("node1", devices=4)))
    assert get_node_annotation(cluster, "node1", NODE_LOCK) == "ours"
    cluster.apply(a_file(a_node("node1", devices=4, annotations={NODE_LOCK: "theirs"})))
    assert get_node_annotation(cluster, "node1", NODE_LOCK) == "theirs"


async def test_what_we_bound_remains_until_the_file_speaks_of_that_pod() -> None:
    cluster, seen = a_cluster_of(a_node("node1"))
    cluster.note_offered(a_pod("pod1"))
    await cluster.patch_pod(PodVersion(NamespacedName("default", "pod1"), "uid-pod1", ""), {ASSIGNED_NODE: "node1"})
    seen.take_changes()
    cluster.apply(a_file(a_node("node1"), a_pod("other")))
    assert seen.take_changes() == [("pod changed", "uid-other")]
    cluster.apply(a_file(a_node("node1"), a_pod("pod1")))
    assert ("pod gone", "uid-pod1") in seen.take_changes()
    pod = cluster.get_pod_seen("default", "pod1")
    assert pod
    assert get_annotation(pod, ASSIGNED_NODE) is None


def test_a_pod_of_the_same_name_takes_the_place_of_the_one_before() -> None:
    cluster, seen = a_cluster_of()
    cluster.note_offered(a_pod("pod1", uid="first"))
    cluster.note_offered(a_pod("pod1", uid="second"))
    assert seen.take_changes() == [("pod gone", "first")]


async def test_a_pod_of_the_file_is_not_replaced_by_what_a_caller_sends() -> None:
    """N7: a forged UID must not free what the pod holds."""
    cluster, seen = a_cluster_of(a_node("node1"), a_pod("victim"))
    seen.take_changes()
    cluster.note_offered(a_pod("victim", uid="forged"))
    assert seen.take_changes() == []
    with pytest.raises(KubeApiError, match="UID in precondition: forged"):
        await cluster.patch_pod(PodVersion(NamespacedName("default", "victim"), "forged", ""), {ASSIGNED_NODE: "n"})


async def test_pods_that_never_fit_are_forgotten_before_memory_is() -> None:
    cluster, _ = a_cluster_of()
    cluster.note_offered(a_pod("placed"))
    await cluster.patch_pod(PodVersion(NamespacedName("default", "placed"), "uid-placed", ""), {ASSIGNED_NODE: "node1"})
    for number in range(MAX_OFFERED + 5):
        cluster.note_offered(a_pod(f"pod{number}"))
    assert cluster.get_pod_seen("default", "placed")
    assert cluster.get_pod_seen("default", "pod0") is None
    assert cluster.get_pod_seen("default", f"pod{MAX_OFFERED + 4}")


def test_a_kind_that_is_not_used_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    cluster, _ = a_cluster_of({"kind": "Service", "metadata": {"name": "s"}})
    cluster.apply(
        a_file({"kind": "Service", "metadata": {"name": "t"}}, {"kind": "Service", "metadata": {"name": "s"}})
    )
    assert caplog.text.count("kind Service") == 1


class Followed:
    """A file that is followed, and what came of it."""

    def __init__(self, folder: Path) -> None:
        self.path, self.metrics, self.seen = folder / "cluster.yaml", Metrics(), Seen()
        self.watch = FileWatch(self.path, SimulatedCluster(self.seen), self.metrics)
        self._edits = 0

    def write(self, text: str) -> float:
        """Replace the file, as editors do; its new modification time."""
        draft = self.path.with_suffix(".draft")
        draft.write_text(text)
        self._edits += 1
        os.utime(draft, (1_800_000_000 + self._edits, 1_800_000_000 + self._edits))
        draft.replace(self.path)
        return 1_800_000_000 + self._edits

    def read_gauge(self, name: str) -> float | None:
        return self.metrics.registry.get_sample_value(f"schedulerlog_scheduler_{name}")

    async def until(self, name: str, value: float) -> None:
        async with asyncio.timeout(10):
            while self.read_gauge(name) != value:  # noqa: ASYNC110 - a gauge has no event
                await asyncio.sleep(0.01)


async def test_an_edit_is_applied_and_a_broken_one_leaves_the_last_good_state(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    followed = Followed(tmp_path)
    followed.write(yaml.safe_dump(a_node("node1")))
    followed.watch.load()
    task = asyncio.create_task(followed.watch.run(poll_seconds=0.01))
    written = followed.write(yaml.safe_dump(a_node("node2")))
    await followed.until("cluster_file_applied_timestamp_seconds", written)
    followed.write("kind: Node\nmetadata: {}")
    await followed.until("cluster_file_is_broken", 1)
    await asyncio.sleep(0.05)
    assert caplog.text.count(f"{followed.path}:2: the Node has no metadata.name") == 1
    assert followed.read_gauge("cluster_file_applied_timestamp_seconds") == written
    followed.path.unlink()
    await asyncio.sleep(0.05)
    again = followed.write(yaml.safe_dump(a_node("node3")))
    await followed.until("cluster_file_applied_timestamp_seconds", again)
    assert followed.read_gauge("cluster_file_is_broken") == 0
    assert followed.seen.take_changes() == [
        ("node changed", "node1"),
        ("node gone", "node1"),
        ("node changed", "node2"),
        ("node gone", "node2"),
        ("node changed", "node3"),
    ]
    task.cancel()
