"""Answers to kube-scheduler, and what is published about them; no device is ever given away twice."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from engine.hami.annotations import ASSIGNED_NODE, ASSIGNED_TIME, DEVICES_ALLOCATED, DEVICES_TO_ALLOCATE, NODE_LOCK
from runtime.kubernetes.errors import build_missing_error
from scheduler.bind.bind_request import BindRequest
from scheduler.cluster.cluster_api import get_annotation
from schemas.codec.trace_context import NO_TRACE
from schemas.events import (
    AttemptConcluded,
    AttemptEvent,
    AttemptUnchanged,
    BindConcluded,
    DevicesJudged,
    LockHolder,
    NodeRegistered,
    PodObserved,
    PodRef,
)
from schemas.ids import derive_attempt_id
from schemas.json_types import Json
from tests.support.builders.kube_objects import a_container, a_device, a_node, a_pod
from tests.support.harness.scheduler_app import Serving
from tests.support.stress import count_examples

EMPTY = {"Nodes": None, "NodeNames": None, "FailedNodes": None, "FailedAndUnresolvableNodes": None, "Error": ""}


@pytest.fixture
async def serve(tmp_path: Path) -> AsyncIterator[Callable[..., Serving]]:
    """Starts a scheduler on a cluster of these objects."""
    started: list[Serving] = []

    def start(*objects: Json, **how: Any) -> Serving:
        started.append(Serving(tmp_path / str(len(started)), *objects, **how))
        return started[-1]

    yield start
    for app in started:
        await app.close()


@pytest.fixture
def serving(serve: Callable[..., Serving]) -> Serving:
    started = serve(a_node("node1", devices=2), a_node("node2", devices=2))
    started.take_events()
    return started


async def test_every_event_names_the_schedulers_cluster(serve: Callable[..., Serving]) -> None:
    east, west = (serve(a_node("node1", devices=2), a_pod(), cluster_name=name) for name in ("east", "west"))
    recorded = {}
    for name, serving in (("east", east), ("west", west)):
        await serving.filter(a_pod())
        assert await serving.bind(a_pod()) == ""
        recorded[name] = serving.take_events()
        assert {event.cluster for event in recorded[name]} == {name}
    assert not {event.id for event in recorded["east"]} & {event.id for event in recorded["west"]}
    kinds = {type(event).__name__ for event in recorded["east"]}
    assert kinds >= {"NodeRegistered", "NodeStateChanged", "DevicesJudged", "AttemptConcluded", "BindConcluded"}


async def test_m6_a_pods_attempts_are_in_order_when_the_clock_is_set_back(serving: Serving) -> None:
    """Memory and index go by when an attempt began: refused at 12:00, placed and bound at 11:01 by the new clock."""
    await serving.filter(a_pod(), ["cpu-node"])
    await serving.filter(other := a_pod("pod2"), ["cpu-node"])
    serving.clock.advance(-3540)
    assert (await serving.filter(a_pod()))["NodeNames"] == ["node1"]
    assert await serving.bind(a_pod()) == ""
    events = serving.take_events()
    refused, _, placed = [event for event in events if isinstance(event, AttemptConcluded)]
    assert refused.started_at < placed.started_at <= placed.ended_at
    assert placed.started_at - refused.started_at < timedelta(seconds=1)
    (bound,) = [event for event in events if isinstance(event, BindConcluded)]
    assert bound.attempt_id == placed.attempt_id
    serving.clock.advance(3600)
    await serving.filter(other, ["cpu-node"])
    (later,) = [event for event in serving.take_events() if isinstance(event, AttemptUnchanged)]
    assert later.started_at == serving.clock(), "the clock's own time, as soon as it is later"


NODES = ("node1", "node2", "cpu-node")


async def test_an_attempt_that_finds_nothing_new_is_one_small_event(serving: Serving) -> None:
    pod = a_pod(containers=[a_container(gpus=2, gpumem=99_999)])
    first_answer = await serving.filter(pod, NODES)
    events = serving.take_events()
    (first,) = [event for event in events if isinstance(event, AttemptConcluded)]
    assert first.node_records == 1
    for _ in range(2):
        # kube-scheduler offers the nodes in another order each time.
        assert await serving.filter(pod, NODES[::-1]) == first_answer
        (again,) = serving.take_events()
        assert isinstance(again, AttemptUnchanged)
        assert (again.pod, again.repeats, again.repeats_started_at) == (first.pod, first.attempt_id, first.started_at)
        assert again.started_at == again.ended_at == serving.clock()


async def take_kinds(serving: Serving, pod: Json, nodes: Sequence[str] = NODES) -> set[str]:
    """Try the pod, and take the types of the events about it."""
    await serving.filter(pod, nodes)
    return {type(event).__name__ for event in serving.take_events() if isinstance(event, AttemptEvent)}


HOPELESS = a_pod(containers=[a_container(gpus=2, gpumem=99_999)])
IN_FULL, UNCHANGED = {"DevicesJudged", "NodesJudged", "AttemptConcluded"}, {"AttemptUnchanged"}


def let_a_node_register_again(serving: Serving) -> None:
    serving.edit(a_node("node1", devices=3), a_node("node2", devices=2))
    serving.edit(a_node("node1", devices=2), a_node("node2", devices=2))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda serving: serving.clock.advance(1_801), id="half an hour has passed"),
        pytest.param(lambda serving: serving.clock.advance(86_400), id="another day"),
        pytest.param(let_a_node_register_again, id="a node has registered again"),
        pytest.param(lambda serving: serving.edit(a_node("node2", devices=2)), id="a node is gone"),
        pytest.param(lambda serving: setattr(serving.spool.counts, "dropped_detail", 1), id="detail was dropped"),
        pytest.param(lambda serving: setattr(serving.spool.counts, "dropped_verdicts", 1), id="a record was lost"),
        pytest.param(lambda serving: setattr(serving.cluster, "get_term", lambda: 7), id="it leads again"),
    ],
)
async def test_an_attempt_is_published_in_full_when_the_earlier_one_may_not_be_there(
    serving: Serving, change: Callable[[Serving], None]
) -> None:
    assert await take_kinds(serving, HOPELESS) == IN_FULL
    assert await take_kinds(serving, HOPELESS) == UNCHANGED
    change(serving)
    assert await take_kinds(serving, HOPELESS) == IN_FULL
    assert await take_kinds(serving, HOPELESS) == UNCHANGED


@pytest.mark.parametrize(
    "pod",
    [
        a_pod(containers=[a_container(gpus=2, gpumem=99_999)], annotations={"nvidia.com/use-gputype": "A100"}),
        a_pod(uid="another", containers=[a_container(gpus=2, gpumem=99_999)]),
        a_pod("another", containers=[a_container(gpus=2, gpumem=99_999)]),
    ],
    ids=["another annotation", "a pod of the same name", "another pod"],
)
async def test_another_pod_or_another_constraint_is_published_in_full(serving: Serving, pod: Json) -> None:
    assert await take_kinds(serving, HOPELESS) == IN_FULL
    assert await take_kinds(serving, pod) == IN_FULL


async def test_fewer_nodes_are_something_new(serving: Serving) -> None:
    assert await take_kinds(serving, HOPELESS) == IN_FULL
    assert await take_kinds(serving, HOPELESS, NODES[:2]) >= {"AttemptConcluded"}
    assert await take_kinds(serving, HOPELESS, NODES[:2]) == UNCHANGED


async def test_an_attempt_after_one_that_was_placed_is_published_in_full(serving: Serving) -> None:
    assert "AttemptConcluded" in await take_kinds(serving, a_pod(), ["cpu-node"])
    assert "AttemptConcluded" in await take_kinds(serving, a_pod())
    assert "AttemptConcluded" in await take_kinds(serving, a_pod(), ["cpu-node"])


async def test_a_pod_that_fits_gets_exactly_one_node(serving: Serving) -> None:
    assert await serving.filter(a_pod(), ["node2", "node1"]) == EMPTY | {"NodeNames": ["node1"]}


async def test_a_pod_that_fits_nowhere_gets_every_reason(serving: Serving) -> None:
    pod = a_pod(containers=[a_container(gpus=2, gpumem=99999)])
    assert await serving.filter(pod, ["node1", "cpu-node"]) == EMPTY | {
        "FailedNodes": {"node1": "2/2 CardInsufficientMemory", "cpu-node": "node unregistered"}
    }


async def test_a_pod_without_devices_gets_all_nodes_back_and_nothing_is_reported(serving: Serving) -> None:
    pod = a_pod(containers=[a_container(gpus=0)])
    assert await serving.filter(pod, ["a", "b"]) == EMPTY | {"NodeNames": ["a", "b"]}
    assert serving.take_events() == []


async def test_n10_a_node_that_is_named_many_times_is_judged_once(serving: Serving) -> None:
    """One that was named a million times held the scheduler for a minute."""
    pod = a_pod(containers=[a_container(gpus=2, gpumem=99999)])
    names = ["node2", *["node1", "node2"] * 1_000]
    assert await serving.filter(pod, names) == EMPTY | {
        "FailedNodes": {"node1": "2/2 CardInsufficientMemory", "node2": "2/2 CardInsufficientMemory"}
    }
    (judged,) = (event for event in serving.take_events() if isinstance(event, DevicesJudged))
    assert judged.nodes == ["node2", "node1"]


async def test_n10_more_nodes_than_any_cluster_has_are_not_judged(serve: Callable[..., Serving]) -> None:
    serving = serve(max_body_bytes=8 * 1024**2)
    serving.take_events()
    names = [f"n{number}" for number in range(100_001)]
    node_list = {"items": [{"metadata": {"name": name}} for name in names]}
    for offered in ({"NodeNames": names}, {"Nodes": node_list}):
        answer = await serving.post("/filter", {"Pod": a_pod()} | offered)
        assert answer == EMPTY | {"Error": "100001 nodes are offered, 100000 are judged at most"}
    assert serving.take_events() == []


async def test_n9_a_pod_of_more_containers_than_any_node_runs_is_not_looked_at(serving: Serving) -> None:
    """Each costs some microseconds for each look, also where it asks for nothing."""
    answer = await serving.filter(a_pod(containers=[{"name": "a"}] * 10_001))
    assert answer["Error"] == "the pod has 10001 containers, more than 10000: divide it into several pods"


async def test_an_attempt_that_can_not_be_judged_says_so_in_error_and_in_its_conclusion(serving: Serving) -> None:
    answer = await serving.filter(a_pod(annotations={"hami.io/device-scoring-weights": "x"}))
    assert answer["Error"].startswith("calcScore failed invalid hami.io/device-scoring-weights annotation")
    (event,) = serving.take_events()
    assert isinstance(event, AttemptConcluded)
    assert event.error == answer["Error"]


async def test_what_is_reported_about_a_placed_pod_is_under_one_attempt_id(serving: Serving) -> None:
    pod = a_pod()
    await serving.filter(pod)
    began = serving.clock()
    await serving.bind(pod)
    written = serving.take_events()
    assert {type(event) for event in written} >= {DevicesJudged, AttemptConcluded, BindConcluded}
    assert {event.attempt_id for event in written if isinstance(event, AttemptEvent)} == {
        derive_attempt_id("default", "hami-scheduler", "uid-pod1", began)
    }
    assert [event.bound for event in written if isinstance(event, BindConcluded)] == [True]


async def test_the_decision_is_written_into_the_pod(serving: Serving) -> None:
    await serving.filter(a_pod())
    pod = serving.cluster.get_pod_seen("default", "pod1")
    assert pod
    assert get_annotation(pod, ASSIGNED_NODE) == "node1"
    assert get_annotation(pod, DEVICES_TO_ALLOCATE) == get_annotation(pod, DEVICES_ALLOCATED)
    assert get_annotation(pod, ASSIGNED_TIME) == str(int(serving.clock().timestamp()))
    assert pod["metadata"]["labels"] == {ASSIGNED_NODE: "node1"}


async def test_two_pods_are_bound_to_one_node_one_after_the_other(serving: Serving) -> None:
    for name in ("pod1", "pod2"):
        pod = a_pod(name)
        await serving.filter(pod)
        assert await serving.bind(pod) == ""


async def test_a_failed_bind_frees_the_devices_at_once(serve: Callable[..., Serving]) -> None:
    lock = {NODE_LOCK: "2026-11-21T02:59:59Z,default,other"}
    serving = serve(a_node("node1", devices=1, annotations=lock), a_pod("other"))
    containers = [a_container(gpucores=100)]
    first, second = a_pod("first", containers), a_pod("second", containers)
    assert (await serving.filter(first))["NodeNames"] == ["node1"]
    assert (await serving.filter(second))["NodeNames"] is None
    error = "node node1 has been locked within 5m0s: node lock contention"
    assert await serving.bind(first) == error
    assert serving.cluster.count_locked_nodes() == 1
    assert (await serving.filter(second))["NodeNames"] == ["node1"]
    (failed,) = [event for event in serving.take_events() if isinstance(event, BindConcluded)]
    assert (failed.bound, failed.error, failed.node) == (False, error, "node1")
    locked_at = datetime(2026, 11, 21, 2, 59, 59, tzinfo=UTC)
    assert failed.lock_holder == LockHolder(pod="default/other", locked_at=locked_at)


async def test_the_span_of_a_bind_that_is_cut_off_is_ended_with_the_reason(serving: Serving) -> None:
    ended: list[str] = []
    span = SimpleNamespace(trace=NO_TRACE, end=ended.append)
    tracing = SimpleNamespace(is_on=True, begin=lambda *_, **__: span)
    setattr(serving.scheduler, "_records", replace(serving.scheduler._records, tracing=tracing))
    pod = a_pod()
    await serving.filter(pod)
    assert ended == [""]

    async def cut_off(*_: object) -> None:
        raise asyncio.CancelledError

    setattr(serving.scheduler._binds, "bind", cut_off)
    metadata = pod["metadata"]
    with pytest.raises(asyncio.CancelledError):
        await serving.scheduler.bind(BindRequest(metadata["namespace"], metadata["name"], metadata["uid"], "node1"))
    assert ended == ["", "the bind was cut off"]


async def test_a_bind_after_a_restart_is_an_attempt_of_its_own(serving: Serving) -> None:
    serving.cluster.note_offered(a_pod())
    await serving.bind(a_pod())
    (event,) = serving.take_events()
    assert isinstance(event, BindConcluded)
    assert event.started_at == event.bind_started_at
    assert event.attempt_id == derive_attempt_id("default", "hami-scheduler", "uid-pod1", event.bind_started_at)


async def test_binding_an_unknown_pod_is_answered_as_hami_does(serving: Serving) -> None:
    assert await serving.bind(a_pod("nobody")) == 'pod "nobody" not found'


async def test_binding_to_an_unknown_node_is_answered_as_hami_does(serving: Serving) -> None:
    await serving.filter(a_pod())
    assert await serving.bind(a_pod(), "nowhere") == 'node "nowhere" not found'


async def test_what_a_pod_holds_does_not_stand_in_its_own_way(serving: Serving) -> None:
    pod = a_pod(containers=[a_container(gpus=2, gpucores=100)])
    for _ in range(3):
        assert (await serving.filter(pod))["NodeNames"] == ["node1"]


async def test_a_pod_that_fits_no_more_lets_go_of_what_it_held(serving: Serving) -> None:
    containers = [a_container(gpus=2, gpucores=100)]
    await serving.filter(a_pod("first", containers))
    await serving.filter(a_pod("first", containers), ["cpu-node"])
    assert (await serving.filter(a_pod("second", containers)))["NodeNames"] == ["node1"]


async def test_a_pod_that_ends_frees_its_devices(serve: Callable[..., Serving]) -> None:
    holds = {ASSIGNED_NODE: "node1", DEVICES_ALLOCATED: "GPU-node1-0,NVIDIA,45912,100:;"}
    running = a_pod("running", annotations=holds) | {"status": {"phase": "Running"}}
    serving = serve(a_node("node1", devices=1), running)
    assert (await serving.filter(a_pod()))["NodeNames"] is None
    serving.edit(a_node("node1", devices=1), running | {"status": {"phase": "Succeeded"}})
    assert (await serving.filter(a_pod()))["NodeNames"] == ["node1"]


def build_full_call(pod: Json, *nodes: Json) -> Json:
    """Build a filter call as kube-scheduler makes it with `nodeCacheCapable: false`."""
    return {"Pod": pod, "Nodes": {"metadata": {}, "items": list(nodes)}, "NodeNames": None}


async def test_a_pod_is_placed_for_real_where_whole_nodes_are_sent(serving: Serving) -> None:
    sent = [a_node(name, devices=2, annotations={"sent": "as it was"}) for name in ("node2", "node1")]
    answer = await serving.post("/filter", build_full_call(a_pod(), *sent))
    assert answer == EMPTY | {"Nodes": {"metadata": {}, "items": [sent[1]]}}
    pod = serving.cluster.get_pod_seen("default", "pod1")
    assert pod
    assert get_annotation(pod, ASSIGNED_NODE) == "node1"
    assert AttemptConcluded in {type(event) for event in serving.take_events()}
    assert await serving.bind(a_pod()) == ""


async def test_what_runs_counts_where_whole_nodes_are_sent(serving: Serving) -> None:
    both = [a_container(gpus=2, gpucores=100)]
    await serving.filter(a_pod("first", both))
    answer = await serving.post(
        "/filter", build_full_call(a_pod("second", both), a_node("node1", devices=2), a_node("stranger"))
    )
    assert answer == EMPTY | {"FailedNodes": {"node1": "2/2 CardInsufficientMemory", "stranger": "node unregistered"}}


async def test_a_pod_without_devices_gets_whole_nodes_back(serving: Serving) -> None:
    nodes = [a_node("a"), a_node("b")]
    answer = await serving.post("/filter", build_full_call(a_pod(containers=[a_container(gpus=0)]), *nodes))
    assert answer == EMPTY | {"Nodes": {"metadata": {}, "items": nodes}}


async def test_whole_nodes_are_judged_without_a_trace_where_that_is_asked_for(serve: Callable[..., Serving]) -> None:
    serving = serve(a_node("node1", devices=2), simulates_whole_nodes=True)
    serving.take_events()
    nodes = [a_node("elsewhere", devices=1), a_node("other", devices=1)]
    answer = await serving.post("/filter", build_full_call(a_pod(), *nodes))
    assert answer == EMPTY | {"Nodes": {"metadata": {}, "items": [nodes[0]]}}
    assert serving.take_events() == []
    assert serving.cluster.get_pod_seen("default", "pod1") is None


async def test_field_names_are_read_without_regard_to_case(serving: Serving) -> None:
    assert (await serving.post("/filter", {"pod": a_pod(), "nodenames": ["node1"]}))["NodeNames"] == ["node1"]


async def test_no_body_is_a_bad_request(serving: Serving) -> None:
    response = await serving.http.post("/filter")
    assert (response.status_code, response.text) == (400, "Please send a request body")


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"{", "the body is not JSON: "),
        (b'{"Pod": "\xff"}', "the body is not JSON: "),
        (b"[]", "the body is not a JSON object"),
        (b"{}", "extender args missing pod"),
        (b'{"Pod": null, "NodeNames": []}', "extender args missing pod"),
        (b'{"Pod": 3}', "Pod has no metadata"),
        (b'{"Pod": {"metadata": {"name": 3}}}', "Pod.metadata.name is not a string"),
        (b'{"Pod": {"metadata": {}}}', "Pod.metadata.name is empty"),
        # L4: a name becomes part of the path at which the API server is asked.
        (b'{"Pod": {"metadata": {"name": ".."}}}', "Pod.metadata.name '..' has a part that does not begin and end"),
        (b'{"Pod": {"metadata": {"name": "p/../q"}}}', "Pod.metadata.name 'p/../q' has '/', but RFC 1123 allows only"),
        (b'{"Pod": {"metadata": {"name": "p", "namespace": "."}}}', "Pod.metadata.namespace '.' has '.', but RFC 1123"),
        (b'{"Pod": {"metadata": {"name": "p", "annotations": 1}}}', "Pod.metadata.annotations is not a mapping"),
        (b'{"Pod": {"metadata": {"name": "p"}}, "NodeNames": "n"}', "NodeNames is not a list of strings"),
        (b'{"Pod": {"metadata": {"name": "p"}}, "NodeNames": [1]}', "NodeNames is not a list of strings"),
        (
            b'{"Pod": {"metadata": {"name": "p"}}, "Nodes": {"items": [1]}}',
            "Nodes.items has an item that is not a Node",
        ),
    ],
)
async def test_a_body_that_can_not_be_understood_is_answered_with_the_cause(
    serving: Serving, body: bytes, error: str
) -> None:
    response = await serving.http.post("/filter", content=body)
    assert response.status_code == 200
    assert response.json()["Error"].startswith(error)
    assert set(response.json()) == set(EMPTY)


@pytest.mark.parametrize("wrong", ["PodName", "PodNamespace", "Node"])
async def test_l4_a_bind_whose_names_are_no_names_is_refused_with_the_name(serving: Serving, wrong: str) -> None:
    binding = {"PodName": "pod1", "PodNamespace": "default", "PodUID": "u1", "Node": "node1"}
    answer = await serving.post("/bind", binding | {wrong: ".."})
    assert answer["Error"].startswith(f"{wrong} '..' has ")


@pytest.mark.parametrize("is_announced", [True, False])
async def test_a_body_that_is_too_long_is_refused_with_the_flag_that_allows_it(
    serve: Callable[..., Serving], is_announced: bool
) -> None:
    serving = serve(max_body_bytes=1000)

    async def iterate_parts() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b"x" * 100

    response = await serving.http.post("/filter", content=b"x" * 2000 if is_announced else iterate_parts())
    assert response.status_code == 413
    assert "--max-body-size" in response.text


async def test_an_unknown_path_says_which_there_are(serving: Serving) -> None:
    response = await serving.http.get("/filters")
    assert response.status_code == 404
    assert "POST /filter" in response.text


async def test_m12_a_disk_that_can_not_be_written_is_named_and_takes_no_readiness_away(serving: Serving) -> None:
    assert (await serving.http.get("/readyz")).json() == {"ready": True, "spool": "ok", "cluster": "ok"}
    serving.spool.problem = "spool /s can't be written: No space left on device"
    response = await serving.http.get("/readyz")
    assert response.status_code == 200
    assert response.json() == {"ready": True, "spool": serving.spool.problem, "cluster": "ok"}
    assert (await serving.filter(a_pod()))["NodeNames"] == ["node1"]


async def test_not_ready_says_what_is_not(serving: Serving) -> None:
    serving.problems["cluster"] = "the watch of pods is broken"
    response = await serving.http.get("/readyz")
    assert response.status_code == 503
    assert response.json() == {"ready": False, "spool": "ok", "cluster": "the watch of pods is broken"}
    assert (await serving.http.get("/healthz")).status_code == 200


async def test_metrics_count_decisions_and_reasons(serving: Serving) -> None:
    await serving.filter(a_pod())
    await serving.filter(a_pod("big", [a_container(gpumem=99999)]), ["node1", "node2"])
    text = (await serving.http.get("/metrics")).text
    assert 'schedulerlog_scheduler_decisions_total{result="placed"} 1.0' in text
    assert 'schedulerlog_scheduler_decisions_total{result="refused"} 1.0' in text
    assert 'schedulerlog_scheduler_devices_refused_total{reason="CardInsufficientMemory"} 4.0' in text
    assert "schedulerlog_scheduler_filter_seconds_count 2.0" in text


async def test_registrations_are_reported_when_they_change_and_only_then(serve: Callable[..., Serving]) -> None:
    serving = serve(a_node("node1"), a_node("cpu", annotations={"hami.io/node-nvidia-register": ""}))
    first = [event for event in serving.take_events() if isinstance(event, NodeRegistered)]
    assert {event.node: event.registered for event in first} == {"node1": True, "cpu": False}
    serving.edit(a_node("node1", annotations={"unrelated": "1"}))
    assert serving.take_events() == []
    serving.edit(a_node("node1", annotations={"hami.io/device-cordon": "GPU-node1-1"}))
    (cordoned,) = serving.take_events()
    assert isinstance(cordoned, NodeRegistered)
    assert cordoned.cordoned == ["GPU-node1-1"]
    serving.edit(a_node("node1", devices=3))
    (changed,) = serving.take_events()
    assert isinstance(changed, NodeRegistered)
    assert len(changed.uuid) == 3
    serving.edit()
    (deleted,) = serving.take_events()
    assert isinstance(deleted, NodeRegistered)
    assert (deleted.registered, deleted.cause) == (False, "the node is gone")


def sum_bookings(serving: Serving, pods: list[Json]) -> Mapping[str, Counter[str]]:
    """Sum what the pods' own annotations book, per device."""
    sums: dict[str, Counter[str]] = {}
    for requested in pods:
        pod = serving.cluster.get_pod_seen("default", requested["metadata"]["name"])
        for device in (get_annotation(pod, DEVICES_ALLOCATED) or "" if pod else "").replace(";", "").split(":"):
            if device:
                uuid, _, memory, cores = device.split(",")
                sums.setdefault(uuid, Counter()).update(memory=int(memory), cores=int(cores), slots=1)
    return sums


