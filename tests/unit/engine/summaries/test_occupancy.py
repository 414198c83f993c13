"""Pods on nodes: placements from binds and from sightings, in whatever order they come."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.summaries.occupancy import Facts, to_sighting
from engine.summaries.pod_facts import BindFact, Fact, PodSighting
from engine.summaries.pod_timelines import ADOPTED_WITHIN
from schemas.events import Condition, DeviceAllocation, PodObserved, PodRef
from schemas.placements import PodPlacement

NOON = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
DEVICE = DeviceAllocation(uuid="GPU-1", container="worker", model="A100", memory_mib=20480, cores_percent=50)


def to_time(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def a_bind(seconds: float = 0, node: str = "node1", uid: str = "u1", **fields: Any) -> BindFact:
    """A bind some seconds after noon, with one device."""
    plain: dict[str, Any] = {
        "attempt_id": f"attempt-{seconds:g}-{node}",
        "scheduler": "hami-scheduler",
        "started_at": to_time(seconds - 1),
        "bound": True,
        "version": 1,
        "held": (DEVICE,),
    }
    return BindFact(uid=uid, node=node, time=to_time(seconds), **(plain | fields))


def build_sighting(
    seconds: float, state: str = "Running", node: str = "node1", uid: str = "u1", **fields: Any
) -> PodSighting:
    return PodSighting(uid, node, state, to_time(seconds), **fields)


def derive_placements(*facts: Fact) -> list[PodPlacement]:
    return [
        derived_placements.placement
        for derived_placements in Facts("default", "llm", "deepseek-0", facts).derive_placements()
    ]


def list_published(*facts: Fact) -> list[tuple[str, float, float | None, str]]:
    """List node, from, until in seconds after noon, and ended by."""
    return [
        (
            placement.node,
            (placement.started_at - NOON).total_seconds(),
            (placement.ended_at - NOON).total_seconds() if placement.ended_at else None,
            placement.ended_by,
        )
        for placement in derive_placements(*facts)
    ]


def test_a_bind_begins_a_placement_with_its_devices() -> None:
    (placement,) = derive_placements(a_bind(5))
    assert (placement.node, placement.started_at, placement.ended_at, placement.allocations) == (
        "node1",
        to_time(5),
        None,
        [DEVICE],
    )
    assert (placement.scheduler, placement.attempt_id, placement.pod.uid) == ("hami-scheduler", "attempt-5-node1", "u1")


def test_a_placement_ends_as_the_pod_ended_not_when_it_was_deleted_afterwards() -> None:
    assert list_published(
        a_bind(0), build_sighting(1), build_sighting(60, "Failed"), build_sighting(90, "deleted")
    ) == [("node1", 0, 60, "Failed")]


def test_a_pod_that_was_never_seen_to_end_ends_when_it_is_deleted() -> None:
    assert list_published(a_bind(0), build_sighting(90, "deleted", node="")) == [("node1", 0, 90, "deleted")]


def test_a_bind_that_failed_holds_nothing() -> None:
    assert list_published(a_bind(0, bound=False)) == []


def test_a_bind_that_is_reported_again_as_failed_holds_nothing_any_more() -> None:
    assert list_published(a_bind(0), a_bind(0, bound=False, version=2)) == []


def test_a_failed_bind_elsewhere_does_not_end_a_placement() -> None:
    assert list_published(a_bind(0), a_bind(9, "node2", bound=False)) == [("node1", 0, None, "")]


def test_a_pod_of_the_same_name_with_another_uid_ends_the_placement_before() -> None:
    assert list_published(a_bind(0), a_bind(100, uid="u2")) == [("node1", 0, 100, "replaced"), ("node1", 100, None, "")]


def test_an_end_that_is_read_before_its_bind_ends_the_placement() -> None:
    assert list_published(build_sighting(30, "Succeeded"), a_bind(0)) == [("node1", 0, 30, "Succeeded")]


def test_an_end_that_a_slow_clock_puts_before_the_bind_leaves_a_placement_of_no_length() -> None:
    assert list_published(a_bind(1), build_sighting(0.4, "Succeeded")) == [("node1", 1, 1, "Succeeded")]


def test_a_pod_seen_on_another_node_than_its_bind_has_moved() -> None:
    assert list_published(a_bind(0), build_sighting(3, node="node2")) == [
        ("node1", 0, 3, "moved"),
        ("node2", 3, None, ""),
    ]


def test_without_a_bind_a_placement_begins_when_the_cluster_says_the_pod_was_scheduled() -> None:
    assert list_published(build_sighting(60, scheduled=to_time(2)), build_sighting(50)) == [("node1", 2, None, "")]
    assert list_published(build_sighting(60), build_sighting(50, "Pending")) == [("node1", 50, None, "")]


def test_the_phase_is_the_last_one_that_was_seen() -> None:
    assert (
        derive_placements(a_bind(), build_sighting(2, "Pending"), build_sighting(9), build_sighting(5, "Pending"))[
            0
        ].phase
        == "Running"
    )


def test_of_two_reports_of_one_bind_the_one_that_knows_the_devices_counts() -> None:
    (placement,) = derive_placements(a_bind(0), a_bind(1, attempt_id="of-the-events", held=(), version=9))
    assert (placement.allocations, placement.attempt_id, placement.started_at) == (
        [DEVICE],
        "attempt-0-node1",
        to_time(0),
    )


def test_how_a_pod_ended_is_reported_by_the_source_that_saw_it_end_not_by_one_that_saw_it_go() -> None:
    assert list_published(a_bind(0), build_sighting(60, "deleted"), build_sighting(60.5, "Failed")) == [
        ("node1", 0, 60, "Failed")
    ]


def test_a_pod_that_is_bound_again_after_its_end_is_another_one_whatever_its_uid() -> None:
    facts: list[Fact] = [
        a_bind(0),
        build_sighting(1),
        build_sighting(60, "deleted"),
        a_bind(70),
        build_sighting(90, "Failed"),
        a_bind(95, "node2"),
    ]
    assert list_published(*facts) == [
        ("node1", 0, 60, "deleted"),
        ("node1", 70, 90, "Failed"),
        ("node2", 95, None, ""),
    ]
    assert len({placement.id for placement in derive_placements(*facts)}) == 3


def test_a_bind_without_a_uid_is_of_the_pod_that_is_seen_there_next() -> None:
    facts: list[Fact] = [
        build_sighting(1),
        build_sighting(50, "Succeeded"),
        build_sighting(62, uid="u2", scheduled=to_time(60)),
        a_bind(0, uid=""),
        a_bind(61, uid=""),
    ]
    assert [
        (placement.pod.uid, placement.attempt_id, placement.started_at) for placement in derive_placements(*facts)
    ] == [
        ("u1", "attempt-0-node1", to_time(0)),
        ("u2", "attempt-61-node1", to_time(61)),
    ]


def test_a_bind_without_a_uid_is_not_of_a_pod_that_came_much_later() -> None:
    later = ADOPTED_WITHIN.total_seconds() + 1
    assert [
        (placement.pod.uid, placement.started_at)
        for placement in derive_placements(a_bind(0, uid=""), build_sighting(later))
    ] == [
        ("", to_time(0)),
        ("u1", to_time(later)),
    ]


def test_an_end_without_a_uid_is_of_the_pod_that_is_there() -> None:
    assert list_published(a_bind(0), a_bind(100, uid="u2"), build_sighting(120, "deleted", uid="")) == [
        ("node1", 0, 100, "replaced"),
        ("node1", 100, 120, "deleted"),
    ]


def test_without_any_uid_a_bind_begins_again_and_an_end_ends() -> None:
    facts: list[Fact] = [
        a_bind(0, uid=""),
        build_sighting(2, uid=""),
        a_bind(50, uid=""),
        build_sighting(70, "Failed", uid=""),
        build_sighting(80, uid=""),
    ]
    assert list_published(*facts) == [
        ("node1", 0, 50, "replaced"),
        ("node1", 50, 70, "Failed"),
        ("node1", 80, None, ""),
    ]


@pytest.mark.parametrize(
    "facts",
    [
        [build_sighting(0, "Succeeded", uid=""), build_sighting(1, "Pending", uid="", scheduled=to_time(0))],
        [build_sighting(0, "Failed", uid=""), build_sighting(0, "Pending", uid="")],
        [
            build_sighting(0, uid=""),
            build_sighting(3, "Failed", uid=""),
            build_sighting(5, uid="", scheduled=to_time(0)),
        ],
    ],
)
def test_two_without_a_uid_that_begin_in_the_same_instant_are_two_placements(facts: list[Fact]) -> None:
    ended, there = derive_placements(*facts)
    assert (ended.started_at, there.started_at, there.ended_at) == (NOON, NOON, None)
    assert ended.id != there.id
    assert derive_placements(facts[0])[0].id == ended.id


def test_the_id_of_a_placement_does_not_change_when_more_is_known() -> None:
    ids = [
        derive_placements(*facts)[0].id
        for facts in (
            [build_sighting(3)],
            [a_bind(), build_sighting(3)],
            [a_bind(), build_sighting(3), build_sighting(9, "Failed")],
        )
    ]
    assert len(set(ids)) == 1
    assert derive_placements(a_bind(uid="u2"))[0].id != ids[0]
    assert derive_placements(a_bind(node="node2"))[0].id != ids[0]
    nameless = [
        derive_placements(*facts)[0].id for facts in ([a_bind(uid="")], [a_bind(uid=""), build_sighting(3, uid="")])
    ]
    assert len(set(nameless)) == 1


NODES = st.sampled_from(["node1", "node2"])
UIDS = st.sampled_from(["u1", "u2", ""])
SECONDS = st.integers(0, 100)
BINDS = st.builds(a_bind, SECONDS, NODES, UIDS, bound=st.booleans(), version=st.integers(1, 3))
STATES = st.sampled_from(["Pending", "Running", "Succeeded", "Failed", "deleted"])
SIGHTS = st.builds(
    build_sighting,
    SECONDS,
    STATES,
    st.sampled_from(["node1", "node2", ""]),
    UIDS,
    scheduled=st.none() | st.builds(to_time, SECONDS),
)
FACTS = st.lists(st.one_of(BINDS, SIGHTS), max_size=12)


def dump_placements(facts: Iterable[Fact]) -> list[dict[str, Any]]:
    return [
        derived_placements.placement.model_dump()
        for derived_placements in Facts("default", "llm", "deepseek-0", facts).derive_placements()
    ]


@given(FACTS, st.data())
def test_in_any_order_and_however_often_reported_the_placements_are_the_same(
    facts: list[Fact], data: st.DataObject
) -> None:
    again = data.draw(st.permutations([*facts, *data.draw(st.lists(st.sampled_from(facts)) if facts else st.just([]))]))
    assert dump_placements(again) == dump_placements(facts)


@given(FACTS)
def test_a_pod_is_nowhere_twice_at_a_time(facts: list[Fact]) -> None:
    pod_placements = derive_placements(*facts)
    for earlier, later in pairwise(pod_placements):
        assert earlier.ended_at is not None
        assert earlier.started_at <= earlier.ended_at <= later.started_at
    assert len({placement.id for placement in pod_placements}) == len(pod_placements)


def test_an_end_on_no_node_before_a_pod_was_bound_is_kept_with_it() -> None:
    end = build_sighting(0, "Succeeded", "", "u2")
    facts: list[Fact] = [
        end,
        a_bind(0, uid=""),
        build_sighting(3, "Pending", uid="u2"),
        a_bind(3, "node2", ""),
        a_bind(4, "node2", "u2"),
    ]
    derived_placements = Facts("default", "llm", "deepseek-0", facts).derive_placements()
    assert [(derived.placement.pod.uid, derived.placement.node) for derived in derived_placements] == [
        ("", "node1"),
        ("u2", "node1"),
        ("u2", "node2"),
    ]
    assert [end in derived.sights for derived in derived_placements] == [False, True, True]


@given(FACTS)
def test_what_placements_are_made_from_makes_them_again(facts: list[Fact]) -> None:
    derived_placements = Facts("default", "llm", "deepseek-0", facts).derive_placements()
    sources: list[Fact] = []
    for derived in derived_placements:
        sources += [*derived.binds]
        sources += [*derived.sights]
    assert dump_placements(sources) == dump_placements(facts)


@given(FACTS)
def test_adding_says_whether_anything_is_new(facts: list[Fact]) -> None:
    pod_facts = Facts("default", "llm", "deepseek-0", facts)
    assert not any(pod_facts.add(fact) for fact in facts)


def observe(**more: Any) -> PodObserved:
    plain = {
        "cluster": "default",
        "pod": PodRef(namespace="llm", name="a", uid="u1"),
        "observed_at": NOON,
        "phase": "Running",
        "node": "node1",
    }
    return PodObserved.model_validate(plain | more)


SCHEDULED = Condition(type="PodScheduled", status="True", last_transition_at=to_time(-9))


@pytest.mark.parametrize(
    ("event", "sight"),
    [
        (observe(), PodSighting("u1", "node1", "Running", NOON)),
        (observe(conditions=[SCHEDULED]), PodSighting("u1", "node1", "Running", NOON, to_time(-9))),
        (observe(deleted=True), PodSighting("u1", "node1", "deleted", NOON)),
        (observe(phase="Failed", node=""), PodSighting("u1", "", "Failed", NOON)),
        (observe(phase="Pending", node=""), None),
    ],
)
def test_what_is_seen_of_a_pod_counts_where_it_says_a_node_or_an_end(
    event: PodObserved, sight: PodSighting | None
) -> None:
    assert to_sighting(event) == sight
