"""A state is in the spool before the first verdict that refers to it, once per change, and again within a day."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import generate_latest

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.events.attempt import Identity
from engine.fit.events.state_builder import Life
from engine.hami.annotations import MIG_ALLOCATIONS
from scheduler.cluster.cluster_api import PodVersion
from scheduler.metrics import Metrics
from scheduler.publish.node_states import LONGEST_AGE_HOURS, QUIET_SECONDS, NodeStates
from scheduler.publish.spool.spool import Spool, SpoolLimits
from scheduler.publish.spool_writer import SpoolWriter
from schemas.codec.records import decode
from schemas.events import AttemptEvent, DetailDropped, DevicesJudged, Event, NodeStateChanged
from schemas.json_types import Json
from schemas.topics import NODE_STATES
from tests.support.builders.kube_objects import a_container, a_device, a_node, a_pod
from tests.support.builders.nodes_to_judge import a_cluster, a_mig_device, a_running_pod
from tests.support.builders.nodes_to_judge import a_node as a_node_of
from tests.support.builders.spool_entries import Clock, build_detail
from tests.support.harness.scheduler_app import Serving
from tests.support.harness.states_in_memory import build_states
from tests.support.waiting import eventually_async

HOUR = 3600
EPOCH = 1_795_230_000_000_000


class Writing:
    """The states of one cluster, written into a spool."""

    def __init__(self, folder: Path, columns: ClusterColumns, epoch: int = EPOCH) -> None:
        self.problem: Callable[[], str] = str
        self.columns, self.clock, self.metrics = columns, Clock(), Metrics()
        self.spool = Spool(folder, clock=self.clock)
        event_writer = SpoolWriter(self.spool, self.clock, self.metrics)
        life = Life(Identity("default", "hami-scheduler"), epoch)
        self.states = NodeStates(life, columns, event_writer, self.clock, self.metrics, lambda: self.problem())

    def take_new(self) -> list[NodeStateChanged]:
        """Take the states that were written since the last call."""
        states = []
        while batch := self.spool.take_batch():
            for entry in batch.entries:
                assert entry.topic == NODE_STATES.name
                event = decode(entry.record.value, entry.record.headers)
                assert isinstance(event, NodeStateChanged), event
                states.append(event)
            self.spool.acknowledge(batch)
        return states

    def write_and_take(self) -> list[tuple[str, int]]:
        """Write the changed states, and return node and revision of each."""
        self.states.write_changed()
        return [(state.node, state.revision) for state in self.take_new()]


@pytest.fixture
def write(tmp_path: Path) -> Iterator[Callable[..., Writing]]:
    started: list[Writing] = []

    def start(columns: ClusterColumns, **how: Any) -> Writing:
        started.append(Writing(tmp_path / str(len(started)), columns, **how))
        return started[-1]

    yield start
    for writing in started:
        writing.spool.close()


def test_a_state_has_all_devices_and_what_is_in_use_of_them() -> None:
    gpus = [a_device("GPU-0", index=4, numa=1), a_device("GPU-1", index=5, health=False, type="NVIDIA L4", count=7)]
    columns = a_cluster(a_node("node1", gpus, {"hami.io/device-cordon": "GPU-0"}))
    columns.apply_pod(a_running_pod("GPU-1,NVIDIA,3000,30:GPU-1,NVIDIA,500,5:;", "node1"))
    (state,) = build_states(columns)
    assert [
        (kind.model, kind.vendor, kind.mode, kind.memory_mib, kind.cores_percent, kind.slots) for kind in state.kinds
    ] == [
        ("NVIDIA A40", "NVIDIA", "hami-core", 45912, 100, 10),
        ("NVIDIA L4", "NVIDIA", "hami-core", 45912, 100, 7),
    ]
    assert (state.uuid, state.kind.tolist(), state.index.tolist()) == (["GPU-0", "GPU-1"], [0, 1], [4, 5])
    assert (state.numa.tolist(), state.healthy, state.cordoned) == ([1, 0], [True, False], [True, False])
    assert state.memory_used_mib.tolist() == [0, 3500]
    assert (state.cores_used_percent.tolist(), state.slots_used.tolist()) == ([0, 35], [0, 2])
    assert (state.mig, state.pair_scores.tolist()) == ([], [])


def test_a_number_of_1_is_no_flag() -> None:
    (state,) = build_states(a_cluster(a_node("node1", [a_device("GPU-0", index=1, numa=1)])))
    assert (state.index.tolist(), state.numa.tolist(), state.healthy) == ([1], [1], [True])


def test_a_state_has_the_instances_on_a_mig_device_and_how_many_are_not_known() -> None:
    columns = a_cluster(a_node_of("node1", [a_mig_device("GPU-0"), a_mig_device("GPU-1"), a_mig_device("GPU-2")]))
    instance = (
        '[{"containerIndex": 0, "deviceIndex": 0, "gpuUUID": "GPU-1", "profile": "3g.20gb", '
        '"placement": {"start": 4, "size": 4}}]'
    )
    pod = a_running_pod("GPU-1,NVIDIA,19968,42:;", "node1", "uid-1", annotations={MIG_ALLOCATIONS: instance})
    columns.apply_pod(pod)
    columns.apply_pod(a_running_pod("GPU-2,NVIDIA,4864,14:;", "node1", "uid-2"))
    (state,) = build_states(columns)
    instances = [(use.device, [(span.start, span.size) for span in use.spans], use.unknown) for use in state.mig]
    assert instances == [(1, [(4, 4)], 0), (2, [], 1)]
    assert [profile.name for profile in state.kinds[0].mig_profiles] == ["1g.5gb", "3g.20gb", "7g.40gb"]


def test_a_state_has_the_score_of_every_pair() -> None:
    scores = '[{"uuid": "GPU-0", "score": {"GPU-1": 30}}, {"uuid": "GPU-1", "score": {"GPU-0": 20}}]'
    gpus = [a_device("GPU-0"), a_device("GPU-1")]
    (state,) = build_states(a_cluster(a_node("node1", gpus, {"hami.io/node-nvidia-score": scores})))
    assert state.pair_scores.tolist() == [0, 30, 20, 0]


def test_only_what_has_changed_is_written(write: Callable[..., Writing]) -> None:
    writing = write(a_cluster(a_node("node1"), a_node("node2")))
    assert writing.write_and_take() == [("node1", 1), ("node2", 1)]
    assert writing.write_and_take() == []
    writing.columns.apply_pod(a_running_pod("GPU-node2-0,NVIDIA,1,1:;", "node2"))
    assert writing.write_and_take() == [("node2", 2)]
    assert "schedulerlog_scheduler_node_states_total 3.0" in export_text(writing.metrics)


def export_text(metrics: Metrics) -> str:
    return generate_latest(metrics.registry).decode()


def test_a_node_that_is_gone_has_a_last_state_without_devices(write: Callable[..., Writing]) -> None:
    writing = write(a_cluster(a_node("node1")))
    writing.write_and_take()
    writing.columns.delete_node("node1")
    writing.states.write_changed()
    (last,) = writing.take_new()
    assert (last.node, last.revision, last.uuid, last.kinds) == ("node1", 2, [], [])
    assert writing.write_and_take() == []
    writing.columns.apply_node(a_node("node1"))
    assert writing.write_and_take() == [("node1", 3)]


def test_a_node_that_is_back_before_its_last_state_was_written_has_none(write: Callable[..., Writing]) -> None:
    writing = write(a_cluster(a_node("node1")))
    writing.write_and_take()
    writing.columns.delete_node("node1")
    writing.columns.apply_node(a_node("node1", devices=1))
    writing.states.write_changed()
    (state,) = writing.take_new()
    assert (state.revision, len(state.uuid)) == (3, 1)


def test_a_node_that_was_back_for_a_moment_only_has_a_last_state_all_the_same(write: Callable[..., Writing]) -> None:
    writing = write(a_cluster(a_node("node1"), a_node("node2")))
    writing.write_and_take()
    writing.columns.delete_node("node1")
    writing.columns.apply_node(a_node("node1", devices=1))
    writing.clock.advance(20 * HOUR)
    # Of two nodes one is due by now: the other one.
    writing.columns.revisions.record_written(writing.columns.look_up_ids(["node2"]), 1)
    writing.states.write_again()
    assert [state.node for state in writing.take_new()] == ["node2"]
    writing.columns.delete_node("node1")
    writing.states.write_changed()
    (last,) = writing.take_new()
    assert (last.node, last.revision, last.uuid) == ("node1", 2, [])


def test_every_state_is_written_again_within_a_day_a_few_at_a_time(write: Callable[..., Writing]) -> None:
    names = [f"node{number}" for number in range(48)]
    writing = write(a_cluster(*(a_node(name, devices=1) for name in names)))
    writing.states.write_changed()
    first = {state.node: state for state in writing.take_new()}
    again: list[NodeStateChanged] = []
    for _ in range(24 * 4):
        writing.clock.advance(HOUR / 4)
        writing.states.write_again()
        states = writing.take_new()
        assert len(states) <= 2
        again += states
    assert {state.node for state in again} == set(names)
    for state in again:
        assert state.id == first[state.node].id
        assert state.observed_at > first[state.node].observed_at
    # All that a state says but the time is the same.
    assert again[0].uuid == first[again[0].node].uuid


def test_a_state_that_is_written_for_a_change_is_not_soon_written_again(write: Callable[..., Writing]) -> None:
    writing = write(a_cluster(a_node("node1"), a_node("node2")))
    writing.write_and_take()
    writing.clock.advance(5 * HOUR)
    writing.columns.apply_pod(a_running_pod("GPU-node1-0,NVIDIA,1,1:;", "node1"))
    assert writing.write_and_take() == [("node1", 2)]
    writing.clock.advance(5 * HOUR)
    writing.states.write_again()
    assert [(state.node, state.revision) for state in writing.take_new()] == [("node2", 1)]


def test_after_a_long_time_without_deciding_old_states_are_written_before_they_are_referred_to(
    write: Callable[..., Writing],
) -> None:
    writing = write(a_cluster(a_node("node1")))
    writing.write_and_take()
    writing.clock.advance(LONGEST_AGE_HOURS * HOUR + 1)
    assert writing.write_and_take() == [("node1", 1)]


def test_a_clock_that_is_set_back_writes_nothing_again(write: Callable[..., Writing]) -> None:
    writing = write(a_cluster(a_node("node1")))
    writing.write_and_take()
    writing.clock.advance(-30 * HOUR)
    writing.states.write_again()
    assert writing.take_new() == []


def test_states_that_a_full_spool_may_have_lost_are_written_again_once_it_loses_nothing_more(
    write: Callable[..., Writing],
) -> None:
    writing = write(a_cluster(a_node("node1")))
    writing.write_and_take()
    for lost in (1, 2):
        writing.spool.counts.dropped_verdicts = lost
        writing.clock.advance(QUIET_SECONDS - 1)
        writing.states.write_lost()
        assert writing.write_and_take() == []
    writing.clock.advance(QUIET_SECONDS)
    writing.states.write_lost()
    assert writing.write_and_take() == [("node1", 1)]
    writing.states.write_lost()
    assert writing.write_and_take() == []


def test_a_full_spool_gives_up_device_rows_and_keeps_the_states_that_they_refer_to(tmp_path: Path) -> None:
    limits = SpoolLimits(max_bytes=30_000)
    with contextlib.closing(Spool(tmp_path / "full", limits, Clock())) as spool:
        columns, clock, metrics = a_cluster(a_node("node1", devices=1)), Clock(), Metrics()
        NodeStates(
            Life(Identity("default", "s"), EPOCH), columns, SpoolWriter(spool, clock, metrics), clock, metrics
        ).write_changed()
        for part in range(20):
            spool.append([build_detail(part=part, devices=1_000)])
        events = []
        while batch := spool.take_batch():
            events += [decode(entry.record.value, entry.record.headers) for entry in batch.entries]
            spool.acknowledge(batch)
    assert isinstance(events[0], NodeStateChanged)
    given_up = [event.device_records for event in events if isinstance(event, DetailDropped)]
    judged = [event for event in events if isinstance(event, DevicesJudged)]
    assert given_up
    assert sum(given_up) + len(judged) == 20


async def test_the_task_writes_what_no_attempt_has_written_while_this_scheduler_decides(
    write: Callable[..., Writing], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduler.publish.node_states.PAUSE_SECONDS", 0.001)
    names = [f"node{number}" for number in range(450)]
    writing = write(a_cluster(*(a_node(name, devices=1) for name in names)))
    problems: list[str] = []
    states: list[NodeStateChanged] = []

    def get_problem() -> str:
        problems.append("" if len(problems) > 3 else "another scheduler leads")
        states.extend(writing.take_new())
        assert not states or "" in problems[:-1]
        return problems[-1]

    writing.problem = get_problem
    task = asyncio.create_task(writing.states.run())
    await eventually_async(lambda: len(states) >= len(names))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert sorted(state.node for state in states) == sorted(names)


def iterate_references(events: list[Event]) -> Iterator[tuple[str, int, int]]:
    """Iterate over (node, epoch, revision) of the verdicts, after checking that the state of each was written before
    it.
    """
    written: dict[tuple[str, int, int], NodeStateChanged] = {}
    for event in events:
        if isinstance(event, NodeStateChanged):
            key = (event.node, event.epoch, event.revision)
            assert key not in written, "a revision was used twice"
            written[key] = event
        if isinstance(event, DevicesJudged):
            for node, revision in zip(event.nodes, event.revision.tolist(), strict=True):
                assert (node, event.epoch, revision) in written
                yield node, event.epoch, revision


@pytest.fixture
async def serving(tmp_path: Path) -> Any:
    started = Serving(tmp_path / "serving", a_node("node1", devices=2), a_node("node2", devices=2))
    yield started
    await started.close()


async def test_the_states_of_an_attempt_are_in_the_spool_before_its_verdicts(serving: Serving) -> None:
    for number in range(3):
        await serving.filter(a_pod(f"pod{number}"), ["node1", "node2"])
    references = list(iterate_references(serving.take_events()))
    # Each attempt changes the node that it chooses, and no other.
    assert [revision for node, _, revision in references if node == "node2"] == [1, 1, 1]
    assert [revision for node, _, revision in references if node == "node1"] == [1, 2, 3]


async def test_an_attempt_that_decides_while_another_one_waits_for_its_patch_refers_to_states_before_it(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch, waits, go_on = serving.cluster.patch_pod, asyncio.Event(), asyncio.Event()

    async def patch_slowly(pod: PodVersion, annotations: Mapping[str, str], labels: Any) -> Any:
        if pod.key.name == "first":
            waits.set()
            await go_on.wait()
        return await patch(pod, dict(annotations), labels)

    monkeypatch.setattr(serving.cluster, "patch_pod", patch_slowly)
    first = asyncio.create_task(serving.filter(a_pod("first"), ["node1", "node2"]))
    await waits.wait()
    await serving.filter(a_pod("second"), ["node1", "node2"])
    go_on.set()
    await first
    events = serving.take_events()
    assert [revision for node, _, revision in iterate_references(events) if node == "node1"] == [2, 1]
    in_use = {event.revision: event.slots_used.tolist() for event in events
              if isinstance(event, NodeStateChanged) and event.node == "node1"}  # fmt: skip
    # The second attempt found the devices that the first one had reserved; the first one's verdicts are about before.
    assert [sum(slots) for slots in in_use.values()] == [0, 1]
    pods = [event.pod.name for event in events if isinstance(event, AttemptEvent)]
    assert list(dict.fromkeys(pods)) == ["second", "first"]


async def test_what_the_pod_itself_holds_is_in_no_state_that_its_verdicts_refer_to(serving: Serving) -> None:
    pod = a_pod(containers=[a_container(gpus=2, gpucores=100)])
    for _ in range(2):
        assert (await serving.filter(pod))["NodeNames"] == ["node1"]
    events = serving.take_events()
    list(iterate_references(events))
    states = [event for event in events if isinstance(event, NodeStateChanged) and event.node == "node1"]
    assert [state.slots_used.tolist() for state in states] == [[0, 0], [0, 0]]


async def test_an_attempt_that_can_not_be_judged_leaves_the_pod_what_it_holds(serving: Serving) -> None:
    containers = [a_container(gpus=2, gpucores=100)]
    await serving.filter(a_pod("first", containers))
    broken = a_pod("first", containers, annotations={"hami.io/device-scoring-weights": "x"})
    assert "scoring-weights" in (await serving.filter(broken))["Error"]
    assert (await serving.filter(a_pod("second", containers)))["NodeNames"] is None


async def test_a_scheduler_that_starts_again_writes_all_states_under_an_epoch_of_its_own(tmp_path: Path) -> None:
    nodes: list[Json] = [a_node("node1"), a_node("node2")]
    epochs = []
    for number in range(2):
        serving = Serving(
            tmp_path / str(number), *nodes, started_at=datetime.fromtimestamp(EPOCH / 1e6 + number).astimezone()
        )
        await serving.filter(a_pod())
        events = serving.take_events()
        epochs.append({epoch for _, epoch, _ in iterate_references(events)})
        assert {event.node for event in events if isinstance(event, NodeStateChanged)} == {"node1", "node2"}
        await serving.close()
    assert epochs == [{EPOCH}, {EPOCH + 1_000_000}]
