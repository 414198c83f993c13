"""docs/glossary.md is true: every place that it names is there, and no term stands in it twice."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = re.findall(
    r"^\| (?!term)([a-z][\w ,]*?) \| .* \| (.*) \|$", (ROOT / "docs" / "glossary.md").read_text("utf-8"), re.M
)
PLACES = [(term, path) for term, where in ROWS for path in re.findall(r"`([\w./]+)`", where)]


def test_every_term_stands_there_once() -> None:
    terms = [term for row, _ in ROWS for term in row.split(", ")]
    assert len(terms) == len(set(terms)) > 40


@pytest.mark.parametrize(("term", "path"), PLACES, ids=lambda text: text)
def test_a_place_that_a_term_names_is_there(term: str, path: str) -> None:
    assert (ROOT / path).exists(), term
