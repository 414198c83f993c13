"""Devices of which more is taken than they have, by whichever scheduler."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from engine.summaries.overcommit import (
    MIN_OVERLAP,
    DeviceAmounts,
    Holding,
    Total,
    calculate_peak,
    find_overcommitments,
    list_totals,
)
from schemas.events import DeviceAllocation, NodeRegistered, PodRef
from schemas.placements import PodPlacement

NOON = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
LATER = NOON + timedelta(hours=1)


def to_time(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def allocate(memory_mib: int | None = 8192, uuid: str = "GPU-1", **fields: Any) -> DeviceAllocation:
    return DeviceAllocation.model_validate(
        {"uuid": uuid, "container": "main", "memory_mib": memory_mib, "cores_percent": 20} | fields
    )


def a_holding(pod: str, begins: float, ends: float | None = None, *rows: DeviceAllocation) -> Holding:
    placement = PodPlacement(cluster="default",
        id=f"stay-{pod}", pod=PodRef(namespace="llm", name=pod, uid=pod), node="node1", started_at=to_time(begins),
        ended_at=None if ends is None else to_time(ends), scheduler="hami-scheduler", attempt_id=f"attempt-{pod}",
        allocations=list(rows or [allocate()]),
    )  # fmt: skip
    return Holding(placement, to_time(begins - 1))


def a_registration(observed_at: float, uuids: tuple[str, ...] = ("GPU-1",), memory_mib: int = 16384) -> NodeRegistered:
    count = len(uuids)
    return NodeRegistered(cluster="default",
        node="node1", observed_at=to_time(observed_at), registered=True, uuid=list(uuids), model=["A100"] * count,
        mode=["hami-core"] * count, index=list(range(count)), memory_mib=[memory_mib] * count,
        cores_percent=[100] * count, slots=[3] * count, numa=[0] * count, healthy=[True] * count,
    )  # fmt: skip


DEVICE = [Total(to_time(-100), DeviceAmounts(16384, 100, 3))]


def list_findings(
    *holdings: Holding, totals: list[Total] = DEVICE, until: datetime = LATER
) -> list[tuple[str, dict[str, int]]]:
    return [(finding.pod.name, finding.numbers) for finding in find_overcommitments("GPU-1", holdings, totals, until)]


def test_what_fits_is_no_finding() -> None:
    assert list_findings(a_holding("a", 0), a_holding("b", 1)) == []


def test_a_device_over_its_memory_is_reported_for_the_pod_that_came_last_with_all_that_hold_it() -> None:
    holdings = [a_holding("a", 0), a_holding("b", 10, None, allocate(12000)), a_holding("c", 2, 8)]
    (finding,) = find_overcommitments("GPU-1", holdings, DEVICE, LATER)
    assert (finding.finding, finding.pod.name, finding.attempt_id) == ("Overcommitted", "b", "attempt-b")
    assert (finding.node, finding.device, finding.found_at, finding.started_at) == (
        "node1",
        "GPU-1",
        to_time(10),
        to_time(9),
    )
    assert finding.numbers == {"memory_total_mib": 16384, "memory_held_mib": 20192, "pods": 2}
    first, second = finding.evidence
    assert finding.evidence_pods == ["llm/a", "llm/b"]
    assert first.startswith("llm/a holds 8,192 MiB, 20 % of its cores, 1 slots since 2026-11-21T12:00:00.000000Z: ")
    assert second.endswith("since 2026-11-21T12:00:10.000000Z: hami-scheduler, attempt attempt-b")


def test_cores_and_slots_count_as_memory_does() -> None:
    small = allocate(1, cores_percent=60)
    assert list_findings(a_holding("a", 0, None, small), a_holding("b", 1, None, small)) == [
        ("b", {"cores_total_percent": 100, "cores_held_percent": 120, "pods": 2})
    ]
    tiny = allocate(1, cores_percent=0)
    assert list_findings(*(a_holding(name, index, None, tiny) for index, name in enumerate("abcd"))) == [
        ("d", {"slots_total": 3, "slots_held": 4, "pods": 4})
    ]


def test_a_pod_that_comes_while_another_leaves_is_no_finding() -> None:
    full = allocate(16384)
    assert list_findings(a_holding("a", 0, 60, full), a_holding("b", 58, None, full)) == []
    over = list_findings(a_holding("a", 0, 60, full), a_holding("b", 60 - MIN_OVERLAP.total_seconds() - 1, None, full))
    assert [pod for pod, _ in over] == ["b"]


def test_nothing_is_reported_before_all_is_known() -> None:
    full = allocate(16384)
    holdings = [a_holding("a", 0, None, full), a_holding("b", 10, None, full)]
    assert list_findings(*holdings, until=to_time(14)) == []
    assert [pod for pod, _ in list_findings(*holdings, until=to_time(15))] == ["b"]


def test_each_placement_too_many_is_a_finding_of_its_own() -> None:
    full = allocate(16384)
    holdings = [a_holding(name, 10 * index, None, full) for index, name in enumerate("abc")]
    assert [pod for pod, _ in list_findings(*holdings)] == ["b", "c"]


def test_init_containers_run_one_after_the_other_and_before_the_others() -> None:
    rows = [allocate(9000, init=True), allocate(5000, init=True), allocate(4000), allocate(3000)]
    assert calculate_peak(rows, "GPU-1") == DeviceAmounts(9000, 40, 2)
    assert list_findings(a_holding("a", 0, None, *rows), a_holding("b", 1, None, allocate(7000))) == []


def test_amounts_that_no_source_reports_are_not_counted() -> None:
    unknown = allocate(None, cores_percent=None)
    assert list_findings(a_holding("a", 0, None, unknown), a_holding("b", 1, None, allocate(16384))) == []


def test_a_device_of_which_nothing_is_registered_is_not_judged() -> None:
    assert list_findings(a_holding("a", 0, None, allocate(10**6)), totals=[]) == []
    assert list_findings(a_holding("a", 0, None, allocate(10**6)), totals=[Total(to_time(-9), DeviceAmounts())]) == []


def test_a_node_that_loses_a_device_leaves_it_as_it_was_for_those_who_hold_it() -> None:
    registrations = [a_registration(0), a_registration(50, ("GPU-2",)), a_registration(60)]
    assert list_totals(registrations, "GPU-1") == [Total(to_time(0), DeviceAmounts(16384, 100, 3))]
    assert list_totals(registrations, "GPU-9") == []


def test_a_device_that_shrinks_under_its_pods_is_reported_when_it_did() -> None:
    totals = list_totals([a_registration(100, memory_mib=4096), a_registration(0)], "GPU-1")
    (finding,) = find_overcommitments("GPU-1", [a_holding("a", 10)], totals, LATER)
    assert (finding.found_at, finding.numbers["memory_total_mib"], finding.pod.name) == (to_time(100), 4096, "a")


HOLDINGS = st.lists(
    st.builds(
        a_holding,
        st.sampled_from("abcdefgh"),
        st.integers(0, 100),
        st.none() | st.integers(100, 200),
        st.builds(allocate, st.integers(1, 12000), init=st.booleans()),
    ),
    max_size=6,
    unique_by=lambda holding: holding.placement.id,
)


@given(HOLDINGS, st.randoms())
def test_the_order_in_which_placements_are_known_does_not_matter(holdings: list[Holding], draw: Any) -> None:
    mixed = draw.sample(holdings, len(holdings))
    assert list(find_overcommitments("GPU-1", mixed, DEVICE, LATER)) == list(
        find_overcommitments("GPU-1", holdings, DEVICE, LATER)
    )


@given(HOLDINGS, st.integers(0, 300))
def test_what_was_reported_once_is_reported_the_same_later_on(holdings: list[Holding], seconds: int) -> None:
    early = list(find_overcommitments("GPU-1", holdings, DEVICE, to_time(seconds)))
    assert early == list(find_overcommitments("GPU-1", holdings, DEVICE, LATER))[: len(early)]
