"""Reports of nodes about their devices: every spelling of the handshake, and what is published of what is wrong."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.events.attempt import Identity
from engine.hami.annotations import HANDSHAKE, REGISTER
from engine.hami.node_checks import check_registrations, list_vendor_registrations
from engine.hami.vendors import ONLY_NVIDIA
from scheduler.cluster.claims import Claims
from scheduler.metrics import Metrics
from scheduler.publish.node_checks import CheckPolicy, NodeChecks
from scheduler.publish.observer import Observer
from scheduler.publish.spool.spool import Spool
from scheduler.publish.spool_writer import SpoolWriter
from schemas.codec.records import decode
from schemas.events import NodeChecked
from schemas.json_types import Json
from tests.support.builders.kube_objects import a_node
from tests.support.builders.spool_entries import Clock


def list_codes(node: Json, now: str, limit_seconds: int = 300, cause: str = "") -> list[str]:
    registrations = list_vendor_registrations(node, ONLY_NVIDIA, UTC)
    moment = datetime.fromisoformat(now).replace(tzinfo=UTC)
    return [
        problem.code for problem in check_registrations(registrations, cause, moment, timedelta(seconds=limit_seconds))
    ]


def a_gpu_node(handshake: str | None = None, register: str | None = "[]", allocatable: Any = "10") -> Json:
    content = {HANDSHAKE: handshake, REGISTER: register}
    annotations = {key: value for key, value in content.items() if value is not None}
    status = {"allocatable": {"nvidia.com/gpu": allocatable}} if allocatable else {}
    return {"metadata": {"name": "node1", "annotations": annotations}, "status": status}


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ("2026-01-02 00:05:00", []),
        ("2026-01-02 00:05:01", ["HandshakeTooOld"]),
        # A clock that goes wrong is no handshake that is too old.
        ("2026-01-01 00:00:00", []),
    ],
)
@pytest.mark.parametrize("text", ["Reported 2026-01-02 00:00:00 +0000 UTC", "Requesting_2026-01-02 00:00:00"])
def test_a_handshake_is_too_old_after_five_minutes(text: str, now: str, expected: list[str]) -> None:
    assert list_codes(a_gpu_node(text), now) == expected


def test_the_limit_can_be_another_or_none() -> None:
    node = a_gpu_node("Reported 2026-01-02 00:00:00 +0000 UTC")
    assert list_codes(node, "2026-01-02 00:00:31", limit_seconds=30) == ["HandshakeTooOld"]
    assert list_codes(node, "2026-01-03 00:00:00", limit_seconds=0) == []


@pytest.mark.parametrize("register", [None, ""])
def test_a_node_with_gpus_to_give_that_does_not_list_them_misses_its_registration(register: str | None) -> None:
    assert list_codes(a_gpu_node(register=register), "2026-01-02") == ["RegistrationMissing"]


def test_a_node_that_shook_hands_and_does_not_list_its_gpus_misses_its_registration() -> None:
    node = a_gpu_node("Requesting_2026-01-02 00:00:00", None, allocatable=None)
    assert list_codes(node, "2026-01-02") == ["RegistrationMissing"]


def test_a_node_without_gpus_is_left_alone() -> None:
    assert list_codes({"metadata": {"name": "cpu"}, "status": {"allocatable": {"cpu": "8"}}}, "2026-01-02") == []


def test_a_handshake_that_can_not_be_read_is_reported_as_such() -> None:
    assert list_codes(a_gpu_node("hello"), "2026-01-02") == ["HandshakeUnreadable"]


def test_a_plugin_that_never_answers_is_distinguished_from_one_that_stopped() -> None:
    now, limit = datetime(2026, 1, 3, tzinfo=UTC), timedelta(seconds=300)
    written = [
        next(check_registrations(list_vendor_registrations(node, ONLY_NVIDIA, UTC), "", now, limit)).message
        for node in (
            a_gpu_node("Requesting_2026-01-02 00:00:00"),
            a_gpu_node("Requesting_2026-01-02 00:00:00", allocatable=None),
            a_gpu_node("Reported 2026-01-02 00:00:00 +0000 UTC"),
        )
    ]
    assert [text.split(": ", 1)[1].split(",")[0] for text in written] == [
        "10 slots of devices are allocatable",
        "the device plugin does not answer",
        "the device plugin has stopped reporting",
    ]
    assert all("is 86400 s old (limit 300 s)" in text for text in written)


class Checked:
    """A scheduler's checks of its nodes, and what it published about them."""

    def __init__(self, folder: Path) -> None:
        self.clock, self.metrics, columns = Clock(), Metrics(), ClusterColumns()
        self.spool = Spool(folder, clock=self.clock)
        event_writer = SpoolWriter(self.spool, self.clock, self.metrics)
        self.checks = NodeChecks(
            Identity("default", "hami-scheduler"), CheckPolicy(), columns, event_writer, self.clock, self.metrics
        )
        self.observer = Observer(
            Identity("default", "hami-scheduler"), columns, Claims(), event_writer, self.clock, self.checks
        )

    def take_events(self) -> list[tuple[str, list[str]]]:
        """Take (node, codes) of each event since the last call."""
        checks = []
        while batch := self.spool.take_batch():
            events = [decode(entry.record.value, entry.record.headers) for entry in batch.entries]
            checks += [
                (event.node, [p.code for p in event.problems]) for event in events if isinstance(event, NodeChecked)
            ]
            self.spool.acknowledge(batch)
        return checks

    def count(self, problem: str) -> float | None:
        return self.metrics.registry.get_sample_value("schedulerlog_scheduler_nodes_with_problem", {"problem": problem})