@pytest.mark.stress
@pytest.mark.parametrize("seed", range(count_examples(5)))
async def test_calls_at_the_same_time_never_give_one_device_away_twice(
    serve: Callable[..., Serving], seed: int
) -> None:
    draw = random.Random(seed)
    node_devices = [a_device(f"GPU-{device}", devmem=10_000, count=3) for device in range(4)]
    serving = serve(a_node("node1", devices=node_devices[:2]), a_node("node2", devices=node_devices[2:]))
    pods = [
        a_pod(
            f"pod{n}",
            [
                a_container(
                    gpus=draw.choice([1, 1, 2]), gpumem=draw.randrange(1000, 9000), gpucores=draw.randrange(0, 101)
                )
            ],
        )
        for n in range(24)
    ]

    async def call(mine: list[Json]) -> None:
        for pod in mine:
            answer = await serving.filter(pod, ["node1", "node2"])
            if answer["NodeNames"] and draw.random() < 0.5:
                await serving.bind(pod, answer["NodeNames"][0])

    await asyncio.gather(*(call(pods[start::8]) for start in range(8)))
    booking = sum_bookings(serving, pods)
    assert booking
    for uuid, sums in booking.items():
        assert sums["memory"] <= 10_000, uuid
        assert sums["cores"] <= 100, uuid
        assert sums["slots"] <= 3, uuid


