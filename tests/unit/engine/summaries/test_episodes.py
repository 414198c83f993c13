"""Attempts of one episode, and descriptions of changes."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from engine.summaries.episodes import describe_changes
from engine.summaries.fold import summarize
from engine.summaries.retries import derive_digests, may_repeat, restore_unchanged, reuse_digests
from schemas.events import UNCHANGED_FOR, AttemptSummarized, AttemptUnchanged, BindOutcome, Refusal
from tests.support.builders.events import STARTED, a_published_attempt, a_refusal, a_report, a_summary

MEMORY = a_refusal(CardInsufficientMemory=3)


def build_refused(*nodes: str, refusal: Refusal = MEMORY, **fields: Any) -> Any:
    return a_summary(nodes, refusals=[refusal], **fields)


def test_a_node_that_fits_now_is_named_with_what_it_was_refused_for() -> None:
    after = a_summary(["node7", "node8"], refusals=[MEMORY], verdict=[1, 0], refusal=[-1, 0], refused_by=[-1, 0])
    assert describe_changes(build_refused("node7", "node8"), after) == ["node7: 3/8 CardInsufficientMemory became fit"]


def test_nodes_that_come_and_go_are_named() -> None:
    assert describe_changes(build_refused("node1", "node2"), build_refused("node2", "node3")) == [
        "node1: 3/8 CardInsufficientMemory became not offered",
        "node3: not offered became 3/8 CardInsufficientMemory",
    ]


def test_another_count_is_a_change() -> None:
    after = build_refused("node1", refusal=a_refusal(CardInsufficientMemory=2, NumaNotFit=1))
    assert describe_changes(build_refused("node1"), after) == [
        "node1: 3/8 CardInsufficientMemory became 1/8 NumaNotFit, 2/8 CardInsufficientMemory"
    ]


def test_a_choice_among_nodes_that_fit_is_no_change() -> None:
    fits = {"refusals": [], "refusal": [-1, -1], "refused_by": [-1, -1]}
    before = a_summary(["node1", "node2"], verdict=[1, 2], **fits)
    after = a_summary(["node1", "node2"], verdict=[2, 1], **fits)
    assert describe_changes(before, after) == []


def test_a_bind_and_an_error_are_changes_of_the_whole() -> None:
    bound = build_refused("node1", bind=BindOutcome(node="node1", bound=True, ended_at=STARTED))
    broken = build_refused("node1", error="calcScore failed")
    assert describe_changes(build_refused("node1"), bound) == ["bind: nothing became bound to node1"]
    assert describe_changes(build_refused("node1"), broken) == ["filter: nothing became calcScore failed"]


@pytest.mark.parametrize(("error", "words"), [("no such node", "no such node"), ("", "failed")])
def test_a_bind_that_failed_is_described_by_its_error(error: str, words: str) -> None:
    unbound = build_refused("node1", bind=BindOutcome(node="node1", bound=False, error=error, ended_at=STARTED))
    assert describe_changes(build_refused("node1"), unbound) == [f"bind: nothing became {words}"]


def test_of_an_error_that_quotes_an_object_the_beginning_is_kept() -> None:
    broken = build_refused("node1", error="calcScore failed: " + "metadata " * 1_000)
    (line,) = describe_changes(broken, build_refused("node1"))
    assert line.startswith("filter: calcScore failed: metadata ")
    assert line.endswith(" more words became nothing")
    assert len(line) < 300


def test_of_thousands_of_changes_twenty_are_listed_and_the_others_counted() -> None:
    names = [f"node{number:04}" for number in range(1_000)]
    fields = describe_changes(build_refused(*names), build_refused(*names, refusal=a_refusal(NumaNotFit=8)))
    assert len(fields) == 21
    assert fields[-1] == "and 980 more"


@pytest.mark.parametrize(
    ("change", "is_equal"),
    [
        ({"attempt_id": "b"}, True),
        ({"started_at": STARTED + timedelta(hours=1)}, True),
        ({"version": 9}, True),
        ({"changes": ["node1: fit became not offered"]}, True),
        ({"score": [1.0, 0.0]}, False),
        ({"refusals": [MEMORY]}, False),
        ({"offered_nodes": 3}, False),
        ({"missing": "parts"}, False),
    ],
)
def test_a_repetition_has_only_its_name_and_times_for_itself(change: dict[str, Any], is_equal: bool) -> None:
    assert (derive_digests(a_summary()).detail == derive_digests(a_summary(**change)).detail) == is_equal


def test_a_repetition_refers_to_the_same_day_and_no_more_than_six_hours_back() -> None:
    noon = datetime(2026, 11, 21, 12, tzinfo=UTC)
    longest = timedelta(hours=6)
    assert may_repeat(noon, noon - longest, is_unchanged=True)
    assert not may_repeat(noon, noon - longest - timedelta(microseconds=1), is_unchanged=True)
    assert may_repeat(noon, noon - longest + UNCHANGED_FOR)
    assert not may_repeat(noon, noon - longest + UNCHANGED_FOR - timedelta(microseconds=1))
    assert not may_repeat(noon.replace(hour=0), noon.replace(hour=0) - timedelta(microseconds=1))


def test_an_unchanged_attempt_has_the_digests_of_its_original_unless_another_source_reported_one_of_both() -> None:
    summary = a_summary(status="failed", reports=[a_report()])
    digests = derive_digests(summary)
    reports = a_published_attempt().reports
    original = a_published_attempt(verdict_digest=digests.verdicts, detail_digest=digests.detail, reports=reports)
    restored = restore_unchanged(an_unchanged(summary), summary)
    assert reuse_digests(original, restored) == derive_digests(restored) == digests
    of_two = [*reports, reports[0].model_copy(update={"source": "kube-events"})]
    assert reuse_digests(original.model_copy(update={"reports": of_two}), restored) is None
    two_reports = [a_report(), a_report(source="kube-events")]
    assert reuse_digests(original, restored.model_copy(update={"reports": two_reports})) is None
    assert reuse_digests(original, summarize([an_unchanged(summary)])) is None, "its original is lost"


def an_unchanged(original: AttemptSummarized) -> AttemptUnchanged:
    started = original.started_at + timedelta(seconds=20)
    return AttemptUnchanged(
        cluster=original.cluster, attempt_id="unchanged", pod=original.pod, scheduler=original.scheduler,
        started_at=started, ended_at=started, repeats=original.attempt_id, repeats_started_at=original.started_at,
    )  # fmt: skip
