"""Reports of several sources about one attempt, combined by hand: each part comes from its best source."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import permutations
from typing import Any

import pytest

from engine.summaries.reports import PARTS, combine, find_filter_giver, find_giver
from schemas.events import (
    FILTER_END,
    OFFERED_NODES,
    AttemptSummarized,
    BindOutcome,
    LockHolder,
    Owner,
    PodDescription,
    PodRef,
    Reconstruction,
    Report,
)
from tests.support.builders.events import STARTED, a_report, a_request, a_summary

BY_NAME = {part.name: part for part in PARTS}


def to_time(seconds: float) -> datetime:
    return STARTED + timedelta(seconds=seconds)


def a_view(
    source: str, identity: str = "", *, report: dict[str, Any] | None = None, **fields: Any
) -> AttemptSummarized:
    """An attempt as one source reports it; its filter ended unless ``fields`` change that."""
    attempt_id = identity or f"id-{source}"
    fields_of_report: dict[str, Any] = {"source": source, "attempt_id": attempt_id, **(report or {})}
    plain: dict[str, Any] = {"attempt_id": attempt_id, "ended_at": to_time(1)}
    return a_summary(**(plain | {"reports": [a_report(**fields_of_report)]} | fields))


def a_bare_view(source: str, identity: str = "", **fields: Any) -> AttemptSummarized:
    """An attempt of which the source reports only ``fields``."""
    columns: dict[str, Any] = {
        name: [] for name in ("verdicts", "verdict", "score", "refused_by", "refusals", "refusal")
    }
    nothing = {"ended_at": None, "requests": [], "judged_devices": 0, "offered_nodes": 0, **columns}
    return a_view(source, identity, nodes=(), **(nothing | fields))


def a_bind(seconds: float = 2, *, bound: bool = True, **fields: Any) -> BindOutcome:
    return BindOutcome.model_validate({"node": "node1", "bound": bound, "ended_at": to_time(seconds)} | fields)


def combine_all(views: Sequence[AttemptSummarized]) -> AttemptSummarized:
    combined, *others = views
    for view in others:
        combined = combine(combined, view)
    return combined


def list_gives(summary: AttemptSummarized) -> dict[str, list[str]]:
    return {report.source: list(report.gives) for report in summary.reports}


@pytest.mark.parametrize("views", list(permutations(["scheduler", "hami-log", "kube-events", "other"])))
def test_the_best_source_gives_the_policy_whatever_the_order(views: Sequence[str]) -> None:
    combined = combine_all([a_view(source, node_policy=f"of {source}") for source in views])
    assert combined.node_policy == "of scheduler"
    assert [report.source for report in combined.reports] == ["scheduler", "hami-log", "kube-events", "other"]
    assert combined.attempt_id == f"id-{views[0]}"


@pytest.mark.parametrize(
    ("better", "other"),
    [
        ("scheduler", "hami-log"),
        ("scheduler", "kai-log"),
        ("hami-log", "kube-events"),
        ("kai-log", "kube-events"),
        ("kube-events", "other"),
    ],
)
def test_a_log_is_better_than_events_and_events_than_other_sources(better: str, other: str) -> None:
    assert combine(a_view(other, "z", device_policy="b"), a_view(better, "a", device_policy="a")).device_policy == "a"


def test_of_equal_sources_the_later_id_gives_a_part_and_the_earlier_one_comes_first() -> None:
    views = [a_view("hami-log", identity, settings_digest=identity) for identity in ("id-b", "id-a", "id-c")]
    combined = combine_all(views)
    assert combined.settings_digest == "id-c"
    assert [report.attempt_id for report in combined.reports] == ["id-a", "id-b", "id-c"]


def test_a_source_without_a_part_leaves_it_to_the_others() -> None:
    log = a_view("hami-log", node_policy="binpack", device_policy="spread", picked_devices=["GPU-0"])
    combined = combine(a_view("scheduler", settings_digest="abc"), log)
    assert (combined.node_policy, combined.device_policy, combined.picked_devices) == ("binpack", "spread", ["GPU-0"])
    assert list_gives(combined) == {
        "scheduler": ["filter", "requests", "offered nodes", "settings"],
        "hami-log": ["policies", "picked devices"],
    }


def test_a_part_is_taken_as_a_group() -> None:
    combined = combine(a_view("scheduler", node_policy="binpack"), a_view("hami-log", device_policy="spread"))
    assert (combined.node_policy, combined.device_policy) == ("binpack", "")


@pytest.mark.parametrize(
    ("poorer", "better"),
    [
        # A filter that ended is better than one that may continue, one with all records than one that lacks some, and
        # the scheduler's own verdicts are better than worked-out ones; only then the source counts.
        (a_view("scheduler", ended_at=None, judged_devices=1), a_view("kube-events", judged_devices=2)),
        (
            a_view("scheduler", report={"not_reported": [FILTER_END]}, judged_devices=1),
            a_view("kube-events", judged_devices=2),
        ),
        (a_view("scheduler", complete=False, judged_devices=1), a_view("hami-log", judged_devices=2)),
        (
            a_view("scheduler", reconstruction=Reconstruction(agreement="equal"), judged_devices=1),
            a_view("other", judged_devices=2),
        ),
        (a_view("hami-log", judged_devices=1), a_view("scheduler", judged_devices=2)),
    ],
)
def test_the_filter_comes_from_the_report_with_an_end_and_all_records(
    poorer: AttemptSummarized, better: AttemptSummarized
) -> None:
    for combined in (combine(poorer, better), combine(better, poorer)):
        assert combined.judged_devices == 2
        assert combined.ended_at == to_time(1)
        giver = find_filter_giver(combined)
        assert giver
        assert giver.source == better.reports[0].source


def test_verdicts_of_one_report_are_not_mixed_with_those_of_another() -> None:
    log = a_view("hami-log", nodes=["node1", "node2", "node3"], chosen="node3", fit_nodes=1)
    combined = combine(a_view("scheduler", nodes=["node1"]), log)
    assert (combined.nodes, combined.chosen, combined.fit_nodes) == (["node1"], None, 0)


@pytest.mark.parametrize(
    ("scheduler", "count"),
    [
        ({"requests": [a_request(count=1)]}, 1),
        # Events count the devices of the pod's object; the scheduler's records say that they lack them.
        ({"requests": [a_request(count=1)], "report": {"not_reported": ["requests"]}}, 4),
        ({"requests": [a_request(container="", count=0)]}, 4),
        ({"requests": [a_request(container="worker", count=0)]}, 0),
        ({"requests": [a_request(container="", count=1)]}, 1),
        ({"requests": [a_request(container="", count=1), a_request(container="", count=0)]}, 1),
    ],
)
def test_requests_come_from_the_best_source_that_has_some(scheduler: dict[str, Any], count: int) -> None:
    events = a_view("kube-events", requests=[a_request(count=4)])
    for combined in (
        combine(a_view("scheduler", **scheduler), events),
        combine(events, a_view("scheduler", **scheduler)),
    ):
        assert combined.requests[0].count == count


@pytest.mark.parametrize(
    ("scheduler", "offered"),
    [
        ({}, 5),
        ({"report": {"not_reported": [OFFERED_NODES]}}, 7),
        ({"report": {"not_reported": [FILTER_END]}}, 7),
        ({"report": {"not_reported": ["requests"]}}, 5),
        ({"ended_at": None}, 7),
    ],
)
def test_offered_nodes_come_from_a_report_with_the_end_of_the_filter(scheduler: dict[str, Any], offered: int) -> None:
    views = a_view("scheduler", offered_nodes=5, **scheduler), a_view("kube-events", offered_nodes=7)
    assert combine(*views).offered_nodes == offered


@pytest.mark.parametrize("name", ["nominated", "scheduler_message"])
def test_the_cluster_itself_is_the_best_source_of_the_state_of_a_pod(name: str) -> None:
    views = [a_view(source, report=None, **{name: source}) for source in ("scheduler", "kube-events", "hami-log")]
    for order in permutations(views):
        assert getattr(combine_all(order), name) == "kube-events"


def test_the_description_with_more_owners_counts() -> None:
    few, other, many = (
        PodDescription(owners=[Owner(kind="Job", name=name) for name in names]) for names in ("a", "b", "ab")
    )
    assert combine(a_view("kube-events", description=few), a_view("other", description=many)).description == many
    # Of as many owners the cluster's own word counts.
    views = a_view("scheduler", description=few), a_view("kube-events", description=other)
    assert combine(*views).description == other
    assert combine(a_view("scheduler"), a_view("other", description=few)).description == few


BOUND, FAILED = a_bind(node="node1"), a_bind(bound=False, error="refused")


@pytest.mark.parametrize(
    ("winner", "loser"),
    [
        # A pod that is bound remains bound.
        (
            a_bare_view("hami-log", bind=BOUND),
            a_bare_view("kube-events", bind=FAILED, report={"bind_ended_at": to_time(3)}),
        ),
        # A result of a bind is better than one that follows from the end of the attempt.
        (
            a_bare_view("hami-log", bind=FAILED, report={"bind_ended_at": to_time(2)}),
            a_bare_view("kube-events", bind=a_bind(9, bound=False)),
        ),
        (a_bare_view("kube-events", bind=BOUND), a_bare_view("scheduler", bind=a_bind(node="node9"))),
        (a_bare_view("scheduler", bind=BOUND), a_bare_view("hami-log", bind=a_bind(node="node9"))),
    ],
)
def test_the_bind_of_the_best_report_counts(winner: AttemptSummarized, loser: AttemptSummarized) -> None:
    for combined in (combine(winner, loser), combine(loser, winner)):
        assert combined.bind == winner.bind
        giver = find_giver(combined, BY_NAME["bind"])
        assert giver
        assert giver.source == winner.reports[0].source
        assert combined.status == ("succeeded" if winner.bind and winner.bind.bound else "failed")


@pytest.mark.parametrize(
    ("bind", "holders", "expected"),
    [
        (FAILED, [("node1", "ml/a")], "ml/a"),
        (FAILED, [("node2", "ml/a")], None),
        (FAILED, [("node1", "")], ""),
        (a_bind(bound=False, lock_holder=LockHolder()), [("node1", "ml/a")], "ml/a"),
        (a_bind(bound=False, lock_holder=LockHolder(pod="ml/b")), [("node1", "ml/a")], "ml/b"),
        (BOUND, [("node1", "ml/a")], None),
    ],
)
def test_a_failed_bind_has_the_holder_of_the_lock_from_the_source_that_knows_it(
    bind: BindOutcome, holders: list[tuple[str, str]], expected: str | None
) -> None:
    events = a_bare_view("kube-events", bind=bind, report={"bind_ended_at": to_time(2)})
    ((node, pod),) = holders
    held = a_bind(1, bound=False, node=node, lock_holder=LockHolder(pod=pod))
    for combined in (
        combine(events, a_bare_view("hami-log", bind=held)),
        combine(a_bare_view("hami-log", bind=held), events),
    ):
        assert combined.bind
        assert combined.bind.error == bind.error
        assert (combined.bind.lock_holder.pod if combined.bind.lock_holder else None) == expected


def test_without_an_end_of_the_filter_the_bind_is_the_evidence_of_its_choice() -> None:
    bind = a_bare_view("kube-events", bind=a_bind(node="node2"))
    assert combine(a_bare_view("hami-log", node_policy="binpack"), bind).chosen == "node2"
    assert combine(a_view("hami-log", ended_at=None, chosen="node1"), bind).chosen == "node2"
    assert combine(a_view("hami-log", chosen="node1"), bind).chosen == "node1"


def a_refusal_by_the_cluster(**fields: Any) -> AttemptSummarized:
    """The event that an attempt failed, for another reason than that no node fits."""
    plain: dict[str, Any] = {"error": "no reservation", "ended_at": to_time(3)}
    return a_bare_view("kube-events", **(plain | fields))


def test_a_refusal_by_the_cluster_is_the_end_of_the_bind_to_the_chosen_node() -> None:
    refused, chosen = a_refusal_by_the_cluster(), a_view("scheduler", chosen="node2")
    for combined in (combine(chosen, refused), combine(refused, chosen)):
        assert combined.bind == BindOutcome(node="node2", bound=False, error="no reservation", ended_at=to_time(3))
        assert combined.chosen == "node2"
        assert combined.status == "failed"
        assert "bind" in list_gives(combined)["kube-events"]


@pytest.mark.parametrize(
    ("scheduler", "refusal"),
    [
        (a_view("scheduler"), a_refusal_by_the_cluster()),
        (a_view("scheduler", chosen="node2"), a_refusal_by_the_cluster(error="")),
        (a_view("scheduler", chosen="node2"), a_refusal_by_the_cluster(chosen="node1")),
        (a_view("scheduler", chosen="node2"), a_view("kube-events", error="no reservation")),
        (a_view("hami-log", chosen="node2"), a_bare_view("other", error="no reservation", ended_at=to_time(3))),
    ],
)
def test_other_errors_are_no_end_of_a_bind(scheduler: AttemptSummarized, refusal: AttemptSummarized) -> None:
    assert combine(scheduler, refusal).bind is None


def test_a_bind_is_better_than_a_refusal_by_the_cluster() -> None:
    scheduler = a_view("scheduler", chosen="node1", bind=BOUND, report={"bind_ended_at": to_time(2)})
    assert combine(scheduler, a_refusal_by_the_cluster()).bind == BOUND


def test_a_refusal_by_the_cluster_without_a_time_ends_with_the_attempt() -> None:
    # Without an end the event has devices that were judged: else it would report no filter.
    refused = a_refusal_by_the_cluster(ended_at=None, judged_devices=1)
    combined = combine(a_view("scheduler", chosen="node2"), refused)
    assert combined.bind
    assert combined.bind.ended_at == STARTED


def test_requests_have_an_entry_for_each_container_that_refuses_a_node() -> None:
    log = a_view("hami-log", refused_by=[2, 0], requests=[a_request()] * 3, report={"not_reported": ["requests"]})
    events = a_bare_view("kube-events", requests=[a_request(container="main")])
    assert [request.container for request in combine(log, events).requests] == ["main", "", ""]
    many = a_bare_view("kube-events", requests=[a_request(container=name) for name in "abcd"])
    assert [request.container for request in combine(log, many).requests] == ["a", "b", "c", "d"]
    assert combine(a_bare_view("other"), a_bare_view("kube-events")).requests == []


def test_the_attempt_keeps_the_identity_that_was_published_first() -> None:
    pods = [PodRef(namespace="llm", name="a", uid=uid) for uid in ("", "6e1c")]
    first = a_view("kube-events", "first", pod=pods[0], started_at=to_time(5), may_duplicate=["x", "second"])
    second = a_view("scheduler", "second", pod=pods[1], may_duplicate=["first", "b", "x"])
    combined = combine(first, second)
    assert (combined.attempt_id, combined.started_at) == ("first", to_time(5))
    assert combined.pod == pods[1]
    assert combine(second, first).pod == pods[1]
    assert combined.may_duplicate == ["b", "second", "x"]


def test_a_repeated_report_changes_nothing() -> None:
    views = [a_view("scheduler", bind=BOUND, node_policy="binpack"), a_view("kube-events", nominated="node1")]
    combined = combine_all(views)
    for view in views:
        assert combine(combined, view) == combined


def test_two_versions_of_one_report_have_the_nodes_of_both() -> None:
    def a_version(*nodes: str) -> AttemptSummarized:
        return a_view("hami-log", nodes=nodes, complete=False, ended_at=None, report={"ended_at": None})

    merged = combine(a_version("node1"), a_version("node2", "node3"))
    assert merged.nodes == ["node1", "node2", "node3"]
    assert list_gives(merged) == {"hami-log": []}
    both = combine(a_version("node1"), a_view("kube-events", nominated="node1", nodes=(), verdict=[], score=[],
                                             refused_by=[], refusal=[], judged_devices=0, ended_at=None))  # fmt: skip
    assert combine(both, a_version("node2", "node3")).nodes == ["node1", "node2", "node3"]


def test_the_later_bind_of_one_report_counts() -> None:
    early = a_view("scheduler", bind=a_bind(2, bound=False), report={"bind_ended_at": to_time(2)})
    late = a_view("scheduler", bind=a_bind(5, bound=False, error="again"), report={"bind_ended_at": to_time(5)})
    both = combine(early, a_view("kube-events"))
    for combined in (combine(both, late), combine(combine(late, a_view("kube-events")), early)):
        assert combined.bind
        assert combined.bind.error == "again"
        (report,) = [report for report in combined.reports if report.source == "scheduler"]
        assert report.bind_ended_at == to_time(5)


def test_a_report_has_the_end_that_one_of_its_versions_has() -> None:
    versions = [
        a_view("hami-log", report={"ended_at": end, "levels": [level]}) for end, level in ((None, 4), (to_time(1), 5))
    ]
    for first, second in permutations(versions):
        combined = combine(combine(first, a_view("kube-events")), second)
        (report,) = [report for report in combined.reports if report.source == "hami-log"]
        assert (report.ended_at, report.levels, report.bind_ended_at) == (to_time(1), [5], None)


def test_the_giver_of_a_part_is_the_report_that_names_it() -> None:
    reports: list[Report] = [a_report(source="a", gives=["bind"]), a_report(source="b", gives=["filter"])]
    summary = a_summary(reports=reports)
    giver = find_filter_giver(summary)
    assert giver
    assert giver.source == "b"
    assert find_giver(summary, BY_NAME["policies"]) is None
    # A single report gives what it has.
    single = a_view("scheduler", node_policy="binpack", judged_devices=0, nodes=["node1"], ended_at=None)
    assert find_filter_giver(single) == single.reports[0]
    assert find_giver(single, BY_NAME["policies"]) == single.reports[0]
    assert find_giver(single, BY_NAME["bind"]) is None
    assert find_filter_giver(a_bare_view("kube-events")) is None
