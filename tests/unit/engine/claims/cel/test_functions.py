"""Functions and operators of CEL on values: the expressions of two tables, which name their documents."""

import re
from itertools import chain
from pathlib import Path
from typing import Final

import pytest

from engine.claims.cel.arithmetic import ARITHMETIC
from engine.claims.cel.conversions import CONVERSIONS
from engine.claims.cel.kubernetes import KUBERNETES
from engine.claims.cel.lists import COLLECTIONS
from engine.claims.cel.networks import NETWORKS
from engine.claims.cel.strings import STRINGS
from engine.claims.cel.times import TIMES
from engine.claims.cel.urls import URLS
from engine.claims.cel.values import EvaluationError
from tests.support.builders.cel_devices import run_expression

_FOLDER: Final = Path(__file__).parent / "expressions"
_ELSEWHERE: Final = {"@sortByAssociatedKeys", "cel.@mapInsert", "includes"}
"""Functions that only macros call, and one that reads attributes with several values (`test_selectors`)."""


def read_sections(name: str) -> dict[str, list[str]]:
    """Read the expressions of a table by the headings above them."""
    sections: dict[str, list[str]] = {}
    for line in (_FOLDER / name).read_text("utf-8").splitlines():
        if line.startswith("// # "):
            section = sections.setdefault(line.removeprefix("// # "), [])
        elif line and not line.startswith("//"):
            section.append(line)
    return sections


@pytest.mark.parametrize(("section", "expressions"), read_sections("true.cel").items())
def test_every_expression_of_the_section_is_true(section: str, expressions: list[str]) -> None:
    assert [expression for expression in expressions if run_expression(expression)[0] is not True] == []


@pytest.mark.parametrize("line", list(chain.from_iterable(read_sections("errors.cel").values())))
def test_an_expression_fails_with_the_error_of_the_table(line: str) -> None:
    expression, error = map(str.strip, line.rsplit("=>", 1))
    with pytest.raises(EvaluationError, match=f"^{re.escape(error)}"):
        run_expression(expression)


def test_every_function_has_a_true_expression() -> None:
    text = (_FOLDER / "true.cel").read_text("utf-8")
    functions = {*STRINGS, *COLLECTIONS, *CONVERSIONS, *TIMES, *KUBERNETES, *NETWORKS, *URLS} - _ELSEWHERE
    operators = {operator.strip("_") for operator in ARITHMETIC}
    assert {name for name in functions if not re.search(rf"\b{re.escape(name)}\(", text)} == set()
    assert {operator for operator in operators if f" {operator} " not in text} == set()
