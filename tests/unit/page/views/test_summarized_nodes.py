"""Groups of nodes: counted a second time by hand, on the golden attempts and on large ones."""

from collections import Counter

import pytest

from engine.summaries.answer import build_schedulerlog
from page.heat_maps import draw_node_map
from page.views.node_groups import list_codes
from page.views.summarized_nodes import group_summarized_nodes
from schemas.events import FITS, NOT_REACHED, PICKED
from tests.support.builders.events import a_refusal, a_summary
from tests.support.harness.golden_index import GOLDEN, read_attempt

GOLDEN_ATTEMPTS = sorted(
    path.name.removesuffix(".json")
    for path in (GOLDEN / "io.schedulerlog.attempt.summarized.v1").glob("[0-9][0-9][0-9].json")
)


@pytest.mark.parametrize("number", GOLDEN_ATTEMPTS)
def test_groups_hold_every_node_once_with_the_reason_of_the_answer(number: str) -> None:
    summary = read_attempt(number)
    groups = group_summarized_nodes(summary)
    assert Counter(node for group in groups for node in group.nodes) == Counter(summary.nodes)
    answered = {node.name: node for node in build_schedulerlog(summary).filter.nodes}
    for group in groups:
        assert (
            len(
                {
                    str([container.reason for container in answered[node].containers])
                    for node in group.nodes
                    if node in answered
                }
            )
            <= 1
        )
        assert {answered[node].status == "passed" for node in group.nodes if node in answered} <= {not group.is_refused}


def test_what_was_chosen_comes_first_and_then_the_greatest_refusal() -> None:
    summary = a_summary(
        ("a", "b", "c", "d", "e"),
        verdicts=[PICKED, FITS, "refused", NOT_REACHED],
        verdict=[2, 2, 2, 0, 3],
        refusals=[a_refusal(Small=8), a_refusal(Small=5, Other=3)],
        refusal=[0, 1, 1, -1, -1],
        refused_by=[0, 0, 0, -1, -1],
        score=[0, 0, 0, 2, 0],
        chosen="d",
    )
    groups = group_summarized_nodes(summary)
    assert [(group.verdict, group.nodes) for group in groups] == [
        (PICKED, ["d"]),
        ("refused", ["b", "c"]),
        ("refused", ["a"]),
        (NOT_REACHED, ["e"]),
    ]
    assert groups[1].cells == ["Small"] * 5 + ["Other"] * 3
    assert list_codes(groups) == ["Small", "Other"]


def test_a_map_of_5000_nodes_has_a_tile_for_each() -> None:
    names = tuple(f"node-{number:04}" for number in range(5000))
    kinds = [a_refusal(A=8), a_refusal(A=3, B=5), a_refusal(B=7)]
    summary = a_summary(names, refusals=kinds, refusal=[number % 3 for number in range(5000)])
    groups = group_summarized_nodes(summary)
    drawn = draw_node_map(groups)
    assert drawn
    assert [len(group.nodes) for group in groups] == [1667, 1667, 1666]
    tiles = [group.full_rows * drawn.tiles_per_row + group.last_row for group in drawn.groups]
    assert tiles == [1667, 1667, 1666]
    assert all(len(group.cells) == 8 for group in drawn.groups)
    assert drawn.groups[2].cells[-1].colour == "fits"  # one of eight passed, and two were asked for


def test_refusals_that_differ_in_their_counts_alone_become_one_group_where_there_are_many() -> None:
    names = tuple(f"n{number:04}" for number in range(1000))
    kinds = [a_refusal(16, A=number % 16 + 1, B=number // 16 + 1) for number in range(200)] + [a_refusal(16, A=16)]
    summary = a_summary(names, refusals=kinds, refusal=[number % 201 for number in range(1000)])
    groups = group_summarized_nodes(summary)
    assert [(len(group.nodes), [(c.code, c.min_count, c.max_count) for c in group.counts]) for group in groups] == [
        (996, [("A", 1, 16), ("B", 1, 13)]),
        (4, [("A", 16, 16)]),
    ]


def test_without_counted_devices_there_is_no_map() -> None:
    assert draw_node_map(group_summarized_nodes(a_summary(refusals=[a_refusal(0)]))) is None
