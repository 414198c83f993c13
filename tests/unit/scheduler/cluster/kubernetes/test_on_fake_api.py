"""The scheduler on an API server: four calls a pod; no device is given twice or kept for nobody, whatever is late."""

import asyncio
import re
from copy import deepcopy
from pathlib import Path

import pytest

from engine.hami.annotations import ASSIGNED_NODE, DEVICES_ALLOCATED, NODE_LOCK
from tests.support.fakes.api_server import FakeApi
from tests.support.harness.scheduler_on_fake_api import OnApi, a_cluster, build_node_path, build_pod_path, running
from tests.support.waiting import eventually_async


def take_calls(api: FakeApi) -> list[str]:
    """Take what a scheduler did since the last look, watches and lists apart."""
    calls = [value for value in api.requests if not value.startswith("GET /api/v1/") or value.count("/") > 3]
    api.requests.clear()
    return [value.replace("/api/v1/", "").replace("namespaces/default/", "") for value in calls]


async def test_a_pod_takes_four_calls(tmp_path: Path) -> None:
    api = a_cluster("pod1")
    async with running(api, tmp_path) as (scheduler,):
        take_calls(api)
        pod = api.objects[build_pod_path("pod1")]
        assert (await scheduler.filter(pod))["NodeNames"] == ["node1"]
        assert await scheduler.bind(pod) == ""
        assert take_calls(api) == ["PATCH pods/pod1", "PATCH nodes/node1", "PATCH pods/pod1", "POST pods/pod1/binding"]
        bound = api.objects[build_pod_path("pod1")]
        assert bound["spec"]["nodeName"] == "node1"
        assert bound["metadata"]["labels"][ASSIGNED_NODE] == "node1"
        assert scheduler.count_used_slots() == 1


async def test_an_old_view_of_the_node_costs_one_more_look_and_no_lock_is_run_over(tmp_path: Path) -> None:
    api = a_cluster("pod1", "other")
    async with running(api, tmp_path) as (scheduler,):
        pod = api.objects[build_pod_path("pod1")]
        await scheduler.filter(pod)
        api.mute_watches = True
        node = deepcopy(api.objects[build_node_path("node1")])
        node["metadata"]["annotations"][NODE_LOCK] = "2999-01-01T00:00:00Z,default,other"
        api.put(build_node_path("node1"), node)
        assert "node lock contention" in await scheduler.bind(pod)
        assert api.objects[build_node_path("node1")]["metadata"]["annotations"][NODE_LOCK].endswith(",default,other")
        assert scheduler.count_used_slots() == 0


async def test_pods_that_end_or_go_free_their_devices(tmp_path: Path) -> None:
    api = a_cluster("pod1", "pod2", slots=1)
    async with running(api, tmp_path) as (scheduler,):
        for name in ("pod1", "pod2"):
            await scheduler.filter(api.objects[build_pod_path(name)])
        assert scheduler.count_used_slots() == 2
        api.put(build_pod_path("pod1"), {**api.objects[build_pod_path("pod1")], "status": {"phase": "Succeeded"}})
        api.drop(build_pod_path("pod2"))
        await eventually_async(lambda: scheduler.count_used_slots() == 0)


async def test_news_from_before_a_decision_does_not_undo_it(tmp_path: Path) -> None:
    api = a_cluster("pod1", slots=1)
    async with running(api, tmp_path) as (scheduler,):
        pod = deepcopy(api.objects[build_pod_path("pod1")])
        await scheduler.filter(pod)
        first = deepcopy(api.objects[build_pod_path("pod1")])
        await scheduler.filter(pod)
        stale = scheduler.cluster.watches[1]
        for late in (pod, first):
            stale.apply_own_write(late)
        assert scheduler.count_used_slots() == 1
        assert scheduler.columns.get_pod_use(pod["metadata"]["uid"])


async def test_an_observation_that_arrives_while_the_decision_is_being_written_waits(tmp_path: Path) -> None:
    api = a_cluster("pod1", "pod2", devices=2, slots=1)
    async with running(api, tmp_path) as (scheduler,):
        pod = deepcopy(api.objects[build_pod_path("pod1")])
        uid = pod["metadata"]["uid"]
        await scheduler.filter(pod)
        was = scheduler.columns.get_pod_use(uid)
        scheduler.claims.begin(uid)
        other = deepcopy(api.objects[build_pod_path("pod1")])
        value = other["metadata"]["annotations"]
        value[DEVICES_ALLOCATED] = value[DEVICES_ALLOCATED].replace("-0,", "-9,").replace("-1,", "-9,")
        api.put(build_pod_path("pod1"), other)
        version = api.objects[build_pod_path("pod1")]["metadata"]["resourceVersion"]

        def is_known() -> bool:
            seen = scheduler.cluster.get_pod_seen("default", "pod1")
            return seen is not None and seen["metadata"]["resourceVersion"] == version

        await eventually_async(is_known)
        assert scheduler.columns.get_pod_use(uid) == was
        assert "still being written" in (await scheduler.filter(pod))["Error"]


