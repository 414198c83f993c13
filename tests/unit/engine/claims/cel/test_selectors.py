"""Selectors on devices: outcomes, errors in Kubernetes' words, and the bounds that hold every one.

The recorded answers of Kubernetes' own compiler are replayed in tests/conformance.
"""

import sys
import time
from typing import Any

import pytest

from engine.claims.cel.compiler import MAX_LENGTH, load_environment
from engine.claims.cel.patterns import load_library
from engine.claims.cel.selector import Outcome, Truth, compile_selector, remember_selector
from tests.support.builders.cel_devices import GPU, MEMORY, build_device


def evaluate(expression: str, **more: Any) -> Outcome:
    return compile_selector(expression).evaluate(build_device(**more))


@pytest.mark.parametrize(
    "expression",
    [
        "device.driver == 'gpu.nvidia.com'",
        f"{GPU}.model == 'A100' && {GPU}.index > 2",
        f"{MEMORY}.isGreaterThan(quantity('40Gi'))",
        f"{MEMORY}.compareTo(quantity('46068Mi')) == 0",
        f"{GPU}.driverVersion.isLessThan(semver('560.0.0'))",
        "device.attributes['resource.kubernetes.io'].pcieRoot.startsWith('pci')",
        f"!({GPU}.?rack.hasValue())",
        f"cel.bind(gpu, {GPU}, gpu.model == 'A100' && !gpu.mig)",
        f"{GPU}.model.find('[0-9]+') == '100'",
        "[1, 2, 3].exists(number, number == 2)",
        "['b', 'a'].sort() == ['a', 'b']",
        "!device.allowMultipleAllocations",
        "cidr('10.0.0.0/8').containsIP('10.1.2.3')",
        "'%s-%d'.format(['a', 3]) == 'a-3'",
        "size(device.attributes['unknown.example.com']) == 0",
    ],
)
def test_a_device_meets_a_selector(expression: str) -> None:
    assert evaluate(expression) == Outcome(Truth.TRUE)


@pytest.mark.parametrize(
    "expression",
    [f"{GPU}.model == 'H100'", f"{MEMORY}.isGreaterThan(quantity('80Gi'))", f"{GPU}.mig", "false && 1 / 0 == 1"],
)
def test_a_device_does_not_meet_a_selector(expression: str) -> None:
    assert evaluate(expression) == Outcome(Truth.FALSE)


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        (f"{GPU}.rack == 'r1'", "no such key: rack"),
        ("1 / (1 - 1) == 1", "division by zero"),
        ("[1][3] == 1", "index out of bounds: 3"),
        (f"{GPU}.model", "CEL result of type string could not be converted to bool"),
        ("quantity('many').isInteger()", "quantities must match the regular expression"),
        (f"{GPU}.index + 9223372036854775807 > 0", "integer overflow"),
    ],
)
def test_an_error_of_a_selector_is_kubernetes_own(expression: str, error: str) -> None:
    outcome = evaluate(expression)
    assert outcome.truth is Truth.RUN_ERROR
    assert outcome.text.startswith(error)


@pytest.mark.parametrize(
    ("expression", "location"),
    [
        ("device.nosuch == 1", "<input>:1:7: undefined field 'nosuch'"),
        (f"{GPU}.model ==", "<input>:1:45: Syntax error"),
        ("device", "must evaluate to bool or the unknown type, not kubernetes.DRADevice"),
        ("'text'", "must evaluate to bool or the unknown type, not string"),
        ("nosuch(1)", "undeclared reference to 'nosuch'"),
        ("", "<input>:1:1: Syntax error"),
    ],
)
def test_a_selector_that_does_not_compile_names_the_place(expression: str, location: str) -> None:
    outcome = compile_selector(expression).evaluate(build_device())
    assert outcome.truth is Truth.COMPILE_ERROR
    assert location in outcome.text


def test_an_error_does_not_count_where_the_other_side_decides() -> None:
    assert evaluate(f"{GPU}.rack == 'r1' || {GPU}.model == 'A100'").is_true
    assert evaluate(f"{GPU}.rack == 'r1' && {GPU}.model == 'H100'").truth is Truth.FALSE


def test_lists_are_read_with_the_feature_gate_only() -> None:
    device = build_device(tags=("a", "b"))
    assert compile_selector(f"{GPU}.tags.includes('b')", with_lists=True).evaluate(device).is_true
    assert compile_selector(f"{GPU}.tags.all(tag, tag != 'c')", with_lists=True).evaluate(device).is_true
    assert compile_selector(f"{GPU}.tags.all(tag, tag != 'c')").failure


def test_an_expression_beyond_kubernetes_length_is_not_judged() -> None:
    outcome = evaluate("true" + " " * MAX_LENGTH)
    assert outcome.truth is Truth.UNJUDGED
    assert f"{MAX_LENGTH:,}" in outcome.text


@pytest.mark.parametrize(
    "expression",
    [
        "[1, 2, 3, 4, 5, 6, 7, 8].all(a, " * 7 + "true" + ")" * 7,
        "'" + "a" * 2000 + "'.matches('(a*)*b')",
        "[" + ", ".join(["'" + "x" * 500 + "'"] * 15) + "].all(a, a.size() > 0)",
    ],
)
def test_an_expensive_expression_ends_within_a_second(expression: str) -> None:
    started = time.process_time()
    outcome = evaluate(expression)
    assert outcome.truth is not Truth.TRUE or "size" in expression
    assert time.process_time() - started < 5


def test_an_expression_beyond_the_cost_limit_fails_as_in_kubernetes() -> None:
    nested = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9].all(a, " * 6 + "a >= 0" + ")" * 6
    outcome = evaluate(nested)
    assert outcome == Outcome(Truth.RUN_ERROR, "operation cancelled: actual cost limit exceeded")


def test_an_expression_that_is_no_text_in_utf8_is_left_unjudged() -> None:
    outcome = evaluate("device.driver == '\ud800'")
    assert outcome.truth is Truth.UNJUDGED
    assert "half of a surrogate pair" in outcome.text


def test_an_expression_nested_beyond_the_library_is_left_unjudged() -> None:
    outcome = evaluate("(" * 200 + "true" + ")" * 200)
    assert outcome.truth is Truth.UNJUDGED
    assert outcome.text


def test_without_the_library_no_selector_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    load_library.cache_clear()
    load_environment.cache_clear()
    remember_selector.cache_clear()
    monkeypatch.setitem(sys.modules, "cel_expr_python", None)
    try:
        outcome = evaluate("true")
    finally:
        for remembered in (load_library, load_environment, remember_selector):
            remembered.cache_clear()
    assert outcome.truth is Truth.UNJUDGED
    assert "schedulerlog[claims]" in outcome.text
