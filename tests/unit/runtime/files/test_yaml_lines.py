"""YAML with lines, of which aliases make no more than a person would write."""

import pytest

from runtime.files.yaml_lines import YamlError, parse_documents
from tests.support.builders.yaml_texts import write_doubling


@pytest.mark.parametrize("merge", ["", "<<"])
def test_l9_aliases_that_double_are_refused_before_they_are_values(merge: str) -> None:
    """L9: 22 levels, of 0.8 kB, took 200 MB."""
    with pytest.raises(YamlError, match=r"line 1: its aliases make \d+ values of \d+; write them out"):
        list(parse_documents(write_doubling(40, merge)))
    assert len(list(parse_documents(write_doubling(6, merge)))) == 1


def test_l9_aliases_as_people_write_them_are_read() -> None:
    text = b"limits: &limits {nvidia.com/gpu: 1}\ncontainers:\n" + b"- {name: a, resources: {limits: *limits}}\n" * 500
    [(_, document)] = parse_documents(text)
    assert document["containers"][499]["resources"]["limits"] == {"nvidia.com/gpu": 1}


@pytest.mark.parametrize("opening", ["[", "{", "- ", '{"a":', "? "])
def test_m11_what_is_nested_deep_is_refused_before_the_rest_is_read(opening: str) -> None:
    """M11: the time grew with the square, 1.3 s for 16,000 brackets, and 8,000 dashes were a defect of the API."""
    with pytest.raises(YamlError, match="line 1: is nested more than 100 deep"):
        list(parse_documents((opening * 64_000).encode()))
    assert list(parse_documents(b"[" * 98 + b"]" * 98))


@pytest.mark.parametrize("text", ["1:30", "1:30.5", "1" + ":59" * 20_000, "1" + ":59" * 20_000 + ".5"])
def test_m11_numbers_to_the_base_of_60_are_text_as_they_are_to_kubernetes(text: str) -> None:
    assert list(parse_documents(f"at: {text}".encode())) == [(1, {"at": text})]