VALUES: st.SearchStrategy[object] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["metadata", "name", "namespace", "uid", "annotations", "labels", "spec", "containers", "initContainers",
             "resources", "limits", "nvidia.com/gpu", "nvidia.com/gpumem", "status", "items", "nvidia.com/use-gpuuuid"]
        ) | st.text(max_size=4),
        inner,
        max_size=5,
    ),
    max_leaves=25,
)  # fmt: skip
BODIES = st.dictionaries(
    st.sampled_from(["Pod", "NodeNames", "Nodes", "PodName", "PodNamespace", "PodUID", "Node"]), VALUES, max_size=5
)
PODS = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {"name": st.text(min_size=1, max_size=4)}, optional={"annotations": VALUES, "uid": VALUES}
        )
    },
    optional={"spec": VALUES, "status": VALUES},
)


@settings(
    max_examples=count_examples(30), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    body=BODIES | st.fixed_dictionaries({"Pod": PODS, "NodeNames": st.just(["node1", "x"])}),
    path=st.sampled_from(["/filter", "/bind"]),
)
async def test_whatever_is_asked_gets_an_answer_of_the_protocol(serving: Serving, body: Json, path: str) -> None:
    serving.clock.advance(0.001)
    response = await serving.http.post(path, content=json.dumps(body).encode())
    assert response.status_code == httpx.codes.OK
    assert set(response.json()) == (set(EMPTY) if path == "/filter" else {"Error"})


