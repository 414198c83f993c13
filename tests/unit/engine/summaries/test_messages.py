"""The event lines: HAMi's words, letter for letter, and what happens to lists that are too long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.summaries.fold import summarize
from engine.summaries.messages import (
    build_messages,
    build_search_text,
    count_refused_by_code,
    list_messages,
    list_nodes_by_code,
    summarize_bind,
    summarize_filter,
)
from engine.summaries.text import MAX_BYTES, join_within_limit, write_reasons, write_refusal
from schemas.codec.records import MAX_VALUE_BYTES, decode, encode
from schemas.events import AttemptSummarized, Owner, PodDescription, Refusal
from tests.support.builders.attempts import a_bind, an_attempt
from tests.support.builders.events import STARTED, a_refusal, a_report, a_summary

BOUNDS = "node node4 has been locked within 5m0s: node lock contention"


def list_lines(summary: AttemptSummarized) -> list[tuple[str, str, str]]:
    return [(message.severity, message.reason, message.message) for message in list_messages(summary)]


def build_placed_attempt(policy: str = "binpack", **scores: float) -> AttemptSummarized:
    devices = {name: [["picked"]] for name in scores} | {"full": [["CardInsufficientMemory"]]}
    chosen = (max if policy == "binpack" else min)(scores, key=lambda name: scores[name])
    return summarize(an_attempt(devices, chosen=chosen, scores=scores, policy=policy, unregistered=["broken"]))


def test_a_success_lists_the_fitting_nodes_with_the_best_last() -> None:
    """The line of seed document 0 as HAMi 2.10 renders it."""
    summary = build_placed_attempt(node9=12.5, node5=11.58, node1=11.02, node3=10.85)
    line = "find fit node(node9), 2 nodes not fit, 4 nodes fit(node3:10.85,node1:11.02,node5:11.58,node9:12.50)"
    assert list_lines(summary) == [("Normal", "FilteringSucceed", line)]
    assert summarize_filter(summary) == line


def test_spread_takes_the_lowest_score() -> None:
    summary = build_placed_attempt("spread", a=3.0, b=1.0, c=2.0)
    assert summarize_filter(summary).endswith("3 nodes fit(a:3.00,c:2.00,b:1.00)")


def test_of_equal_scores_the_name_that_sorts_first_is_the_best() -> None:
    assert summarize_filter(build_placed_attempt(a=1.0, b=1.0, c=1.0)).endswith("fit(c:1.00,b:1.00,a:1.00)")


def test_a_failure_counts_nodes_by_reason_then_in_all() -> None:
    devices = {
        "node4": [["NumaNotFit", "CardInsufficientMemory"]],
        "node1": [["CardInsufficientMemory", "CardCordoned"]],
        "node3": [["CardInsufficientMemory"] * 2],
    }
    summary = summarize(an_attempt(devices, unregistered=["node2"]))
    assert [line for _, _, line in list_lines(summary)] == [
        "1 nodes CardCordoned(node1)",
        "3 nodes CardInsufficientMemory(node1,node3,node4)",
        "1 nodes NumaNotFit(node4)",
        "1 nodes node unregistered(node2)",
        "no available node, 4 nodes do not meet",
    ]
    assert {(severity, reason) for severity, reason, _ in list_lines(summary)} == {("Warning", "FilteringFailed")}
    assert summarize_filter(summary) == "no available node, 4 nodes do not meet"


def test_the_number_of_offered_nodes_is_written_if_one_source_has_it() -> None:
    with_count, without = a_report(), a_report(source="hami-log", not_reported=["offered nodes"])
    for reports, offered in (([with_count, without], ", 2 nodes do not meet"), ([without], "")):
        assert summarize_filter(a_summary(ended_at=STARTED, reports=reports)) == f"no available node{offered}"


def test_as_many_nodes_are_counted_for_a_reason_as_are_listed_for_it() -> None:
    memory, both = a_refusal(CardInsufficientMemory=8), a_refusal(NumaNotFit=2, CardInsufficientMemory=6)
    bare, unused = Refusal(bare="node unregistered"), a_refusal(CardNotHealth=1)
    summary = a_summary(
        [f"node{i}" for i in range(6)],
        verdicts=["refused", "unregistered", "fits"], verdict=[0, 0, 0, 1, 1, 2],
        refusals=[memory, both, bare, unused], refusal=[0, 1, 0, 2, -1, -1],
    )  # fmt: skip
    counts = {"CardInsufficientMemory": 3, "NumaNotFit": 1, "node unregistered": 2}
    assert count_refused_by_code(summary) == counts
    assert {code: len(rows) for code, rows in list_nodes_by_code(summary)} == counts


def test_where_a_node_fits_no_reasons_are_listed() -> None:
    assert len(list_lines(build_placed_attempt(node1=1.0))) == 1


def test_an_error_is_shown_as_it_is() -> None:
    summary = summarize(an_attempt({}, error="calcScore failed boom for pod x"))
    assert list_lines(summary) == [("Warning", "FilteringFailed", "calcScore failed boom for pod x")]


def test_a_bind_is_worded_as_hami_words_it() -> None:
    events = an_attempt({"node4": [["picked"]]}, chosen="node4")
    bound = summarize([*events, a_bind(node="node4")])
    failed = summarize([*events, a_bind(node="node4", bound=False, error=BOUNDS)])
    assert list_lines(bound)[1] == ("Normal", "BindingSucceed", "Successfully binding node [node4] to ml/trainer")
    assert list_lines(failed)[1] == ("Warning", "BindingFailed", BOUNDS)
    assert (summarize_bind(failed), summarize_bind(summarize(events))) == (BOUNDS, "")


def test_messages_are_in_the_order_of_the_phases() -> None:
    summary = summarize([*an_attempt({"node1": [["picked"]]}, chosen="node1"), a_bind()])
    values = [message.reported_at for message in build_messages(summary)]
    assert values == sorted(values)
    assert values[0] < values[1]


def test_an_attempt_without_its_end_says_so_and_has_no_messages() -> None:
    summary = summarize(an_attempt({"node1": [["NumaNotFit"]]})[:-1])
    assert build_messages(summary) == []
    assert summarize_filter(summary).startswith("incomplete: the end of the attempt is missing")
    assert summarize_filter(summarize([a_bind()])) == ""


def test_free_text_finds_messages_and_reasons() -> None:
    text = build_search_text(summarize(an_attempt({"node1": [["NumaNotFit", "CardCordoned"]]})))
    assert "1/2 CardCordoned, 1/2 NumaNotFit" in text
    assert "no available node" in text


def test_thousands_of_nodes_are_counted_where_the_list_ends() -> None:
    summary = summarize(an_attempt({f"node-{i:04}": [["NumaNotFit"]] for i in range(2_000)}, nodes_a_record=500))
    (_, _, line), *_ = list_lines(summary)
    named = line.count("node-")
    assert line.startswith("2000 nodes NumaNotFit(node-0000,node-0001,")
    assert line.endswith(f"... and {2_000 - named} more)")
    assert MAX_BYTES - 20 < len(line) <= MAX_BYTES


@given(st.text(max_size=3_000), st.lists(st.text(max_size=80), max_size=200), st.integers(0, 10**6))
def test_no_line_is_longer_than_kubernetes_keeps(head: str, entries: list[str], more: int) -> None:
    line = join_within_limit(head, entries, len(entries) + (more if sum(map(len, entries)) > MAX_BYTES else 0))
    assert len(line.encode()) <= MAX_BYTES
    if len(f"{head}{','.join(entries)})".encode()) <= MAX_BYTES // 2:
        assert line == f"{head}{','.join(entries)})"


def test_a_long_error_is_cut_between_characters() -> None:
    summary = summarize(an_attempt({}, error="错" * 1_000))
    line = summarize_filter(summary)
    assert len(line.encode()) <= MAX_BYTES
    assert line.endswith(" more")
    assert "�" not in line


def test_the_lines_of_a_phase_are_one_record_and_many_reasons_are_several() -> None:
    summary = summarize([*an_attempt({"node1": [["NumaNotFit", "CardCordoned"]]}), a_bind(bound=False)])
    assert [[line.code for line in event.lines] for event in build_messages(summary)] == [
        ["CardCordoned", "NumaNotFit", ""], [""],
    ]  # fmt: skip
    many = a_summary(
        [], refused_nodes={f"{number:02}" + "x" * 498: 1 for number in range(20)}, ended_at=summary.ended_at
    )
    records = build_messages(many)
    # A line has its reason of 500 characters as its code and in its text, so that eight have nearly 9,000.
    assert [len(event.lines) for event in records] == [8, 8, 5]
    assert len({event.id for event in records}) == 3
    assert list_lines(many)[-1][2].startswith("no available node"), "the line about the attempt comes last"


def test_a_record_of_the_longest_lines_is_not_larger_than_any_other() -> None:
    # A character that JSON writes as six.
    reasons = {chr(1) * 1_000 + str(number): 1 for number in range(10)}
    many = a_summary(["node1"], refused_nodes=reasons)
    records = build_messages(many.model_copy(update={"ended_at": many.started_at}))
    assert all(len(encode(event).value) <= MAX_VALUE_BYTES for event in records)


def test_the_lines_of_each_phase_travel_as_a_record_with_an_id_of_its_own() -> None:
    devices = {"node1": [["NumaNotFit", "CardCordoned"]]}
    published = build_messages(summarize([*an_attempt(devices), a_bind(bound=False)]))
    records = [encode(message) for message in published]
    assert [decode(record.value, record.headers) for record in records] == published
    assert len({message.id for message in published}) == len(published) == 2


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ({"A": 2, "B": 10}, "10/16 B, 2/16 A"),
        ({"NumaNotFit": 2, "CardCordoned": 1}, "1/16 CardCordoned, 2/16 NumaNotFit"),
        ({}, ""),
    ],
)
def test_reasons_stand_in_the_order_of_their_strings_as_in_hami(counts: dict[str, int], text: str) -> None:
    assert write_reasons(counts, 16) == text


def test_a_bare_reason_stands_with_its_cause() -> None:
    assert write_refusal(Refusal(bare="node unregistered", cause="bad JSON")) == "node unregistered: bad JSON"
    assert write_refusal(Refusal(bare="NodeInsufficientDevice")) == "NodeInsufficientDevice"


def test_nodes_that_are_counted_and_not_named_are_listed_by_reason() -> None:
    counted = summarize(an_attempt({})).model_copy(
        update={"refused_nodes": {"Insufficient cpu": 3, "node(s) had untolerated taint(s)": 2}, "offered_nodes": 5}
    )
    assert [line for _, _, line in list_lines(counted)] == [
        "3 nodes Insufficient cpu",
        "2 nodes node(s) had untolerated taint(s)",
        "no available node, 5 nodes do not meet: 3 Insufficient cpu, 2 node(s) had untolerated taint(s)",
    ]


def test_every_line_names_the_workload_that_the_pod_belongs_to() -> None:
    described = build_placed_attempt(a=1.0).model_copy(
        update={"description": PodDescription(owners=[Owner(kind="Job", name="t")])}
    )
    assert {line.workload for line in build_messages(described)} == {"Job/t"}
    assert {line.workload for line in build_messages(build_placed_attempt(a=1.0))} == {""}
