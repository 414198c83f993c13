"""Node records as one table by name, next to the device rows of the same attempt."""

from typing import Any

import pytest

from engine.summaries.node_table import NodeTable, build_node_table
from schemas.events import DevicesJudged, NodesJudged, Refusal
from tests.support.builders.attempts import an_attempt

MEMORY, TYPE = "CardInsufficientMemory", "CardTypeMismatch"


def build(*order: str, size: int = 2, **fields: Any) -> tuple[list[NodesJudged], list[DevicesJudged]]:
    """Build the records of an attempt whose nodes come in this order; b is chosen, c fits, the others refuse."""
    verdicts = {"a": [["CardInsufficientMemory", "CardTypeMismatch"]], "b": [["picked"]], "c": [["picked", "fits"]],
                "d": [["CardInsufficientMemory"]]}  # fmt: skip
    records = an_attempt({name: verdicts[name] for name in order}, chosen="b", nodes_a_record=size, **fields)
    return (
        [record for record in records if isinstance(record, NodesJudged)],
        [record for record in records if isinstance(record, DevicesJudged)],
    )


def read_table(table: NodeTable) -> dict[str, tuple[str, float, str]]:
    """Read verdict, score and refusal by node."""
    return {
        name: (
            table.verdicts[table.verdict[row]],
            float(table.score[row]),
            str(table.refusals[table.refusal[row]].counts) if table.refusal[row] >= 0 else "",
        )
        for row, name in enumerate(table.nodes)
    }


@pytest.mark.parametrize("order", ["abcd", "dcba", "bdac"])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_records_in_any_order_are_one_table_by_name(order: str, size: int) -> None:
    records, devices = build(*order, size=size, scores={"b": 3.0, "c": 1.5})
    table = build_node_table(records, devices)
    assert list(table.nodes) == ["a", "b", "c", "d"]
    assert read_table(table) == {
        "a": ("refused", 0.0, str({MEMORY: 1, TYPE: 1})),
        "b": ("picked", 3.0, ""),
        "c": ("fits", 1.5, ""),
        "d": ("refused", 0.0, str({MEMORY: 1})),
    }
    assert table.by_verdict == {"refused": 2, "picked": 1, "fits": 1}
    assert table.disagreements == ()
    assert table.refused_by.tolist() == [0, -1, -1, 0]


def test_a_node_that_occurs_twice_counts_once() -> None:
    records, _ = build("d", "b", "a", size=3)
    table = build_node_table([*records, *records], [])
    assert list(table.nodes) == ["a", "b", "d"]
    assert table.by_verdict == {"refused": 2, "picked": 1}


def test_terms_of_the_score_are_zero_where_a_record_has_none() -> None:
    first, second = build("a", "b", "c", "d")[0]
    scored = second.model_copy(update={"score_terms": {"binpack": [1.0, 2.0]}})
    (terms,) = build_node_table([scored, first], []).score_terms.items()
    assert (terms[0], terms[1].tolist()) == ("binpack", [0.0, 0.0, 1.0, 2.0])


def recount(**refusals: Refusal) -> NodeTable:
    """Build a table whose records have other refusals than the device rows."""
    records, devices = build("d", "c", "b", "a", size=4)
    (record,) = records
    table = [refusals[name] for name in ("d", "a")]
    return build_node_table([record.model_copy(update={"refusals": table})], devices)


def test_device_rows_replace_the_counts_of_records_and_the_difference_is_named() -> None:
    wrong = Refusal(counts={MEMORY: 2}, devices=2)
    table = recount(a=wrong, d=Refusal(counts={MEMORY: 1}, devices=1))
    assert read_table(table)["a"][2] == str({MEMORY: 1, TYPE: 1})
    assert read_table(table)["d"][2] == str({MEMORY: 1})
    (sentence,) = table.disagreements
    assert sentence.startswith("a: the device rows count '")
    assert sentence.endswith(f"its record says '2/2 {MEMORY}'")


def test_of_several_differences_the_first_by_name_is_described() -> None:
    table = recount(a=Refusal(counts={TYPE: 2}, devices=2), d=Refusal(counts={TYPE: 1}, devices=1))
    (sentence,) = table.disagreements
    assert sentence.startswith("a: ")
    assert sentence.endswith(", and 1 more nodes")
    assert read_table(table)["d"][2] == str({MEMORY: 1})
    assert read_table(table)["b"] == ("picked", 0.0, "")


def test_an_attempt_without_nodes_has_an_empty_table() -> None:
    table = build_node_table([], [])
    assert (list(table.nodes), table.by_verdict, table.score_terms) == ([], {}, {})
