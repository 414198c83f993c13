"""Intervals of pods on nodes, from binds and sightings with and without UIDs: each case is drawn by hand."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from engine.summaries.pod_facts import DELETED, BindFact, Fact, PodSighting
from engine.summaries.pod_timelines import derive_intervals, rank_by_start
from schemas.events import DeviceAllocation

START = datetime(2026, 11, 24, 8, tzinfo=UTC)
Row = tuple[str, str, int, int | None]
"""UID, node, start and end of an interval in seconds."""


def to_time(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def hold(*uuids: str) -> tuple[DeviceAllocation, ...]:
    return tuple(DeviceAllocation(container="main", uuid=uuid) for uuid in uuids)


def bind(seconds: float, node: str = "n1", uid: str = "", *, devices: Sequence[str] = (), version: int = 1) -> BindFact:
    attempt = f"a{seconds}"
    return BindFact(
        attempt, "s", to_time(seconds), uid, node, to_time(seconds), bound=True, version=version, held=hold(*devices)
    )


def see(state: str, seconds: float, node: str = "n1", uid: str = "", scheduled: float | None = None) -> PodSighting:
    return PodSighting(uid, node, state, to_time(seconds), None if scheduled is None else to_time(scheduled))


def list_rows(*facts: Fact) -> list[Row]:
    return [
        (part.uid, part.node, (part.started_at - START).seconds, (part.end[0] - START).seconds if part.end else None)
        for part in sorted(derive_intervals(facts), key=rank_by_start)
    ]


@pytest.mark.parametrize(
    ("facts", "rows"),
    [
        ([bind(10, uid="u"), see("Running", 15, uid="u"), see("Succeeded", 90, uid="u")], [("u", "n1", 10, 90)]),
        # Seen before its bind is reported: the bind is its start.
        ([see("Running", 15, uid="u"), bind(10, uid="u")], [("u", "n1", 10, None)]),
        # Two pods of one name, one after the other.
        (
            [bind(10, uid="u"), see(DELETED, 50, uid="u"), bind(60, uid="v")],
            [("u", "n1", 10, 50), ("v", "n1", 60, None)],
        ),
        # A bind without a UID is that of the pod that is seen on its node up to ten minutes later …
        ([bind(10), see("Running", 610, uid="u")], [("u", "n1", 10, None)]),
        ([bind(10), see("Running", 611, uid="u")], [("", "n1", 10, None), ("u", "n1", 611, None)]),
        # … and of none on another node, nor of one that had ended.
        ([bind(10, "n2"), see("Running", 20, uid="u")], [("", "n2", 10, None), ("u", "n1", 20, None)]),
        (
            [see("Running", 5, uid="u"), see("Failed", 10, uid="u"), bind(10)],
            [("u", "n1", 5, 10), ("", "n1", 10, None)],
        ),
        ([see("Running", 5, uid="u"), see("Failed", 11, uid="u"), bind(10)], [("u", "n1", 10, 11)]),
        # A sighting without a UID is that of the pod that was there.
        ([bind(10, uid="u"), see("Failed", 20)], [("u", "n1", 10, 20)]),
        ([bind(10, uid="u"), see("Failed", 20, "")], [("u", "n1", 10, 20)]),
        ([bind(10, uid="u"), see("Running", 5)], [("", "n1", 5, None), ("u", "n1", 10, None)]),
        ([bind(10, uid="u"), see("Running", 20, "n2")], [("u", "n1", 10, None), ("", "n2", 20, None)]),
        # Facts without UIDs only: an end ends, and the next bind begins.
        ([bind(10), see("Running", 12), see("Failed", 20), bind(30)], [("", "n1", 10, 20), ("", "n1", 30, None)]),
        ([bind(10), bind(30)], [("", "n1", 10, None), ("", "n1", 30, None)]),
        ([see("Running", 10), bind(12)], [("", "n1", 12, None)]),
        ([see("Failed", 10, "")], []),
        ([bind(10), see("Failed", 20), see(DELETED, 25)], [("", "n1", 10, 20)]),
        ([bind(10), see("Failed", 20), see("Running", 25)], [("", "n1", 10, 20), ("", "n1", 25, None)]),
    ],
)  # fmt: skip
def test_facts_become_intervals(facts: list[Fact], rows: list[Row]) -> None:
    assert list_rows(*facts) == rows
    assert list_rows(*reversed(facts)) == rows


@pytest.mark.parametrize(("bound_again", "count"), [(22.0, 1), (22.5, 2)])
def test_a_uid_that_is_bound_again_two_seconds_after_its_end_is_another_pod(bound_again: float, count: int) -> None:
    parts = derive_intervals([bind(10, uid="u"), see("Failed", 20, uid="u"), bind(bound_again, uid="u")])
    assert len(parts) == count
    assert sorted(bool(part.generation) for part in parts) == [False, True][:count]
    assert len({part.derive_id("default", "lab/p") for part in parts}) == count


def test_an_end_before_any_node_belongs_to_no_interval_and_is_kept() -> None:
    [part] = derive_intervals([see(DELETED, 5, "", "u"), bind(10, uid="u")])
    assert part.end is None
    assert [sight.time for sight in part.earlier_ends] == [to_time(5)]
    assert part.generation == ""


def test_the_end_is_the_earliest_with_the_phase_before_the_deletion() -> None:
    [part] = derive_intervals([bind(10, uid="u"), see(DELETED, 40, uid="u"), see("Succeeded", 50, uid="u")])
    assert part.end == (to_time(40), "Succeeded")


def test_the_bind_that_names_devices_is_used() -> None:
    binds = [bind(10, uid="u", devices=["GPU-1"], version=1), bind(11, uid="u", version=2)]
    [part] = derive_intervals(binds)
    assert part.bind == binds[0]
    assert [device.uuid for device in part.held] == ["GPU-1"]


def test_devices_that_the_pod_names_stand_in_for_those_of_the_bind() -> None:
    seen = PodSighting("u", "n1", "Running", to_time(20), held=hold("GPU-2"))
    elsewhere = PodSighting("u", "", "Running", to_time(30), held=hold("a", "b"))
    [part] = derive_intervals([bind(10, uid="u"), seen, elsewhere])
    assert [device.uuid for device in part.held] == ["GPU-2"]


def test_start_and_phase_are_those_of_the_sightings_where_no_bind_is_reported() -> None:
    facts = [
        see("Pending", 12, uid="u", scheduled=9),
        see("Running", 15, uid="u", scheduled=8),
        see(DELETED, 30, uid="u"),
    ]
    [part] = derive_intervals(facts)
    assert (part.bound_at, part.started_at, part.phase) == (to_time(8), to_time(8), "Running")
    [unscheduled] = derive_intervals([see("Running", 15, uid="u"), see("Pending", 12, uid="u")])
    assert (unscheduled.bound_at, unscheduled.started_at, unscheduled.phase) == (None, to_time(12), "Running")
    assert unscheduled.running_at is None


def test_the_first_container_began_at_the_earliest_time_that_was_seen() -> None:
    sights = [PodSighting("u", "n1", "Running", to_time(20), running_at=to_time(second)) for second in (14, 13)]
    [part] = derive_intervals(sights)
    assert part.running_at == to_time(13)


def test_a_uid_names_the_placement_whatever_its_bind() -> None:
    late: list[Fact] = [see("Running", 15, uid="u"), bind(10, uid="u")]
    ids = {part.derive_id("default", "lab/p") for facts in (late, late[:1]) for part in derive_intervals(facts)}
    assert len(ids) == 1
    [part] = derive_intervals(late)
    assert part.derive_id("default", "lab/q") in ids
    assert part.derive_id("other", "lab/p") not in ids


def test_without_a_uid_name_and_bind_identify_the_placement() -> None:
    [part] = derive_intervals([bind(10)])
    [later] = derive_intervals([bind(11)])
    ids = [part.derive_id("default", "lab/p"), later.derive_id("default", "lab/p"), part.derive_id("default", "lab/q")]
    assert len(set(ids)) == 3


def test_intervals_that_begin_in_one_instant_are_numbered() -> None:
    # One ends in the instant in which the next was scheduled.
    facts = [see("Failed", 10, scheduled=10), see("Running", 11, scheduled=10)]
    parts = sorted(derive_intervals(facts), key=lambda part: part.generation)
    assert [part.generation for part in parts] == ["", "1"]
