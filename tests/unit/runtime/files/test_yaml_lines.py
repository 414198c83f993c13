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


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("18446744073709551615", 2**64 - 1),
        ("18446744073709551616", 18446744073709552000.0),
        ("-9223372036854775808", -(2**63)),
        ("-9223372036854775809", -9223372036854776000.0),
        ("+1" + "0" * 30, 1e30),
        ("1_0" + "0" * 30, 1e31),
        ("0" + "7" * 30, 7.777777777777778e29),
        ("9" * 400, "9" * 400),
        ("9" * 6000, "9" * 6000),
        ("0x" + "f" * 16, 2**64 - 1),
        ("0x" + "f" * 17, "0x" + "f" * 17),
        ("0b" + "1" * 70, "0b" + "1" * 70),
        ("1.0e+999", "1.0e+999"),
    ],
)
def test_numbers_beyond_64_bits_are_what_kubernetes_reads(text: str, value: object) -> None:
    """Expected: answers of sigs.k8s.io/yaml v1.4.0 (YAMLToJSON)."""
    [(_, document)] = parse_documents(f"x: {text}".encode())
    assert document == {"x": value}
    assert type(document["x"]) is type(value)


@pytest.mark.parametrize("word", [".inf", "-.Inf", ".nan"])
def test_what_json_has_no_number_for_is_refused(word: str) -> None:
    """The library refuses it too: ``json: unsupported value``."""
    with pytest.raises(YamlError, match=r"line 2: .* is not a number of JSON; put it in quotes"):
        list(parse_documents(f"a: 1\nx: {word}\n".encode()))
