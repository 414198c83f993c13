"""Simulations of the API on the states that our scheduler publishes: the same as on a file with the same objects."""

import json
from pathlib import Path
from typing import Any

import pytest

from engine.hami.annotations import ASSIGNED_NODE, DEVICES_ALLOCATED
from schemas.events import NodeStateChanged
from schemas.json_types import Json
from tests.support.builders.cluster import a_pod
from tests.support.builders.simulations import a_gpu_node, a_gpu_pod, list_notes, simulate
from tests.support.fakes.objects import FakeObjects
from tests.support.harness.api_app import Caller
from tests.support.harness.scheduler_app import Serving

OURS, OTHER = "hami-scheduler", "another-scheduler"
THEIRS, FREE = a_gpu_node("theirs"), a_gpu_node("free")


def a_held_pod() -> Json:
    """Build a pod of another scheduler that holds a device."""
    pod = a_gpu_pod("held", gpu=1, gpumem=3000, gpucores=10)
    annotations = {ASSIGNED_NODE: "theirs", DEVICES_ALLOCATED: "GPU-theirs-0,NVIDIA,3000,10:;"}
    pod["metadata"] |= {"uid": "held", "annotations": annotations}
    pod["spec"] |= {"schedulerName": OTHER, "nodeName": "theirs"}
    return pod


def a_scheduler() -> Json:
    """Build the pod of our scheduler with its default name."""
    pod = a_pod("scheduler")
    pod["spec"]["containers"] = [{"name": "scheduler", "args": ["scheduler", "serve"]}]
    return pod


def a_pod_of(scheduler: str, memory: int = 1000) -> Json:
    pod = a_gpu_pod("new", gpu=1, gpumem=memory)
    pod["spec"]["schedulerName"] = scheduler
    return pod


async def build_caller(*objects: Json, folder: Path) -> Caller:
    """Build an API that has read what our scheduler, which sees the objects, has published, and the node objects."""
    nodes = [item for item in objects if item["kind"] == "Node"]
    serving = Serving(folder, *objects)
    await serving.filter(a_gpu_pod("other"), [node["metadata"]["name"] for node in nodes])
    caller = Caller(objects=FakeObjects({f"/api/v1/nodes/{node['metadata']['name']}": node for node in nodes}))
    devices = caller.app.state.devices
    for event in serving.take_events():
        if isinstance(event, NodeStateChanged):
            devices.take(event, event.observed_at)
    devices.is_caught_up = True
    await serving.close()
    return caller


async def simulate_by_api(pod: Json, *objects: Json, folder: Path) -> Any:
    caller = await build_caller(*objects, folder=folder)
    answer = await caller.client.post("/api/v1/simulate", json=pod)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("objects", [[THEIRS], [THEIRS, FREE]], ids=["all nodes", "one of two nodes"])
async def test_a_node_that_is_left_to_another_scheduler_is_refused_with_the_same_cause(
    tmp_path: Path, objects: list[Json]
) -> None:
    cluster = [*objects, a_held_pod()]
    by_api = await simulate_by_api(a_pod_of(OURS), *cluster, folder=tmp_path)
    direct = simulate(a_pod_of(OURS), *cluster, a_scheduler())
    compared = ("node", "state", "sentence", "fitting")
    assert {name: by_api[name] for name in compared} == {name: direct[name] for name in compared}
    assert by_api["schedulerlog"]["filter"]["nodes"] == direct["schedulerlog"]["filter"]["nodes"]
    causes = [obstacle["sentence"] for obstacle in [(by_api["diagnosis"] or {}).get("obstacle")] if obstacle]
    assert causes == [obstacle["sentence"] for obstacle in [direct["diagnosis"]["obstacle"]] if obstacle]
    assert all("pods of another-scheduler hold devices there" in cause["en"] for cause in causes)
    assert len(causes) == (len(objects) == 1)
    assert not by_api["suggestions"]["items"]


async def test_the_page_names_the_cause_too(tmp_path: Path) -> None:
    caller = await build_caller(THEIRS, a_held_pod(), folder=tmp_path)
    page = await caller.client.post(
        "/ui/simulate", data={"pod": json.dumps(a_pod_of(OURS))}, headers={"sec-fetch-site": "same-origin"}
    )
    assert page.status_code == 200, page.text
    assert f"pods of {OTHER} hold devices there" in page.text
    assert "unregistered" not in page.text


async def test_whether_the_other_scheduler_finds_a_device_there_is_open(tmp_path: Path) -> None:
    cluster = [THEIRS, FREE, a_held_pod()]
    large = a_pod_of(OTHER, memory=24_000)
    fits = await simulate_by_api(large, *cluster, folder=tmp_path)
    assert (fits["node"], fits["state"]) == ("free", "fits")
    assert list_notes(fits)["DevicesNotRecorded"].endswith("reads them from the cluster: theirs.")
    too_large = a_pod_of(OTHER, memory=30_000)
    left = await simulate_by_api(too_large, *cluster, folder=tmp_path / "again")
    assert (left["node"], left["state"], left["fitting"]) == (None, "open", ["theirs"])
    assert left["sentence"]["en"].startswith("It is not certain whether it would start")
    assert "unregistered" not in str(left)


async def test_a_node_is_ours_again_when_the_last_pod_is_gone(tmp_path: Path) -> None:
    serving = Serving(tmp_path, THEIRS, a_held_pod())
    devices = Caller().app.state.devices
    for objects in ([THEIRS, a_held_pod()], [THEIRS]):
        serving.edit(*objects)
        await serving.filter(a_gpu_pod("other"), ["theirs"])
        for event in serving.take_events():
            if isinstance(event, NodeStateChanged):
                devices.take(event, event.observed_at)
        withheld = {OURS: {"theirs": f"pods of {OTHER} hold devices there"}}
        assert devices.get_withheld("default") == (withheld if len(objects) == 2 else {})
    assert devices.columns["default"].node_names == ("theirs",)
    await serving.close()