async def test_a_failed_bind_frees_at_once_and_remains_free_whatever_the_annotations_say(tmp_path: Path) -> None:
    api = a_cluster("pod1", "pod2", devices=1, slots=1)
    async with running(api, tmp_path) as (scheduler,):
        pod = deepcopy(api.objects[build_pod_path("pod1")])
        await scheduler.filter(pod)
        api.fail("POST /api/v1/namespaces/default/pods/pod1/binding", status=403)
        assert await scheduler.bind(pod) == "the fault that was asked for: 403"
        assert NODE_LOCK not in api.objects[build_node_path("node1")]["metadata"]["annotations"]
        # kube-scheduler writes a condition into the pod, whose annotations still stand.
        api.put(build_pod_path("pod1"), {**api.objects[build_pod_path("pod1")], "status": {"conditions": []}})
        api.put(build_pod_path("marker"), {"metadata": {"namespace": "default"}})
        await eventually_async(lambda: scheduler.cluster.get_pod_seen("default", "marker") is not None)
        assert scheduler.count_used_slots() == 0
        assert (await scheduler.filter(api.objects[build_pod_path("pod2")]))["NodeNames"] == ["node1"]


async def test_a_binding_whose_answer_was_lost_is_looked_up(tmp_path: Path) -> None:
    api = a_cluster("pod1")
    async with running(api, tmp_path) as (scheduler,):
        pod = deepcopy(api.objects[build_pod_path("pod1")])
        await scheduler.filter(pod)
        api.lose_answer("POST /api/v1/namespaces/default/pods/pod1/binding")
        assert await scheduler.bind(pod) == ""
        assert scheduler.count_used_slots() == 1


async def test_a_binding_of_which_nothing_is_known_keeps_its_devices(tmp_path: Path) -> None:
    api = a_cluster("pod1")
    async with running(api, tmp_path) as (scheduler,):
        pod = deepcopy(api.objects[build_pod_path("pod1")])
        await scheduler.filter(pod)
        api.fail("POST /api/v1/namespaces/default/pods/pod1/binding", "GET /api/v1/namespaces/default/pods/pod1")
        assert "500" in await scheduler.bind(pod)
        assert scheduler.count_used_slots() == 1


@pytest.mark.parametrize("status", [404, 409, 500])
async def test_a_decision_that_can_not_be_written_is_not_reserved(tmp_path: Path, status: int) -> None:
    api = a_cluster("pod1")
    async with running(api, tmp_path) as (scheduler,):
        api.fail("PATCH /api/v1/namespaces/default/pods/pod1", status=status)
        assert str(status) in (await scheduler.filter(api.objects[build_pod_path("pod1")]))["Error"]
        assert scheduler.count_used_slots() == 0


async def test_a_pod_of_the_same_name_but_another_uid_is_not_written_to(tmp_path: Path) -> None:
    api = a_cluster("pod1")
    async with running(api, tmp_path) as (scheduler,):
        pod = deepcopy(api.objects[build_pod_path("pod1")])
        pod["metadata"]["uid"] = "of-the-one-before"
        actual = api.objects[build_pod_path("pod1")]["metadata"]["uid"]
        assert (await scheduler.filter(pod))["Error"] == f"pod pod1 has another UID in the cluster: {actual}"
        assert scheduler.count_used_slots() == 0
        assert ASSIGNED_NODE not in api.objects[build_pod_path("pod1")]["metadata"].get("annotations", {})


async def test_after_a_restart_every_reservation_is_back_once_bound_or_not(tmp_path: Path) -> None:
    api = a_cluster("bound", "filtered", "waiting", devices=2, slots=1)
    async with running(api, tmp_path / "1") as (scheduler,):
        for name in ("bound", "filtered"):
            await scheduler.filter(api.objects[build_pod_path(name)])
        await scheduler.bind(api.objects[build_pod_path("bound")])
        before = {uid: scheduler.columns.get_pod_use(uid) for uid in list_uids(api)}
    async with running(api, tmp_path / "2") as (scheduler,):
        assert {uid: scheduler.columns.get_pod_use(uid) for uid in list_uids(api)} == before
        assert scheduler.count_used_slots() == 2
        refused = await scheduler.filter(api.objects[build_pod_path("waiting")])
        assert refused["FailedNodes"] == {"node1": "2/2 CardTimeSlicingExhausted"}


