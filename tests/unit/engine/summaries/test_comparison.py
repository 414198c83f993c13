"""Reasons for the choice of a node, and differences between attempts."""

import pytest

from engine.summaries.comparison import (
    find_runner_up,
    list_changed_fields,
    list_changed_nodes,
    list_fitting_nodes,
    map_judged_nodes,
    subtract_scores,
)
from tests.support.harness.golden_index import read_attempt


def test_the_chosen_node_comes_first_and_then_the_best_by_the_policy() -> None:
    assert [node.node for node in list_fitting_nodes(read_attempt())] == ["node5", "node3", "node4"]
    spread = read_attempt().model_copy(update={"node_policy": "spread"})
    assert [node.node for node in list_fitting_nodes(spread)] == ["node5", "node4", "node3"]


def test_terms_are_raw_shares_times_ten() -> None:
    terms = {term.name: (term.raw, term.weighted) for term in map_judged_nodes(read_attempt())["node5"].terms}
    assert terms == {"slots": (0.03, 0.3), "cores": (0.02, 0.2), "memory": (0.035, 0.35)}


def test_the_best_node_that_the_pod_did_not_get_is_named_with_its_distance() -> None:
    summary = read_attempt()
    best = find_runner_up(summary, list_fitting_nodes(summary))
    assert best
    assert (best.node, best.score, best.behind) == ("node3", 0.65, 0.2)
    assert best.terms == {"slots": -0.1, "cores": 0, "memory": -0.1}


def test_without_a_chosen_node_or_another_one_there_is_no_runner_up() -> None:
    summary = read_attempt().model_copy(update={"chosen": None})
    assert find_runner_up(summary, list_fitting_nodes(summary)) is None
    assert find_runner_up(read_attempt(), list_fitting_nodes(read_attempt())[:1]) is None


def test_two_nodes_differ_by_their_terms_and_a_refused_one_by_its_reason() -> None:
    nodes = map_judged_nodes(read_attempt())
    assert subtract_scores(nodes["node4"], nodes["node3"]) == pytest.approx(
        {"score": -0.39, "slots": -0.1, "cores": -0.12, "memory": -0.17}
    )
    assert subtract_scores(nodes["node1"], nodes["node3"]) == {}
    assert nodes["node1"].verdict == "refused"
    assert nodes["node1"].containers[-1].reason


def test_an_attempt_that_repeats_another_changes_nothing() -> None:
    changed, unchanged = list_changed_nodes(read_attempt(), read_attempt())
    assert (changed, unchanged) == ([], 5)
    assert list_changed_fields(read_attempt(), read_attempt()) == {}


def test_nodes_that_two_attempts_judged_differently_are_shown_before_and_after() -> None:
    before = read_attempt()
    verdict = before.verdict.copy()
    verdict[0] = 1
    after = before.model_copy(update={"verdict": verdict, "status": "pending", "bind": None})
    (change,), unchanged = list_changed_nodes(before, after)
    assert change.before
    assert change.after
    assert (change.before.node, change.before.verdict, change.after.verdict) == ("node1", "refused", "fits")
    assert unchanged == 4
    assert list_changed_fields(before, after) == {"status": ["failed", "pending"]}
