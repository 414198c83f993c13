"""Nodes whose device rows and records count differently: exact, also for numbers that nobody counted."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.summaries.device_counts import NodeColumns, recount
from schemas.events import NOT_REASONS, DevicesJudged, Refusal
from tests.support.builders.attempts import count_reasons
from tests.support.builders.events import build_devices_judged

NUMA, CORDONED = "NumaNotFit", "CardCordoned"
WORDS = [NUMA, CORDONED, "fits", "not reached"]


def build_columns(refusals: dict[str, Refusal | None], container: int = 0) -> NodeColumns:
    """Build columns in which the container refuses every node."""
    table = [refusal for refusal in refusals.values() if refusal]
    codes = [
        next((index for index, entry in enumerate(table) if entry is refusal), -1) for refusal in refusals.values()
    ]
    return NodeColumns(list(refusals), np.full(len(refusals), container), np.array(codes, dtype=np.int64), table)


def build_rows(verdicts: dict[str, list[str]], **fields: Any) -> DevicesJudged:
    plain: dict[str, Any] = {
        "verdicts": WORDS,
        "devices": [len(verdict) for verdict in verdicts.values()],
        "rows": [len(verdict) for verdict in verdicts.values()],
        "verdict": [WORDS.index(word) for verdict in verdicts.values() for word in verdict],
        "models": {},
    }
    return build_devices_judged(list(verdicts), **(plain | fields))


def test_nodes_whose_record_counts_what_the_rows_say_are_left_out() -> None:
    device_rows = build_rows({"a": [NUMA, NUMA, "fits"], "b": [], "c": [CORDONED]})
    recorded = {"a": Refusal(counts={NUMA: 2}, devices=3), "b": None, "c": Refusal(counts={CORDONED: 1}, devices=1)}
    assert recount(build_columns(recorded), [device_rows]) == {}


@pytest.mark.parametrize(
    "recorded",
    [
        Refusal(counts={NUMA: 1}, devices=3),
        Refusal(counts={NUMA: 2}, devices=4),
        Refusal(counts={CORDONED: 2}, devices=3),
        Refusal(counts={NUMA: 2, CORDONED: 1}, devices=3),
        Refusal(counts={NUMA: 2, "fits": 1}, devices=3),
        Refusal(counts={NUMA: 2, "no row has it": 1}, devices=3),
        Refusal(counts={NUMA: 2 + 2**62}, devices=3),
        Refusal(counts={NUMA: 2**63 - 1}, devices=2**63 - 1),
        Refusal(counts={}, devices=3),
        None,
    ],
    ids=str,
)
def test_a_record_that_counts_anything_else_is_corrected(recorded: Refusal | None) -> None:
    recounted = recount(build_columns({"a": recorded}), [build_rows({"a": [NUMA, "fits", NUMA]})])
    assert recounted == {0: Refusal(counts={NUMA: 2}, devices=3)}


def test_counts_of_zero_say_nothing() -> None:
    recorded = Refusal(counts={NUMA: 1, CORDONED: 0}, devices=1)
    assert recount(build_columns({"a": recorded}), [build_rows({"a": [NUMA]})]) == {}


@pytest.mark.parametrize("recorded", [Refusal(bare="NodeInsufficientDevice"), Refusal(uncounted=[CORDONED], devices=1)])
def test_a_record_without_counts_is_never_corrected(recorded: Refusal) -> None:
    assert recount(build_columns({"a": recorded}), [build_rows({"a": [NUMA]})]) == {}


def test_rows_of_other_containers_partial_rows_and_unknown_nodes_correct_nothing() -> None:
    recorded = build_columns({"a": Refusal(counts={CORDONED: 1}, devices=1)})
    others = [
        build_rows({"a": [NUMA]}, container=1),
        build_rows({"a": [NUMA]}, partial=True),
        build_rows({"unknown": [NUMA]}, container=2**40),
        build_rows({"b": [NUMA]}),
    ]
    assert recount(recorded, others) == {}


def test_a_node_whose_rows_are_spread_over_two_records_is_counted_once() -> None:
    halves = [build_rows({"a": [NUMA]}, devices=[3]), build_rows({"a": [NUMA, CORDONED]}, devices=[3])]
    assert recount(build_columns({"a": Refusal(counts={NUMA: 2, CORDONED: 1}, devices=3)}), halves) == {}
    assert recount(build_columns({"a": None}), halves) == {0: Refusal(counts={NUMA: 2, CORDONED: 1}, devices=3)}


def test_no_nodes_and_no_rows_are_no_corrections() -> None:
    assert recount(build_columns({}), [build_rows({"a": [NUMA]})]) == {}
    assert recount(build_columns({"a": None}), []) == {}
    assert recount(build_columns({"a": None}), [build_rows({"a": []})]) == {}


of_nodes = st.dictionaries(st.sampled_from("abcdef"), st.lists(st.sampled_from(WORDS), max_size=5))


@given(of_nodes, of_nodes, st.integers(1, 3))
def test_each_node_is_compared_as_a_slow_count_compares_it(
    judged: dict[str, list[str]], recorded: dict[str, list[str]], size: int
) -> None:
    names = list(judged)
    runs = [names[start : start + size] for start in range(0, len(names), size)]
    records = [build_rows({name: judged[name] for name in run}, part=part) for part, run in enumerate(runs)]
    expected = {
        index: count_reasons(judged[name])
        for index, name in enumerate(recorded)
        if judged.get(name)
        and (_count_reasons(judged[name]), len(judged[name])) != (_count_reasons(recorded[name]), len(recorded[name]))
    }
    assert (
        recount(build_columns({name: count_reasons(verdicts) for name, verdicts in recorded.items()}), records)
        == expected
    )


def _count_reasons(verdicts: list[str]) -> Counter[str]:
    return Counter(word for word in verdicts if word not in NOT_REASONS)