@pytest.fixture
def checked(tmp_path: Path) -> Iterator[Checked]:
    checked = Checked(tmp_path)
    yield checked
    checked.spool.close()


def build_handshake(clock: Clock) -> dict[str, str]:
    return {HANDSHAKE: f"Reported {clock():%Y-%m-%d %H:%M:%S} +0000 UTC"}


async def test_a_node_that_falls_silent_is_reported_once_and_again_when_it_is_back(checked: Checked) -> None:
    checked.observer.on_node(a_node("node1", annotations=build_handshake(checked.clock)))
    await checked.checks.check()
    assert (checked.take_events(), checked.count("HandshakeTooOld")) == ([], 0)
    checked.clock.advance(310)
    for _ in range(3):
        await checked.checks.check()
        checked.clock.advance(15)
    assert (checked.take_events(), checked.count("HandshakeTooOld")) == ([("node1", ["HandshakeTooOld"])], 1)
    assert checked.metrics.registry.get_sample_value("schedulerlog_scheduler_handshake_oldest_age_seconds") == 340
    checked.observer.on_node(a_node("node1", annotations=build_handshake(checked.clock)))
    await checked.checks.check()
    assert (checked.take_events(), checked.count("HandshakeTooOld")) == ([("node1", [])], 0)


async def test_what_is_wrong_with_a_handshake_is_reported_with_its_numbers(checked: Checked) -> None:
    checked.observer.on_node(a_gpu_node("Requesting_0001-01-02 00:00:00"))
    checked.observer.on_node_deleted("node1")
    checked.observer.on_node(a_gpu_node("Reported 2026-01-02 00:00:00 +0000 UTC", allocatable="8"))
    batch = checked.spool.take_batch()
    assert batch
    written = [decode(entry.record.value, entry.record.headers) for entry in batch.entries]
    first, second = [event.problems[0] for event in written if isinstance(event, NodeChecked) and event.problems]
    # The contract knows no time before 1970.
    assert (first.handshake_at, first.is_asked) == (None, True)
    assert (second.handshake, second.is_asked) == ("Reported 2026-01-02 00:00:00 +0000 UTC", False)
    assert (second.handshake_at, second.allocatable) == (datetime(2026, 1, 2, tzinfo=UTC), 8)


async def test_a_registration_that_breaks_is_reported_at_once(checked: Checked) -> None:
    checked.observer.on_node(a_node("node1", annotations={REGISTER: "[{"}))
    assert checked.take_events() == [("node1", ["RegistrationUnusable"])]
    await checked.checks.check()
    assert checked.count("RegistrationUnusable") == 1


async def test_a_node_that_is_gone_has_no_problems(checked: Checked) -> None:
    checked.observer.on_node(a_gpu_node(register=None))
    checked.observer.on_node_deleted("node1")
    await checked.checks.check()
    assert checked.take_events() == [("node1", ["RegistrationMissing"]), ("node1", [])]
    assert checked.count("RegistrationMissing") == 0
