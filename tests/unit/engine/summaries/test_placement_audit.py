"""Contradictions about placements, derived by hand; order and repetition do not matter."""

from collections.abc import Sequence
from datetime import timedelta
from random import Random
from typing import Any, TypeAlias

import hypothesis.strategies as st
from hypothesis import given

from engine.summaries.placement_audit import Placed, Pools, Sighting, report_unreported_bind, to_placed
from engine.summaries.placement_auditor import PlacementAuditor
from schemas.events import FindingReported, NodeChecked, NodeRegistered, PodObserved, Request
from schemas.ids import count_microseconds
from tests.support.builders.attempts import a_bind
from tests.support.builders.placements import a_check, a_placed, a_pod, a_problem, a_registration, a_sighting, to_time

Events: TypeAlias = Placed | PodObserved | NodeChecked | NodeRegistered
LONG_AFTER = to_time(10_000)
POOLS = Pools(
    lambda node: {"node1": "a100", "node2": "t4"}.get(node, ""),
    lambda namespace: frozenset({"a100", "h100"}) if namespace == "ml" else None,
)


def publish(judge: PlacementAuditor, values: Sequence[Events]) -> PlacementAuditor:
    for value in values:
        match value:
            case Placed():
                judge.see_bind(value)
            case PodObserved():
                judge.see_pod(value)
            case _:
                judge.see_node(value)
    return judge


def find_findings(*values: Events, pools: Pools | None = None) -> list[FindingReported]:
    return publish(PlacementAuditor(pools), values).settle(LONG_AFTER)


def list_names(*values: Events, pools: Pools | None = None) -> list[str]:
    return [finding.finding for finding in find_findings(*values, pools=pools)]


# What a bind is


def test_a_placement_has_each_device_once_and_the_vendors_that_were_asked_for() -> None:
    requests = [Request(container="init"), Request(container="main", vendor="NVIDIA", count=1)]
    placed = to_placed(a_bind(), "node1", to_time(1), ["GPU-2", "GPU-1", "GPU-2"], requests)
    assert (placed.devices, placed.vendors) == (("GPU-2", "GPU-1"), frozenset({"NVIDIA"}))


# Pools


def test_a_node_outside_of_the_pools_of_its_namespace_is_found_with_both() -> None:
    (finding,) = find_findings(a_placed(node="node2"), pools=POOLS)
    assert (finding.finding, finding.node, finding.found_at) == ("OutsidePool", "node2", to_time(1))
    assert finding.numbers == {"devices": 1, "expected_pools": 2}
    assert finding.evidence == [
        "ml may use a100, h100; node2 is in t4",
        f"attempt-trainer-0/bind/{count_microseconds(to_time(1))}: bound to node2 at 2026-11-21T03:06:24.217054Z",
    ]
    assert finding.evidence_pods == ["ml/trainer"] * 2


def test_a_node_of_no_pool_is_outside_of_every_pool() -> None:
    (finding,) = find_findings(a_placed(node="node7"), pools=POOLS)
    assert finding.evidence[0] == "ml may use a100, h100; node7 is in no pool"


def test_the_right_pool_a_namespace_without_a_rule_and_no_rules_are_no_finding() -> None:
    elsewhere = a_placed(node="node2", pod=a_pod().model_copy(update={"namespace": "web"}))
    assert list_names(a_placed(), elsewhere, pools=POOLS) == []
    assert list_names(a_placed(node="node2")) == []


# Handshakes and registrations


def test_a_handshake_that_was_too_old_when_the_node_was_chosen_is_found_with_its_age() -> None:
    check = a_check(-100, a_problem(handshake_at=to_time(-420), allocatable=8))
    (finding,) = find_findings(check, a_placed(started_at=0.5))
    assert (finding.finding, finding.node) == ("StaleHandshake", "node1")
    assert finding.numbers == {"wrong_for_seconds": 100, "handshake_age_seconds": 420}
    assert finding.evidence[0] == f"{check.id}: the message of HandshakeTooOld"


def test_a_handshake_that_was_right_again_by_then_or_went_wrong_only_later_is_no_finding() -> None:
    assert list_names(a_check(-100, a_problem()), a_check(-1), a_placed()) == []
    assert list_names(a_check(0.5, a_problem()), a_placed(started_at=0, bound=1)) == []


def test_another_sources_word_that_all_is_right_does_not_unsay_it() -> None:
    assert list_names(a_check(-100, a_problem()), a_check(-1, scheduler="other"), a_placed()) == ["StaleHandshake"]


