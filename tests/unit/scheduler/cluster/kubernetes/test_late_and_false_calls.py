"""H1, H2, H3: calls that overlap, come late, or say something else than the cluster change nothing."""

import asyncio
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from engine.hami.annotations import ASSIGNED_NODE, DEVICES_ALLOCATED
from tests.support.builders.kube_objects import a_container, a_node, a_pod
from tests.support.fakes.api_server import FakeApi
from tests.support.harness.scheduler_on_fake_api import a_cluster, build_node_path, build_pod_path, running
from tests.support.waiting import eventually_async

BINDING = "POST /api/v1/namespaces/default/pods/pod1/binding"
PATCH = "PATCH /api/v1/namespaces/default/pods/pod1"


def a_cluster_of_two_nodes() -> FakeApi:
    api = a_cluster("pod1", slots=1, devices=1)
    api.put(build_node_path("node2"), a_node("node2", devices=1))
    return api


async def test_h2_while_a_bind_is_under_way_its_pod_is_not_decided_about_again(tmp_path: Path) -> None:
    api = a_cluster_of_two_nodes()
    async with running(api, tmp_path) as (scheduler,):
        pod = deepcopy(api.objects[build_pod_path("pod1")])
        await scheduler.filter(pod)
        held = api.hold_answer(BINDING)
        slow = asyncio.create_task(scheduler.bind(pod))
        await eventually_async(lambda: BINDING in api.requests)
        for nodes in (("node2",), ("node1", "node2")):
            assert (await scheduler.filter(pod, nodes))["Error"] == "an earlier bind of this pod is still under way"
        assert await scheduler.bind(pod) == "an earlier bind of this pod is still under way"
        held.set()
        assert await slow == ""
        assert api.objects[build_pod_path("pod1")]["spec"]["nodeName"] == "node1"
        assert scheduler.count_used_slots() == 1


async def test_h3_a_late_decision_of_an_old_leader_does_not_overwrite_the_new_ones(tmp_path: Path) -> None:
    api = a_cluster_of_two_nodes()
    async with running(api, tmp_path) as (old,), running(api, tmp_path / "new") as (new,):
        pod = deepcopy(api.objects[build_pod_path("pod1")])
        patch_pod, go_on = old.cluster.patch_pod, asyncio.Event()

        async def patch_late(*words: Any) -> Any:
            await go_on.wait()
            return await patch_pod(*words)

        old.cluster.patch_pod = patch_late  # type: ignore[method-assign,assignment]
        late = asyncio.create_task(old.filter(pod, ("node1",)))
        await eventually_async(lambda: old.claims.is_writing(pod["metadata"]["uid"]))
        assert (await new.filter(pod, ("node2",)))["NodeNames"] == ["node2"]
        go_on.set()
        assert "modified" in (await late)["Error"]
        assert await new.bind(pod, "node2") == ""
        bound = api.objects[build_pod_path("pod1")]
        assert (bound["spec"]["nodeName"], bound["metadata"]["annotations"][ASSIGNED_NODE]) == ("node2", "node2")


async def test_h2_a_pod_is_bound_only_to_the_node_that_it_was_assigned_to_last(tmp_path: Path) -> None:
    api = a_cluster_of_two_nodes()
    async with running(api, tmp_path) as (scheduler,):
        pod = deepcopy(api.objects[build_pod_path("pod1")])
        await scheduler.filter(pod, ("node1",))
        await scheduler.filter(pod, ("node2",))
        assert "holds no devices on node node1" in await scheduler.bind(pod, "node1")
        assert "nodeName" not in api.objects[build_pod_path("pod1")]["spec"]


async def test_h2_a_binding_that_may_still_be_on_its_way_is_ruled_out_before_the_next_decision(tmp_path: Path) -> None:
    api = a_cluster_of_two_nodes()
    async with running(api, tmp_path) as (scheduler,):
        pod = deepcopy(api.objects[build_pod_path("pod1")])
        await scheduler.filter(pod, ("node1",))
        api.fail(BINDING, "GET /api/v1/namespaces/default/pods/pod1")
        assert "500" in await scheduler.bind(pod)
        marked = api.objects[build_pod_path("pod1")]["metadata"]["resourceVersion"]
        api.requests.clear()
        assert (await scheduler.filter(pod, ("node2",)))["NodeNames"] == ["node2"]
        assert api.requests.count(PATCH) == 2
        assert int(api.objects[build_pod_path("pod1")]["metadata"]["resourceVersion"]) == int(marked) + 2


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"name": "pod2"}, "has the UID of another pod"),
        ({"name": "unknown"}, "has the UID of another pod"),
        ({"containers": [a_container(gpus=99)]}, "asks for other devices in the cluster"),
        ({}, 'already assigned to node "node1"'),
    ],
)
async def test_h1_a_body_that_contradicts_the_cluster_frees_nothing(
    tmp_path: Path, change: dict[str, Any], error: str
) -> None:
    api = a_cluster("pod1", "pod2")
    async with running(api, tmp_path) as (scheduler,):
        pod = deepcopy(api.objects[build_pod_path("pod1")])
        await scheduler.filter(pod)
        if not change:
            await scheduler.bind(pod)
            await eventually_async(
                lambda: "nodeName" in (scheduler.cluster.get_pod_seen("default", "pod1") or {}).get("spec", {})
            )
        false = a_pod(**({"name": "pod1"} | change), uid=pod["metadata"]["uid"])
        api.put(build_pod_path("unknown"), a_pod("unknown"))
        assert error in (await scheduler.filter(false))["Error"]
        assert scheduler.count_used_slots() == 1


async def test_h1_a_pod_that_the_cluster_does_not_have_is_not_decided_about(tmp_path: Path) -> None:
    api = a_cluster()
    async with running(api, tmp_path) as (scheduler,):
        assert (await scheduler.filter(a_pod("invented")))["Error"] == '"invented" not found'
        assert scheduler.count_used_slots() == 0


@pytest.mark.parametrize(
    ("gpus", "devices"),
    [
        (0, "GPU-node1-0,NVIDIA,2147483647,100:;"),
        (0, "GPU-node1-0,NVIDIA,-2147483648,-1000:;"),
        (1, "GPU-node1-0,NVIDIA,-2147483648,-1000:;"),
        (1, "GPU-node1-0,NVIDIA,1,1:GPU-node1-1,NVIDIA,45912,100:;"),
    ],
)
async def test_m8_annotations_that_no_scheduler_wrote_hold_nothing_and_free_nothing(
    tmp_path: Path, gpus: int, devices: str, caplog: pytest.LogCaptureFixture
) -> None:
    api = a_cluster("pod1")
    annotations = {ASSIGNED_NODE: "node1", DEVICES_ALLOCATED: devices}
    pod = a_pod("false", [a_container(gpus=gpus)], annotations)
    api.put(build_pod_path("false"), {**pod, "spec": {**pod["spec"], "nodeName": "node1"}})
    async with running(api, tmp_path) as (scheduler,):
        assert scheduler.columns.devices["used_memory"].sum() == 0
        assert scheduler.count_used_slots() == 0
        assert (await scheduler.filter(api.objects[build_pod_path("pod1")]))["NodeNames"] == ["node1"]
        assert "pod default/false holds no devices" in caplog.text
