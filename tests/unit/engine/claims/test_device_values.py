"""Values of a device in a ResourceSlice: exactly one of bool, int, string and version, as Kubernetes' API has them."""

from typing import Any

import pytest

from engine.claims.device_values import AttributeValueError, check_values, read_attributes, read_capacity_value
from engine.snapshot.fields import FieldError

INT64_MAX = 2**63 - 1


@pytest.mark.parametrize(
    ("attribute", "is_evaluable"),
    [
        ({"string": "A100"}, True),
        ({"bool": False}, True),
        ({"int": 0}, True),
        ({"int": INT64_MAX}, True),
        ({"int": -INT64_MAX - 1}, True),
        ({"version": "1.2.3"}, True),
        # Semantic versions have three numbers.
        ({"version": "1.2"}, False),
        # A kind of a newer Kubernetes, none, and two.
        ({"quantity": "1"}, False),
        ({}, False),
        ({"string": "a", "int": 1}, False),
        # Lists are read only where the cluster's gate is on.
        ({"strings": ["a"]}, False),
    ],
)
def test_an_attribute_with_one_value_can_be_evaluated(attribute: dict[str, Any], is_evaluable: bool) -> None:
    assert check_values({"a": attribute}, {}) is is_evaluable
    assert check_values({"a": attribute, "b": {"string": "x"}}, {}) is is_evaluable
    assert check_values({"b": {"string": "x"}, "a": attribute}, {}) is is_evaluable


@pytest.mark.parametrize(
    "attribute",
    [
        {"string": 3},
        {"bool": "true"},
        {"int": True},
        {"int": "1"},
        {"int": INT64_MAX + 1},
        {"version": 1},
        "text",
        None,
    ],
)
def test_a_value_of_a_wrong_type_is_an_error_at_its_place(attribute: Any) -> None:
    with pytest.raises(FieldError, match=r"attributes\[model\]"):
        check_values({"model": attribute}, {})


@pytest.mark.parametrize("amount", [{"value": "many"}, {"value": ""}, {}, {"value": None}, "1 Gi"])
def test_a_capacity_is_a_quantity(amount: Any) -> None:
    with pytest.raises(FieldError, match=r"capacity\[memory\]"):
        check_values({}, {"memory": amount})


def test_a_capacity_may_be_a_bare_quantity_as_in_the_first_api() -> None:
    assert read_capacity_value("40Gi", "", "memory") == read_capacity_value({"value": "40Gi"}, "", "memory")
    assert check_values({}, {"memory": "40Gi", "slices": {"value": "7"}})


def test_lists_are_values_where_the_gate_is_on() -> None:
    attributes = {"links": {"strings": ["a", "b"]}, "lanes": {"ints": [4, 8]}}
    assert read_attributes(attributes, "device", with_lists=True) == {"links": ("a", "b"), "lanes": (4, 8)}
    with pytest.raises(AttributeValueError, match="attribute links: unsupported attribute value"):
        read_attributes(attributes, "device", with_lists=False)
