"""The events of our own scheduler are enough for the audits to find a placement that can't be right."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.events.attempt import Identity
from engine.fit.judge.decision import SchedulingPolicy
from engine.hami.annotations import HANDSHAKE
from engine.summaries.fold import summarize
from engine.summaries.placement_audit import to_placed
from engine.summaries.placement_auditor import PlacementAuditor
from scheduler.answering.extender_protocol import FilterRequest
from scheduler.answering.records import Records
from scheduler.answering.service import Scheduler
from scheduler.bind.bind_request import BindRequest
from scheduler.bind.binder import Binder
from scheduler.bind.node_locks import LockPolicy
from scheduler.cluster.claims import Claims
from scheduler.cluster.file_cluster import SimulatedCluster
from scheduler.metrics import Metrics
from scheduler.publish.node_checks import CheckPolicy, NodeChecks
from scheduler.publish.observer import Observer
from scheduler.publish.spool.spool import Spool
from scheduler.publish.spool_writer import SpoolWriter
from schemas.codec.records import decode
from schemas.events import AttemptEvent, FindingReported, NodeChecked, NodeRegistered, PodObserved
from schemas.json_types import Json
from tests.support.builders.kube_objects import a_device, a_node, a_pod
from tests.support.builders.spool_entries import Clock
from tests.support.harness.scheduler_app import build_manifest


class Audited:
    """A scheduler with checks of its nodes, and what the audits find in all that it has published."""

    def __init__(self, folder: Path) -> None:
        self.clock, metrics, columns, claims = Clock(), Metrics(), ClusterColumns(), Claims()
        self.spool = Spool(folder, clock=self.clock)
        event_writer = SpoolWriter(self.spool, self.clock, metrics)
        self.checks = NodeChecks(Identity("default", "hami"), CheckPolicy(), columns, event_writer, self.clock, metrics)
        self.cluster = SimulatedCluster(
            Observer(Identity("default", "hami"), columns, claims, event_writer, self.clock, self.checks)
        )
        binder = Binder(self.cluster, LockPolicy(), self.clock)
        parts = (columns, self.cluster, claims, binder, Records(event_writer, metrics), self.clock)
        self.scheduler = Scheduler(Identity("default", "hami"), SchedulingPolicy(), *parts)

    def edit(self, *objects: Json) -> None:
        self.clock.advance(1)
        self.cluster.apply(build_manifest(*objects))

    async def filter(self, pod: Json) -> None:
        self.clock.advance(1)
        await self.scheduler.filter(FilterRequest(pod, ("node1",)))

    async def bind(self, pod: Json) -> None:
        self.clock.advance(1)
        metadata = pod["metadata"]
        await self.scheduler.bind(BindRequest(metadata["namespace"], metadata["name"], metadata["uid"], "node1"))

    def find_findings(self) -> list[FindingReported]:
        judge, attempt = PlacementAuditor(), list[AttemptEvent]()
        while batch := self.spool.take_batch():
            for event in (decode(entry.record.value, entry.record.headers) for entry in batch.entries):
                match event:
                    case NodeChecked() | NodeRegistered():
                        judge.see_node(event)
                    case PodObserved():
                        judge.see_pod(event)
                    case AttemptEvent():
                        attempt.append(event)
            self.spool.acknowledge(batch)
        summary = summarize(attempt)
        assert summary.bind
        assert summary.bind.bound
        bind: Any = summary.bind
        judge.see_bind(to_placed(summary, bind.node, bind.ended_at, summary.picked_devices, summary.requests))
        return judge.settle(self.clock() + timedelta(minutes=1))


@pytest.fixture
def audited(tmp_path: Path) -> Iterator[Audited]:
    audited_scheduler = Audited(tmp_path)
    yield audited_scheduler
    audited_scheduler.spool.close()


def build_handshake(reported_at: str) -> dict[str, str]:
    return {HANDSHAKE: f"Reported {reported_at} +0000 UTC"}


async def test_a_placement_that_is_right_is_no_finding(audited: Audited) -> None:
    audited.edit(a_node("node1", devices=2, annotations=build_handshake("2026-11-21 02:59:50")))
    await audited.filter(a_pod())
    await audited.bind(a_pod())
    assert audited.find_findings() == []


async def test_a_node_that_fell_silent_and_was_chosen_is_found_with_the_age_of_its_handshake(audited: Audited) -> None:
    audited.edit(a_node("node1", devices=2, annotations=build_handshake("2026-11-21 02:59:50")))
    audited.clock.advance(600)
    await audited.checks.check()
    await audited.filter(a_pod())
    await audited.bind(a_pod())
    (finding,) = audited.find_findings()
    # Shaken ten seconds before three, noticed at 03:10:01, chosen at 03:10:02.
    assert (finding.finding, finding.node) == ("StaleHandshake", "node1")
    assert finding.numbers == {"handshake_age_seconds": 612, "wrong_for_seconds": 1}


async def test_a_device_that_is_registered_with_less_memory_before_the_bind_is_found(audited: Audited) -> None:
    audited.edit(a_node("node1", [a_device("GPU-1", devmem=46_000)]))
    await audited.filter(a_pod())
    audited.edit(a_node("node1", [a_device("GPU-1", devmem=23_000)]))
    await audited.bind(a_pod())
    (finding,) = audited.find_findings()
    assert (finding.finding, finding.device) == ("MemoryChanged", "GPU-1")
    assert finding.numbers == {"memory_judged_mib": 46_000, "memory_registered_mib": 23_000}