def test_a_question_that_newer_device_plugins_leave_unanswered_is_no_finding_while_devices_are_offered() -> None:
    requests: dict[str, Any] = {"is_asked": True, "handshake_at": to_time(-420)}
    assert list_names(a_check(-100, a_problem(allocatable=8, **requests)), a_placed()) == []
    assert list_names(a_check(-100, a_problem(allocatable=0, **requests)), a_placed()) == ["StaleHandshake"]


def test_what_is_wrong_with_another_vendors_devices_or_for_a_pod_without_devices_is_no_finding() -> None:
    check = a_check(-100, a_problem(vendor="DCU"))
    assert list_names(check, a_placed()) == []
    assert list_names(check, a_placed(vendors=frozenset())) == ["StaleHandshake"]
    assert list_names(a_check(-100, a_problem()), a_placed(devices=(), vendors=frozenset())) == []


def test_a_registration_that_could_not_be_used_is_found() -> None:
    check = a_check(-5, a_problem("RegistrationMissing"), a_problem("RegistrationUnusable", vendor=""))
    (finding,) = find_findings(check, a_placed())
    assert finding.finding == "UnusableRegistration"
    assert len(finding.evidence) == 3


# Memory


def test_memory_that_changed_between_the_filter_and_the_bind_is_found_by_device() -> None:
    before, after = (
        a_registration(-100, {"GPU-node1-0": 40_000, "GPU-node1-1": 40_000}),
        a_registration(0.5, {"GPU-node1-0": 20_000}),
    )
    (finding,) = find_findings(before, after, a_placed())
    assert (finding.finding, finding.device) == ("MemoryChanged", "GPU-node1-0")
    assert finding.numbers == {"memory_judged_mib": 40_000, "memory_registered_mib": 20_000}
    assert [text.split(": ")[0] for text in finding.evidence[:2]] == [before.id, after.id]


def test_a_device_that_is_no_longer_registered_at_the_bind_is_found() -> None:
    (finding,) = find_findings(a_registration(-100, {"GPU-node1-0": 40_000}), a_registration(0.5, {}), a_placed())
    assert finding.numbers == {"memory_judged_mib": 40_000, "memory_registered_mib": 0}
    assert "no longer registered" in finding.evidence[1]


def test_a_change_before_the_filter_or_after_the_bind_or_of_another_device_is_no_finding() -> None:
    first = a_registration(-100, {"GPU-node1-0": 40_000, "GPU-node1-1": 40_000})
    other = a_registration(0.5, {"GPU-node1-0": 40_000})
    early, late = a_registration(-1, {"GPU-node1-0": 20_000}), a_registration(2, {"GPU-node1-0": 20_000})
    for change in (other, early, late):
        assert list_names(first, change, a_placed()) == []


def test_what_another_scheduler_registers_says_nothing_about_this_ones_decision() -> None:
    other = a_registration(0.5, {"GPU-node1-0": 20_000}, scheduler="other")
    assert list_names(a_registration(-100, {"GPU-node1-0": 40_000}), other, a_placed()) == []


# A bind without a bind


def test_a_bind_that_the_cluster_does_not_show_is_found_with_the_times() -> None:
    for node, where in (("", "on no node"), ("node2", "on node2")):
        sight = a_sighting(61, node)
        (finding,) = find_findings(a_placed(), a_sighting(70, node), sight)
        assert (finding.finding, finding.node, finding.numbers) == ("BoundNowhere", "node1", {"seen_after_seconds": 60})
        assert finding.evidence[1] == f"{sight.id}: {where} at 2026-11-21T03:07:24.217054Z"


def test_what_is_seen_within_the_grace_or_by_a_pod_that_was_there_before_is_no_finding() -> None:
    assert list_names(a_placed(), a_sighting(31, "")) == []
    assert list_names(a_placed(), a_sighting(2), a_sighting(61, "")) == []
    assert list_names(a_placed(), a_sighting(-5, ""), a_sighting(61)) == []


def test_a_pod_that_is_there_soon_after_was_bound_after_all_and_one_that_comes_much_later_was_not() -> None:
    assert list_names(a_placed(), a_sighting(61, ""), a_sighting(300)) == []
    assert list_names(a_placed(), a_sighting(61, ""), a_sighting(362)) == ["BoundNowhere"]


def test_a_sighting_that_does_not_say_the_node_is_not_of_a_pod_on_no_node() -> None:
    assert list_names(a_placed(), a_sighting(61, "", phase="")) == []
    assert list_names(a_placed(), a_sighting(61, "", phase="Running")) == []


def test_the_next_pod_of_the_name_is_no_word_about_this_one() -> None:
    assert list_names(a_placed(), a_sighting(61, "", pod=a_pod(uid="the-next"))) == []
    assert list_names(a_placed(), a_sighting(61, "", pod=a_pod(uid=""))) == []
    assert list_names(a_placed(pod=a_pod(uid="")), a_sighting(61, "")) == []


