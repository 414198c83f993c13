"""The attempt that a report is about, by the rule of docs/decisions/0023 and its times: 10 ms, 2 s, 250 ms, 500 ms."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from engine.summaries.matching import is_refused, match, may_be_one_pod, to_published_report
from schemas.events import (
    FILTER_END,
    AttemptSummarized,
    BindOutcome,
    PodRef,
    PublishedAttempt,
    PublishedReport,
    Report,
    SummaryLocation,
)
from tests.support.builders.events import a_summary

NOON = datetime(2026, 11, 24, 12, tzinfo=UTC)


def add_seconds(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def a_report(source: str, start: float, end: float | None = None, bind: float | None = None, **more: Any) -> Report:
    ended, bound = (None if seconds is None else add_seconds(seconds) for seconds in (end, bind))
    return Report(
        source=source, attempt_id="r", started_at=add_seconds(start), ended_at=ended, bind_ended_at=bound, **more
    )


def an_attempt(name: str, *reports: Report, uid: str = "uid", **more: Any) -> PublishedAttempt:
    """A published attempt whose filter the scheduler ran from 0.1 to 0.5 s, unless reports tell otherwise."""
    published = [to_published_report(report, 1) for report in reports or (a_report("scheduler", 0.1, 0.5),)]
    plain = {
        "version": 1, "status": "pending", "is_refused": False, "first_judged_at": NOON, "verdict_digest": "",
        "detail_digest": "", "episode": name, "episode_started_at": NOON, "may_get_more": False, "started_at": NOON,
        "whole": SummaryLocation(attempt_id=name, started_at=NOON, partition=0, offsets=[0]),
    }  # fmt: skip
    return PublishedAttempt(attempt_id=name, pod_uid=uid, reports=published, **{**plain, **more})


def a_summary_of(report: Report, uid: str = "uid", **more: Any) -> AttemptSummarized:
    pod = PodRef(namespace="ml", name="trainer", uid=uid)
    return a_summary(pod=pod, reports=[report], started_at=report.started_at, **{"status": "pending", **more})


def find(report: Report, *attempts: PublishedAttempt, **more: Any) -> str | list[str]:
    """Find the attempt of a report: its id, or the ids of those that it may be about."""
    matched = match(attempts, a_summary_of(report, **more))
    return matched.attempt.attempt_id if matched.attempt else matched.candidates


def an_event_at(seconds: float) -> Report:
    return a_report("kube-events", seconds, seconds)


@pytest.mark.parametrize(
    ("start", "end", "is_one"),
    [
        (0.1, 0.5, True),
        (0.2, 0.3, True),
        (0.51, 0.6, True),
        (0.511, 0.6, False),
        (0.0, 0.09, True),
        (0.0, 0.089, False),
    ],
)
def test_a_scheduler_and_its_log_have_one_clock(start: float, end: float, is_one: bool) -> None:
    assert find(a_report("hami-log", start, end), an_attempt("a")) == ("a" if is_one else [])


@pytest.mark.parametrize(
    ("seconds", "is_one"),
    [
        # Up to 2 s after the filter's end, and 250 ms for the other clock.
        (0.6, True),
        (2.75, True),
        (2.751, False),
        # Before it only by the clock.
        (-0.15, True),
        (-0.151, False),
        # A time of whole seconds is up to a second later than it says.
        (-1, True),
        (-2, False),
        (2, True),
        (3, False),
    ],
)
def test_an_event_comes_soon_after_the_filter_or_by_another_clock_just_before(seconds: float, is_one: bool) -> None:
    assert find(an_event_at(seconds), an_attempt("a")) == ("a" if is_one else [])


def test_events_over_some_time_are_about_the_filter_at_any_of_it() -> None:
    assert find(a_report("kube-events", 0.4, 3.1), an_attempt("a")) == "a"
    assert find(a_report("kube-events", 2.8, 3.1), an_attempt("a")) == []


def test_a_source_reports_an_attempt_once() -> None:
    assert find(a_report("scheduler", 0.1, 0.5), an_attempt("a")) == []


@pytest.mark.parametrize(("uid", "other", "may_be"), [("a", "a", True), ("a", "b", False), ("", "b", True),
                                                      ("a", "", True), ("", "", True)])  # fmt: skip
def test_pods_of_two_uids_are_two_pods(uid: str, other: str, may_be: bool) -> None:
    assert may_be_one_pod(uid, other) is may_be
    assert find(an_event_at(1), an_attempt("a", uid=uid), uid=other) == ("a" if may_be else [])


REFUSED: dict[str, Any] = {"ended_at": add_seconds(0.5)}


def a_bind(node: str, *, bound: bool) -> BindOutcome:
    return BindOutcome(node=node, bound=bound, error="" if bound else "no", ended_at=add_seconds(0.6))


@pytest.mark.parametrize(
    ("attempt", "summary", "is_one"),
    [
        ({"chosen": "n1"}, {"chosen": "n1"}, True),
        ({"chosen": "n1"}, {"chosen": "n2"}, False),
        ({"chosen": "n1"}, {}, True),
        ({"chosen": "n1"}, REFUSED, False),
        # An error is no refusal by all nodes.
        ({"chosen": "n1"}, REFUSED | {"error": "no weights"}, True),
        ({"is_refused": True}, {"chosen": "n1"}, False),
        ({"is_refused": True}, REFUSED, True),
        ({}, {"chosen": "n1"}, True),
        # Bound or not, where both say it.
        ({"chosen": "n1", "status": "succeeded"}, {"chosen": "n1", "bind": a_bind("n1", bound=True)}, True),
        ({"chosen": "n1", "status": "succeeded"}, {"chosen": "n1", "bind": a_bind("n1", bound=False)}, False),
        ({"chosen": "n1", "status": "failed"}, {"chosen": "n1", "bind": a_bind("n1", bound=True)}, False),
        ({"chosen": "n1", "status": "failed"}, {"chosen": "n1", "bind": a_bind("n1", bound=False)}, True),
        ({"chosen": "n1", "status": "pending"}, {"chosen": "n1", "bind": a_bind("n1", bound=False)}, True),
        ({"chosen": "n1", "status": "failed"}, {"chosen": "n1"}, True),
    ],
)
def test_the_outcome_agrees_where_both_say_it(attempt: dict[str, Any], summary: dict[str, Any], is_one: bool) -> None:
    assert find(an_event_at(1.1), an_attempt("a", **attempt), **summary) == ("a" if is_one else [])


def test_the_nearest_attempt_is_meant_if_it_is_half_a_second_nearer() -> None:
    first = an_attempt("first")
    for end, expected in ((1.0, "second"), (0.999, ["second", "first"])):
        second = an_attempt("second", a_report("scheduler", 0.7, end))
        # 1.1 s after the first; 600 ms, or 601 ms, after the second.
        assert find(an_event_at(1.6), first, second) == expected


def test_an_event_is_about_the_try_before_it_and_not_about_the_one_that_begins_after_it() -> None:
    following = an_attempt("following", a_report("scheduler", 2.0, 2.1))
    assert find(an_event_at(1.8), an_attempt("first"), following) == "first"
    assert find(an_event_at(1.8), following) == "following"


def test_a_log_is_about_the_attempt_of_its_scheduler_before_one_that_events_show() -> None:
    by_event = an_attempt("by-event", a_report("kube-events", 0.45, 0.45))
    assert find(a_report("hami-log", 0.1, 0.5), by_event, an_attempt("by-scheduler")) == "by-scheduler"
    assert find(a_report("hami-log", 0.1, 0.5), by_event) == "by-event"


def a_scheduled_event(seconds: float) -> Report:
    """The event "Scheduled", which only shows the bind."""
    return a_report("kube-events", seconds, seconds, seconds, not_reported=[FILTER_END])


@pytest.mark.parametrize(
    ("bind", "seconds", "is_one"),
    [
        # The bind came 30 s after the filter, and the event less than 2.25 s after the bind.
        (30.1, 31.1, True),
        (30.1, 32.35, True),
        (30.1, 32.351, False),
        # Without a time of the bind the event is compared with the filter's end.
        (None, 2.75, True),
        (None, 31.1, False),
    ],
)
def test_an_event_that_only_shows_the_bind_is_compared_with_the_bind(
    bind: float | None, seconds: float, is_one: bool
) -> None:
    attempt = an_attempt("a", a_report("scheduler", 0.1, 0.5, bind))
    assert find(a_scheduled_event(seconds), attempt) == ("a" if is_one else [])


def test_a_report_after_an_event_of_the_bind_is_compared_with_the_bind_where_it_has_one() -> None:
    attempt = an_attempt("a", a_scheduled_event(31.1))
    assert find(a_report("scheduler", 0.1, 0.5, 30.1), attempt) == "a"
    assert find(a_report("scheduler", 0.1, 0.5), attempt) == []
    assert find(a_report("scheduler", 30.1, 30.5), attempt) == "a"


def test_a_report_agrees_with_every_report_of_the_attempt() -> None:
    both = an_attempt("a", a_report("scheduler", 0.1, 0.5), a_report("kube-events", 2.1, 2.1))
    assert find(a_report("hami-log", 0.1, 0.5), both) == "a"
    assert find(a_report("hami-log", 4.9, 5.0), both) == []
    assert find(a_report("hami-log", 2.0, 2.1), both) == []


@pytest.mark.parametrize(
    ("report", "knows_only_bind"),
    [
        (a_report("kube-events", 1), True),
        (a_report("kube-events", 1, 1), False),
        (a_scheduled_event(1), True),
        (a_report("hami-log", 1), False),
        (a_report("hami-log", 1, 1, not_reported=[FILTER_END]), False),
    ],
)
def test_only_events_know_the_bind_and_not_the_filter(report: Report, knows_only_bind: bool) -> None:
    published = to_published_report(report, 7, "before")
    assert published == PublishedReport(
        source=report.source, attempt_id="r", version=7, started_at=report.started_at, ended_at=report.ended_at,
        bind_ended_at=report.bind_ended_at, repeats="before", knows_only_bind=knows_only_bind,
    )  # fmt: skip


def test_an_attempt_is_refused_once_its_filter_ended_without_a_node_or_an_error() -> None:
    report = a_report("scheduler", 0.1, 0.5)
    assert is_refused(a_summary_of(report, **REFUSED))
    assert not is_refused(a_summary_of(report))
    assert not is_refused(a_summary_of(report, **REFUSED, chosen="node1"))
    assert not is_refused(a_summary_of(report, **REFUSED, error="no weights"))