def list_uids(api: FakeApi) -> list[str]:
    return [pod["metadata"]["uid"] for path, pod in api.objects.items() if "/pods/" in path]


async def test_who_does_not_lead_answers_so_at_once_and_the_next_leader_has_read_everything(tmp_path: Path) -> None:
    api = a_cluster("pod1", "pod2", devices=1, slots=1)
    async with running(api, tmp_path, "a", "b") as both:
        await eventually_async(lambda: all("nobody" not in scheduler.cluster.find_problem() for scheduler in both))
        leader, other = sorted(both, key=lambda scheduler: scheduler.cluster.find_problem())
        api.mute_watches = True
        await leader.filter(api.objects[build_pod_path("pod1")])
        answer = await other.filter(api.objects[build_pod_path("pod2")])
        assert "this scheduler does not lead" in answer["Error"]
        assert "this scheduler does not lead" in await other.bind(api.objects[build_pod_path("pod1")])
        assert leader.election
        await leader.election.resign()
        assert "does not lead" in (await leader.filter(api.objects[build_pod_path("pod2")]))["Error"]
        # The same one may lead again; the one that does has read the cluster since.
        await eventually_async(lambda: not all(scheduler.cluster.find_problem() for scheduler in both))
        now = next(scheduler for scheduler in both if not scheduler.cluster.find_problem())
        refused = await now.filter(api.objects[build_pod_path("pod2")])
        assert refused["FailedNodes"] == {"node1": "1/1 CardTimeSlicingExhausted"}


async def test_who_loses_the_lead_while_writing_does_not_answer_with_a_node(tmp_path: Path) -> None:
    api = a_cluster("pod1")
    async with running(api, tmp_path, "a") as (scheduler,):
        assert scheduler.election
        api.delay_seconds = 0.2
        written = asyncio.create_task(scheduler.filter(api.objects[build_pod_path("pod1")]))
        await eventually_async(
            lambda: scheduler.claims.is_writing(api.objects[build_pod_path("pod1")]["metadata"]["uid"])
        )
        await scheduler.election.resign()
        # It may lead again by now, but of a cluster that it has yet to read.
        answer = await written
        assert re.search("does not lead|the new leader is reading it again", answer["Error"])
        assert not answer["NodeNames"]


async def test_nothing_is_answered_before_the_first_list_is_whole(tmp_path: Path) -> None:
    api = a_cluster("pod1")
    async with running(api, tmp_path) as (scheduler,):
        young = OnApi(tmp_path / "young", scheduler.cluster._client)
        answer = await young.filter(api.objects[build_pod_path("pod1")])
        assert answer["Error"] == "the cluster is not known as it is now: nodes are being listed"
        young.spool.close()


async def test_different_pods_are_written_at_the_same_time(tmp_path: Path) -> None:
    names = [f"pod{number}" for number in range(20)]
    api = a_cluster(*names, devices=8)
    async with running(api, tmp_path) as (scheduler,):
        api.delay_seconds = 0.2
        answers = await asyncio.gather(*(scheduler.filter(api.objects[build_pod_path(name)]) for name in names))
        assert all(answer["NodeNames"] == ["node1"] for answer in answers)
        assert scheduler.count_used_slots() == 20
        assert api.max_concurrent_writes == 20


async def test_a_nodes_heartbeat_or_lock_is_no_news_for_the_devices(tmp_path: Path) -> None:
    api = a_cluster()
    async with running(api, tmp_path) as (scheduler,):
        applied: list[object] = []
        scheduler.columns.apply_node = lambda node, _now=None: applied.append(node)  # type: ignore[method-assign,assignment]
        node = deepcopy(api.objects[build_node_path("node1")])
        node["status"] = {"conditions": [{"lastHeartbeatTime": "later"}]}
        node["metadata"]["annotations"][NODE_LOCK] = "2026-11-21T03:00:00Z,default,pod1"
        api.put(build_node_path("node1"), node)
        version = api.objects[build_node_path("node1")]["metadata"]["resourceVersion"]
        await eventually_async(
            lambda: (scheduler.cluster.get_node_seen("node1") or {})["metadata"]["resourceVersion"] == version
        )
        assert applied == []
        node["metadata"]["annotations"]["hami.io/device-cordon"] = "GPU-node1-0"
        api.put(build_node_path("node1"), node)
        await eventually_async(lambda: len(applied) == 1)
