"""The tool of `make mutants`: which slips it makes, and which tests it runs for a module."""

import ast
from pathlib import Path

import pytest

from tests.mutation.__main__ import derive_interval, draw, list_tests
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


def test_mutants_of_a_module_are_drawn_by_its_path() -> None:
    module = "engine/hami/quantities.py"
    assert {path for path, _ in draw([module], 5, 3)} == {Path(module)}


def test_the_tests_of_a_module_are_those_of_its_name_and_those_that_import_it() -> None:
    tests = list_tests(Path("engine/hami/quantities.py"))
    assert tests[0] == Path("tests/unit/engine/hami/test_quantities.py")
    assert Path("tests/unit/engine/hami/test_any_text.py") in tests


def test_a_module_that_no_test_imports_has_those_of_its_package() -> None:
    tests = list_tests(Path("engine/fit/judge/nothing/nowhere.py"))
    package = [
        *Path("tests/unit/engine/fit/judge").glob("test_*.py"),
        *Path("tests/unit/engine/fit").glob("test_rec*.py"),
    ]
    assert sorted(tests) == sorted(package)
    assert "any_" in tests[-1].name


def test_recorded_answers_of_its_package_and_those_around_it_judge_every_module() -> None:
    tests = list_tests(Path("engine/filters/pod_affinity.py"))
    assert tests[0] == Path("tests/unit/engine/filters/test_pod_affinity.py")
    assert Path("tests/unit/engine/filters/test_recorded_attempts.py") in tests
    vendor = list_tests(Path("engine/fit/judge/vendors/kunlun.py"))
    assert Path("tests/unit/engine/fit/test_recorded_decisions.py") in vendor


def test_mutants_are_drawn_from_every_module_that_has_its_share_of_lines() -> None:
    drawn = {path for path, _ in draw(["engine/hami"], 60, 1)}
    lines = {path: path.read_bytes().count(b"\n") for path in Path("engine/hami").rglob("*.py")}
    total = sum(count for path, count in lines.items() if list_mutants(path.read_bytes()))
    assert {path for path, count in lines.items() if count * 60 > total and list_mutants(path.read_bytes())} <= drawn


def test_the_interval_of_a_share_ends_where_the_share_is_1_96_deviations_away() -> None:
    low, high = derive_interval(8, 10)
    assert low < 0.8 < high
    for end in (low, high):
        assert (0.8 - end) ** 2 == pytest.approx(1.96**2 * end * (1 - end) / 10)
