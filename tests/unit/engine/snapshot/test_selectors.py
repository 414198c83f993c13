"""Label and node selectors, by the operators that the API reference documents for them.

Conditions that Kubernetes' validation refuses match no node.
"""

from typing import Any

import pytest

from engine.snapshot.fields import FieldError
from engine.snapshot.selectors import (
    read_integer,
    read_label_selector,
    read_node_selector,
    read_node_selector_term,
)


@pytest.mark.parametrize(
    ("field", "is_malformed"),
    [
        # matchFields takes In and NotIn, with exactly one value.
        ({"operator": "In", "values": ["n1"]}, False),
        ({"operator": "NotIn", "values": ["n2"]}, False),
        ({"operator": "In", "values": ["n1", "n2"]}, True),
        ({"operator": "In", "values": []}, True),
        ({"operator": "Exists"}, True),
        ({"operator": "Gt", "values": ["1"]}, True),
    ],
)
def test_a_condition_on_the_name_has_one_value(field: dict[str, Any], is_malformed: bool) -> None:
    term = read_node_selector_term({"matchFields": [{"key": "metadata.name", **field}]}, "term")
    assert term.is_malformed is is_malformed
    assert term.matches({}, "n1") is not is_malformed


@pytest.mark.parametrize(
    ("operator", "values", "of_a", "of_b", "of_none"),
    [
        ("In", ["a"], True, False, False),
        ("NotIn", ["a"], False, True, True),
        ("Exists", [], True, True, False),
        ("DoesNotExist", [], False, False, True),
    ],
)
def test_a_condition_on_a_label_of_the_values_a_and_b_and_of_an_absent_one(
    operator: str, values: list[str], of_a: bool, of_b: bool, of_none: bool
) -> None:
    condition = {"key": "k", "operator": operator, "values": values}
    selector = read_label_selector({"s": {"matchExpressions": [condition]}}, "s")
    assert [selector.matches(labels) for labels in ({"k": "a"}, {"k": "b"}, {"other": "a"})] == [of_a, of_b, of_none]
    term = read_node_selector_term({"matchExpressions": [condition]}, "term")
    assert [term.matches(labels, "") for labels in ({"k": "a"}, {"k": "b"}, {})] == [of_a, of_b, of_none]


@pytest.mark.parametrize(
    ("operator", "value", "is_match"),
    [
        ("Gt", "9", False), ("Gt", "10", False), ("Gt", "11", True), ("Gt", "+11", True), ("Gt", "x", False),
        ("Lt", "9", True), ("Lt", "10", False), ("Lt", "11", False), ("Lt", "-11", True), ("Lt", "", False),
    ],
)  # fmt: skip
def test_nodes_can_be_compared_by_whole_numbers(operator: str, value: str, is_match: bool) -> None:
    condition = {"key": "k", "operator": operator, "values": ["10"]}
    term = read_node_selector_term({"matchExpressions": [condition]}, "term")
    assert term.matches({"k": value}, "n1") is is_match
    assert not term.matches({}, "n1")


@pytest.mark.parametrize("values", [[], ["1", "2"], ["x"], ["9223372036854775808"]])
def test_a_comparison_with_anything_but_one_whole_number_is_malformed(values: list[str]) -> None:
    condition = {"key": "k", "operator": "Gt", "values": values}
    assert read_node_selector_term({"matchExpressions": [condition]}, "term").is_malformed


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ({"operator": "Gt", "values": ["1"]}, "s.matchExpressions[0].operator is 'Gt', not one of In, NotIn, Exists"),
        ({"operator": "In", "values": []}, "s.matchExpressions[0].values has 0 entries, which In does not allow"),
        ({"operator": "Exists", "values": ["a"]}, "s.matchExpressions[0].values has 1 entries, which Exists does not"),
    ],
)
def test_a_malformed_condition_of_a_label_selector_is_an_error(condition: dict[str, Any], message: str) -> None:
    with pytest.raises(FieldError) as raised:
        read_label_selector({"s": {"matchExpressions": [{"key": "k", **condition}]}}, "s")
    assert str(raised.value).startswith(message)


def test_all_labels_and_conditions_of_a_selector_have_to_hold() -> None:
    fields = {"matchLabels": {"a": "1", "b": "2"}, "matchExpressions": [{"key": "c", "operator": "Exists"}]}
    selector = read_label_selector({"s": fields}, "s")
    assert selector.matches({"a": "1", "b": "2", "c": ""})
    assert not any(map(selector.matches, ({"a": "1", "b": "2"}, {"a": "1", "b": "3", "c": ""}, {"c": ""})))


def test_an_absent_selector_matches_nothing_and_an_empty_one_everything() -> None:
    absent, empty = read_label_selector({}, "s"), read_label_selector({"s": {}}, "s")
    assert (absent.matches({}), absent.is_empty) == (False, False)
    assert (empty.matches({}), empty.is_empty) == (True, True)
    with pytest.raises(FieldError, match=r"^spec\.s is a list of 0 entries, not a mapping$"):
        read_label_selector({"s": []}, "s", "spec")


def test_one_term_of_a_node_selector_has_to_hold_and_empty_ones_select_no_node() -> None:
    terms = [{}, *({"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]} for zone in "ab")]
    selector = read_node_selector({"s": {"nodeSelectorTerms": terms}}, "s")
    assert selector is not None
    assert [selector.matches({"zone": zone}) for zone in "abc"] == [True, True, False]
    nothing = read_node_selector({"s": {"nodeSelectorTerms": [{}]}}, "s")
    assert nothing is not None
    assert not nothing.matches({})
    assert read_node_selector({}, "s") is None
    with pytest.raises(FieldError, match=r"^spec\.s is 3, not a mapping$"):
        read_node_selector({"s": 3}, "s", "spec")


def test_a_malformed_term_leaves_the_others() -> None:
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "Exists"}]},
             {"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}]  # fmt: skip
    selector = read_node_selector({"s": {"nodeSelectorTerms": terms}}, "s")
    assert selector is not None
    assert len(selector.terms) == 2
    assert selector.matches({"gpu": ""}, "n1")
    assert not selector.matches({}, "n1")


def test_labels_and_name_of_a_term_have_to_hold() -> None:
    fields = {
        "matchExpressions": [{"key": "gpu", "operator": "Exists"}],
        "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
    }
    term = read_node_selector_term(fields, "term")
    assert [term.matches({"gpu": ""}, name) for name in ("n1", "n2", "")] == [True, False, True]
    assert not term.matches({}, "n1")


# As `strconv.ParseInt(text, 10, 64)` of Go reads them.
@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("7", 7), ("+7", 7), ("-7", -7), ("007", 7), ("9223372036854775807", 2**63 - 1), ("9223372036854775808", None),
        ("-9223372036854775808", -(2**63)), ("-9223372036854775809", None), ("", None), ("-", None), ("1_0", None),
        (" 7", None), ("٣", None), ("0" * 63 + "7", 7), ("²", None),
    ],
)  # fmt: skip
def test_whole_numbers_of_64_bits_are_read(text: str, number: int | None) -> None:
    assert read_integer(text) == number
