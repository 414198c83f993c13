"""The parts of a selector that a device fails, in words."""

import pytest

from engine.claims.cel.selector import compile_selector
from tests.support.builders.cel_devices import GPU, MEMORY, build_device


def explain(expression: str) -> list[str]:
    return [part.to_sentence() for part in compile_selector(expression).explain(build_device())]


@pytest.mark.parametrize(
    ("expression", "sentences"),
    [
        (f"{MEMORY}.compareTo(quantity('80Gi')) >= 0", ["memory 46068Mi, asked at least 80Gi"]),
        (f"{MEMORY}.isGreaterThan(quantity('80Gi'))", ["memory 46068Mi, asked more than 80Gi"]),
        (f"quantity('80Gi').isLessThan({MEMORY})", ["memory 46068Mi, asked more than 80Gi"]),
        (f"{GPU}.model == 'H100'", ['model "A100", asked "H100"']),
        (f"'H100' == {GPU}.model", ['model "A100", asked "H100"']),
        (f"{GPU}.model in ['H100', 'H200']", ['model "A100", asked one of ["H100", "H200"]']),
        (f"!({GPU}.model == 'A100')", ['model "A100", asked anything but "A100"']),
        (f"{GPU}.driverVersion.compareTo(semver('560.0.0')) >= 0", ["driverVersion 550.54.15, asked at least 560.0.0"]),
        (f"{GPU}.mig", ["mig false, asked true"]),
        (f"{GPU}.rack == 'r1'", [f"rack is not set, and {GPU}.rack == 'r1' reads it"]),
        (f"{GPU}.model.startsWith('H')", ['model "A100", asked a beginning of "H"']),
        ("'a && b' == 'c'", ['\'a && b\' "a && b", asked "c"']),
    ],
)
def test_a_part_is_reported_with_the_value_of_the_device(expression: str, sentences: list[str]) -> None:
    assert explain(expression) == sentences


def test_only_the_parts_of_a_conjunction_that_fail_are_reported() -> None:
    assert explain(f"{GPU}.model == 'A100' && ({GPU}.index > 7 && {GPU}.mig == true) && true") == [
        "index 3, asked more than 7",
        "mig false, asked true",
    ]


def test_a_part_is_written_as_it_stands_in_the_selector() -> None:
    written = f"{GPU}.model=='H100'   &&  ({GPU}.index  > 7||{GPU}.mig)"
    parts = compile_selector(written).explain(build_device())
    assert [part.text for part in parts] == [f"{GPU}.model=='H100'", f"{GPU}.index  > 7||{GPU}.mig"]
    assert [part.text for part in parts[1].alternatives] == [f"{GPU}.index  > 7", f"{GPU}.mig"]


def test_of_alternatives_each_is_reported() -> None:
    assert explain(f"{GPU}.model == 'H100' || {GPU}.index == 4") == ['model "A100", asked "H100"; or index 3, asked 4']


def test_a_bound_variable_is_reported_by_what_it_stands_for() -> None:
    assert explain(f"cel.bind(gpu, {GPU}, gpu.model == 'H100' && gpu.index == 3)") == ['model "A100", asked "H100"']


def test_a_selector_that_is_met_has_no_such_part() -> None:
    assert explain(f"{GPU}.model == 'A100'") == []