async def test_a_decision_that_the_api_server_refuses_is_not_reserved_and_says_why(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> None:
        raise build_missing_error("pods", "pod1")

    containers = [a_container(gpus=2, gpucores=100)]
    monkeypatch.setattr(serving.cluster, "patch_pod", refuse)
    assert await serving.filter(a_pod("pod1", containers)) == EMPTY | {"Error": 'pods "pod1" not found'}
    last = serving.take_events()[-1]
    assert isinstance(last, AttemptConcluded)
    assert (last.chosen, last.error) == (None, 'pods "pod1" not found')
    monkeypatch.undo()
    assert (await serving.filter(a_pod("pod2", containers)))["NodeNames"] == ["node1"]


async def test_a_pod_that_held_devices_is_reported_as_gone_once_and_others_are_not(serving: Serving) -> None:
    nodes, plain = (
        [a_node("node1", devices=2)],
        a_pod("plain", [a_container(gpus=0)], uid="u2") | {"spec": {"nodeName": "node1"}},
    )
    serving.edit(*nodes, a_pod(uid="u1"), plain)
    await serving.filter(a_pod(uid="u1"))
    assert await serving.bind(a_pod(uid="u1")) == ""
    serving.take_events()
    serving.clock.advance(60)
    serving.edit(*nodes)
    serving.edit(*nodes)
    ref = PodRef(namespace="default", name="pod1", uid="u1")
    assert serving.take_events() == [
        PodObserved(
            cluster="default", pod=ref, observed_at=serving.clock(), phase="Running", node="node1", deleted=True
        )
    ]


async def test_a_pod_that_has_ended_is_reported_with_its_phase(serving: Serving) -> None:
    annotations = {ASSIGNED_NODE: "node1"}
    running = a_pod(annotations=annotations) | {"status": {"phase": "Running"}}
    running["spec"]["nodeName"] = "node1"
    serving.cluster._watcher.on_pod(running)
    serving.take_events()
    serving.cluster._watcher.on_pod(running | {"status": {"phase": "Failed"}})
    serving.cluster._watcher.on_pod_deleted("uid-pod1")
    written = [event for event in serving.take_events() if isinstance(event, PodObserved)]
    assert [(event.phase, event.node, event.deleted) for event in written] == [("Failed", "node1", False)]