def test_a_pod_that_is_gone_is_not_seen_anywhere() -> None:
    assert list_names(a_placed(), a_sighting(61, "", deleted=True)) == []


def test_of_two_reported_binds_the_one_that_the_cluster_does_not_show_is_found() -> None:
    wrong, right = a_placed(), a_placed(node="node2", started_at=10, bound=11)
    (finding,) = find_findings(wrong, right, a_sighting(60, "node2"))
    assert finding.attempt_id == wrong.attempt_id


def test_an_unreported_bind_is_found_with_the_sighting() -> None:
    sight = a_sighting(61)
    finding = report_unreported_bind(a_placed(), Sighting(sight.id, "uid-trainer", "node1", sight.observed_at))
    assert (finding.finding, finding.numbers) == ("BindUnreported", {"seen_after_seconds": 60, "devices": 1})
    assert finding.evidence[0].startswith("attempt-trainer-0/concluded: node1 was chosen at ")


# Order, repetition, memory


a_name = st.sampled_from(["trainer", "infer"])
a_node = st.sampled_from(["node1", "node2"])
a_time = st.integers(-50, 200)
some_codes = st.sets(st.sampled_from(["HandshakeTooOld", "RegistrationMissing"]))


@st.composite
def things(draw: st.DrawFn) -> Events:
    time, node, name = draw(a_time), draw(a_node), draw(a_name)
    match draw(st.integers(0, 3)):
        case 0:
            return a_placed(name, node, started_at=time, bound=time + draw(st.integers(0, 20)))
        case 1:
            return a_sighting(time, draw(st.sampled_from(["", node])), name)
        case 2:
            return a_check(time, *map(a_problem, sorted(draw(some_codes))), node=node)
        case _:
            return a_registration(time, {f"GPU-{node}-0": draw(st.sampled_from([10, 20]))}, node)


def to_seconds(values: Events) -> float:
    return ((values.bound_at if isinstance(values, Placed) else values.observed_at) - to_time(0)) / timedelta(seconds=1)


def get_key(values: Events) -> object:
    """Return the key of a fact that can be reported only once: a source reports one thing at a time."""
    return values.attempt_id if isinstance(values, Placed) else values.id


# How long it takes says how busy the machine is.

published = st.lists(things(), max_size=20, unique_by=get_key)


@given(published, st.randoms(use_true_random=False))
def test_neither_order_nor_repetition_matters(values: list[Events], draw: Random) -> None:
    again = [*values, *draw.sample(values, len(values) // 2)]
    draw.shuffle(again)
    assert find_findings(*again, pools=POOLS) == find_findings(*values, pools=POOLS)


@given(published, st.integers(0, 14))
def test_what_is_settled_step_by_step_is_what_is_settled_at_once(values: list[Events], late: int) -> None:
    """Each record comes as late as `LATE` allows, by kinds one after the other, and half of them come twice."""
    judge, published_by_now = PlacementAuditor(POOLS), 0
    found_by_now: list[FindingReported] = []
    ordered = sorted(values, key=lambda event: (to_seconds(event), type(event).__name__))
    for now in range(-50, 600, 5):
        arrived = [event for event in ordered if to_seconds(event) + late <= now]
        judge = publish(judge, [*arrived[published_by_now:], *arrived[: published_by_now // 2]])
        published_by_now = len(arrived)
        found_by_now += judge.settle(to_time(now))
    ids = [finding.id for finding in found_by_now]
    assert len(ids) == len(set(ids))
    assert sorted(found_by_now, key=lambda finding: finding.id) == find_findings(*values, pools=POOLS)


def test_what_an_earlier_run_published_is_not_published_again() -> None:
    values: list[Events] = [a_placed(node="node2"), a_sighting(100, "")]
    first = find_findings(*values, pools=POOLS)
    assert [finding.finding for finding in first] == ["BoundNowhere", "OutsidePool"]
    judge = publish(PlacementAuditor(POOLS), values)
    judge.mark_reported([finding.id for finding in first])
    assert judge.settle(LONG_AFTER) == []


def test_memory_is_bounded_by_pods_and_by_time() -> None:
    judge = PlacementAuditor(max_pods=10)
    publish(judge, [a_placed(f"pod{number}") for number in range(100)])
    judge.settle(to_time(2))
    assert len(judge) == 10
    judge.settle(to_time(3_602))
    assert len(judge) == 0


def test_a_name_that_is_used_again_and_again_is_forgotten() -> None:
    judge = PlacementAuditor()
    for hour in range(50):
        judge.see_bind(a_placed(started_at=3_600 * hour, bound=3_600 * hour + 1))
        judge.settle(to_time(3_600 * hour + 100))
    assert judge.binds <= 2
