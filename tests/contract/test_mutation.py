"""The tool of `make mutants`: which slips it makes, and which tests it runs for a module."""

import ast
from pathlib import Path

import pytest

from tests.mutation.__main__ import draw, list_tests
from tests.mutation.mutants import list_mutants


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a < b", ["a <= b"]),
        ("a == b != c", ["a != b != c", "a == b == c"]),
        ("a not in b", ["a in b"]),
        ("a is not b", ["a is b"]),
        ("(a) and (b) or c", ["(a) and (b) and c", "(a) or (b) or c"]),
        ("not a", ["bool(a)"]),
        ("a + 1", ["a + 2", "a - 1"]),
        ("x = True", ["x = False"]),
        ("any(a)", ["all(a)", "pass"]),
        ("if a: b = c", ["if not (a): b = c"]),
        ("x = [a for a in b if a]", ["x = [a for a in b if not (a)]"]),
        ("for a in b: continue", ["for a in b: pass"]),
        ("é = 'ü'; x += 3", ["é = 'ü'; pass", "é = 'ü'; x += 4"]),
    ],
)
def test_a_slip_changes_one_place(source: str, expected: list[str]) -> None:
    assert sorted(mutant.apply(source.encode()).decode() for mutant in list_mutants(source.encode())) == expected


@pytest.mark.parametrize(
    "source",
    [
        '"""A docstring."""',
        "@dataclass(frozen=True)\nclass A:\n    a: Annotated[int, 3]",
        "def f(a: Literal[1]) -> Literal[2]: ...",
        "if TYPE_CHECKING:\n    import a",
        "x = 'text'",
    ],
)
def test_docstrings_annotations_and_texts_are_left_alone(source: str) -> None:
    assert list_mutants(source.encode()) == []


def test_every_mutant_of_a_module_is_a_module_that_differs() -> None:
    source = Path("engine/hami/quantities.py").read_bytes()
    mutants = list_mutants(source)
    assert len(mutants) > 20
    for mutant in mutants:
        changed = mutant.apply(source)
        ast.parse(changed)
        assert changed != source


def test_the_same_seed_draws_the_same_mutants() -> None:
    assert draw(["engine/hami"], 5, 3) == draw(["engine/hami"], 5, 3) != draw(["engine/hami"], 5, 4)


def test_the_tests_of_a_module_are_those_of_its_name_and_those_that_import_it() -> None:
    tests = list_tests(Path("engine/hami/quantities.py"))
    assert tests[0] == Path("tests/unit/engine/hami/test_quantities.py")
    assert Path("tests/unit/engine/hami/test_any_text.py") in tests


def test_a_module_that_no_test_imports_has_those_of_its_package() -> None:
    assert list_tests(Path("engine/fit/judge/vendors/nowhere.py")) == sorted(
        Path("tests/unit/engine/fit/judge").glob("test_*.py")
    )
