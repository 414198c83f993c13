"""Fields of decoded objects: absent and null ones are empty, those of another type are refused with path and cause."""

from collections.abc import Callable
from typing import Any

import pytest

from engine.snapshot import fields
from engine.snapshot.fields import FieldError, RejectedObject, join, quote
from runtime.files.yaml_lines import parse_documents


@pytest.mark.parametrize(
    ("read", "empty", "value", "read_value"),
    [
        (fields.read_mapping, {}, {"a": 1}, {"a": 1}),
        (fields.read_list, (), [1, "a"], [1, "a"]),
        (fields.read_text, "", "a", "a"),
        (fields.read_texts, (), ["a", "b"], ("a", "b")),
        (fields.read_labels, {}, {"a": "b"}, {"a": "b"}),
        (fields.read_bool, False, True, True),
        (fields.read_int32, 0, -(2**31), -(2**31)),
        (fields.read_int32, 0, 2**31 - 1, 2**31 - 1),
        (fields.read_nanos, {}, {"cpu": "1500m", "memory": 2}, {"cpu": 1_500_000_000, "memory": 2_000_000_000}),
        (fields.read_quantity, None, "1n", 1),
    ],
)
def test_a_field_has_its_value_and_an_absent_or_null_one_is_empty(
    read: Callable[..., Any], empty: object, value: object, read_value: object
) -> None:
    assert read({"f": value}, "f") == read_value
    assert read({"f": None}, "f") == read({}, "f") == empty


def test_an_absent_truth_value_or_number_has_the_default() -> None:
    assert fields.read_bool({"f": None}, "f", default=True) is True
    assert fields.read_bool({"f": False}, "f", default=True) is False
    assert fields.read_int32({}, "f", default=1) == 1
    assert fields.read_int32({"f": 0}, "f", default=1) == 0


@pytest.mark.parametrize(
    ("read", "value", "message"),
    [
        (fields.read_mapping, [], "spec.f is a list of 0 entries, not a mapping"),
        (fields.read_list, {"a": 1}, "spec.f is a mapping of 1 entries, not a list"),
        (fields.read_text, 7, "spec.f is 7, not a string"),
        (fields.read_texts, ["a", 7], "spec.f[1] is 7, not a string"),
        (fields.read_labels, {"a": 7}, "spec.f[a] is 7, not a string"),
        (fields.read_bool, 1, "spec.f is 1, not true or false"),
        (fields.read_int32, True, "spec.f is True, not a whole number"),
        (fields.read_int32, 1.0, "spec.f is 1.0, not a whole number"),
        (fields.read_int32, 2**31, "spec.f is beyond 32 bits"),
        (fields.read_int32, -(2**31) - 1, "spec.f is beyond 32 bits"),
        (fields.read_nanos, {"cpu": 1, "memory": "x"}, "spec.f[memory] is 'x', which is not a quantity such as"),
        (fields.read_quantity, "8Ei", "spec.f is '8Ei', which is beyond 64 bits"),
    ],
)
def test_a_field_of_another_type_is_refused_with_its_path_and_the_cause(
    read: Callable[..., Any], value: object, message: str
) -> None:
    with pytest.raises(FieldError) as raised:
        read({"f": value}, "f", "spec")
    assert str(raised.value).startswith(message)
    assert message.startswith(f"{raised.value.path} ")


def test_items_come_with_their_paths() -> None:
    assert list(fields.read_items({"f": [{"a": 1}, {}]}, "f", "spec")) == [("spec.f[0]", {"a": 1}), ("spec.f[1]", {})]
    with pytest.raises(FieldError, match=r"^f\[1\] is 3, not a mapping$"):
        list(fields.read_items({"f": [{}, 3]}, "f"))


def test_a_path_begins_without_a_dot() -> None:
    assert (join("", "spec"), join("spec", "nodeName")) == ("spec", "spec.nodeName")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2**200 - 1, str(2**200 - 1)),
        (2**200, "a number of 201 bits"),
        (True, "True"),
        ("x" * 60, f"'{'x' * 60}'"),
        ("x" * 61, f"'{'x' * 60}'…"),
        ([1, 2], "a list of 2 entries"),
        (1.5, "1.5"),
    ],
)
def test_long_values_are_quoted_shortened(value: object, text: str) -> None:
    assert quote(value) == text


def test_a_mapping_of_yaml_is_quoted_as_one_of_json() -> None:
    [(_, mapping)] = parse_documents(b"a: 1")
    assert quote(mapping) == "a mapping of 1 entries"


@pytest.mark.parametrize(
    ("rejected", "sentence"),
    [
        (RejectedObject("Pod", "a", "p", "spec", "is 7"), "Pod a/p: spec is 7."),
        (RejectedObject("Node", "", "n", "", "is 7"), "Node n: is 7."),
        (RejectedObject("", "", "3", "", "is 7"), "object 3: is 7."),
        (RejectedObject("", "", "n\n", "", "is 7"), "object n\\n: is 7."),
        (RejectedObject("Pod", "", "n" * 396, "", "is 7"), f"Pod {'n' * 396}: is 7."),
        (RejectedObject("Pod", "", "n" * 397, "", "is 7"), f"Pod {'n' * 396}…: is 7."),
    ],
)
def test_a_rejected_object_is_named_shortened_and_without_control_characters(
    rejected: RejectedObject, sentence: str
) -> None:
    assert rejected.to_sentence() == f"{sentence} The snapshot leaves it out; correct the object or read it again."
