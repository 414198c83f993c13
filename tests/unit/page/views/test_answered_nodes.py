"""Terminal and page group the same attempt alike, and few rows stand for thousands of nodes."""

import json
from typing import Any

import pytest

from cli.terminal.details import to_node_rows
from engine.summaries.answer import encode_schedulerlog
from page.views import node_groups
from page.views.answered_nodes import group_answered_nodes
from page.views.node_groups import NodeGroup
from page.views.summarized_nodes import group_summarized_nodes
from schemas import events
from tests.support.builders.events import a_refusal, a_summary
from tests.support.harness.golden_index import GOLDEN, read_attempt

GOLDEN_ATTEMPTS = sorted(
    path.name.removesuffix(".json")
    for path in (GOLDEN / "io.schedulerlog.attempt.summarized.v1").glob("[0-9][0-9][0-9].json")
)
REASON = "3/8 AllocatedCardsInsufficientRequest, 5/8 CardInsufficientCore"


def build_refused_node(name: str, reason: str) -> dict[str, object]:
    containers = [{"name": "c", "status": "failed", "reason": reason}]
    return {"name": name, "status": "failed", "score": 0, "containers": containers}


def build_passed_node(name: str, score: float) -> dict[str, object]:
    return {"name": name, "status": "passed", "score": score, "containers": [{"name": "c", "status": "passed"}]}


def list_rows(groups: list[NodeGroup]) -> list[tuple[str, str, tuple[str, ...], tuple[str, ...]]]:
    return sorted((group.verdict, group.reason, tuple(group.nodes), tuple(group.cells)) for group in groups)


@pytest.mark.parametrize("number", GOLDEN_ATTEMPTS)
def test_the_answer_and_the_columns_of_an_attempt_give_the_same_groups(number: str) -> None:
    summary = read_attempt(number)
    answer: dict[str, Any] = json.loads(encode_schedulerlog(summary))
    # The answer leaves out what was not looked at.
    judged = [node for node in group_summarized_nodes(summary) if node.verdict != events.NOT_REACHED]
    assert list_rows(group_answered_nodes(answer["filter"]["nodes"], summary.chosen)) == list_rows(judged)


def test_verdicts_are_those_of_the_events() -> None:
    for name in ("PICKED", "FITS", "NOT_REACHED", "UNREGISTERED"):
        assert getattr(node_groups, name) == getattr(events, name)


def test_nodes_that_were_refused_alike_are_one_row() -> None:
    nodes = [build_refused_node(f"node{number}", REASON) for number in range(4_000)]
    nodes += [
        build_refused_node("odd", "8/8 CardTypeMismatch"),
        build_passed_node("a", 0.5),
        build_passed_node("b", 0.25),
        build_passed_node("best", 0.85),
    ]
    assert to_node_rows(nodes, "best", is_wide=False) == [
        ["1", "chosen", "score 0.85", "best"],
        ["2", "fits", "scores 0.25 to 0.5", "a, b"],
        ["4,000", "refused", f"c: {REASON}", "node0, node1, node2 +3,997"],
        ["1", "refused", "c: 8/8 CardTypeMismatch", "odd"],
    ]
    assert len(to_node_rows(nodes, "best", is_wide=True)[2][3].split(", ")) == 4_000


def test_many_refusals_that_differ_in_their_counts_alone_are_one_row_with_the_range_of_each() -> None:
    nodes = [build_refused_node(f"n{number}", f"{number % 8 + 1}/8 A, {number // 8 + 1}/8 B") for number in range(40)]
    nodes += [build_refused_node(f"m{number}", f"{number + 1}/16 A, 1/16 B") for number in range(3)]
    rows = to_node_rows(nodes, None, is_wide=False)
    assert [row[:3] for row in rows] == [
        ["40", "refused", "c: 1–5/8 B, 1–8/8 A"],
        ["3", "refused", "c: 1/16 B, 1–3/16 A"],
    ]


def test_reasons_that_count_no_devices_are_shown_word_for_word() -> None:
    words = ("NodeInsufficientDevice", "card type, mismatch", "1/8 A, 1/16 B", "")
    rows = to_node_rows(
        [build_refused_node(f"n{index}", text) for index, text in enumerate(words)], None, is_wide=False
    )
    assert {row[2] for row in rows} == {f"c: {text or 'failed'}" for text in words}
    assert to_node_rows([build_refused_node("n", "node unregistered")], None, is_wide=False)[0][1:3] == [
        "not registered",
        "node unregistered",
    ]


def test_codes_without_counts_are_shown_as_words() -> None:
    summary = a_summary(("a",), refusals=[a_refusal(0).model_copy(update={"uncounted": ["B", "A"]})], refusal=[0])
    assert group_summarized_nodes(summary)[0].words == "A, B"


def test_an_attempt_without_nodes_has_no_rows() -> None:
    assert to_node_rows([], None, is_wide=False) == []
