"""Values and operators at their bounds, as the specification of CEL and the libraries of Kubernetes define them."""

import pytest

from engine.claims.cel.compiler import parse_expression
from engine.claims.cel.rendering import render
from engine.claims.cel.selector import Outcome, Truth, compile_selector
from tests.support.builders.cel_devices import build_device


@pytest.mark.parametrize(
    "expression",
    [
        # 64-bit integers (langdef.md, "Values").
        "9223372036854775806 + 1 == 9223372036854775807",
        "-9223372036854775807 - 1 == -9223372036854775808",
        "18446744073709551614u + 1u == 18446744073709551615u",
        "uint(1.8e19) == 18000000000000000000u",
        "int(9.2e18) == 9200000000000000000",
        # Times from year 1 to 9999.
        "timestamp('9999-12-31T23:59:59Z') - duration('1s') == timestamp('9999-12-31T23:59:58Z')",
        "timestamp('0001-01-01T00:00:00Z') + duration('1s') == timestamp('0001-01-01T00:00:01Z')",
        # Equality of collections, members, optional entries.
        "!(1 in [])",
        "1 in [1, 2] && !(3 in [1, 2])",
        "'a' in {'a': 1} && !('b' in {'a': 1})",
        "{'a': 1, 'b': 2} == {'b': 2, 'a': 1}",
        "{'a': 1} != {'b': 1}",
        "{'a': [1]} != {'a': [2]}",
        "[1, 2] != [1] && [[1], [2]] == [[1], [2]]",
        "size({?'a': optional.of(1)}) == 1 && size({?'a': optional.none()}) == 0",
        "optional.none() == optional.none() && optional.of(1) != optional.none()",
        # Order of numbers of different types, and of other types.
        "1 < 2.5 && 1u < 2 && 2 > 1u && 1.5 >= 1",
        "'a' < 'b' && b'a' < b'b' && false < true",
        # Texts and lists of Kubernetes' libraries.
        "'abc'.indexOf('') == 0 && 'abc'.indexOf('', 2) == 2 && 'abc'.indexOf('c') == 2 && 'abc'.indexOf('d') == -1",
        "[1].filter(number, number > 1).sum() == 0 && [1.5, 2.5].sum() == 4.0 && [2, 3].sum() == 5",
        "url('https://user@example.com:80/path?a=b').getHost() == 'example.com:80'",
        "url('https://example.com/path').getEscapedPath() == '/path'",
        "url('https://[::1]:80/path').getHost() == '[::1]:80' && url('https://[::1]:80/path').getHostname() == '::1'",
        "url('https://[::1]:80/path').getPort() == '80' && url('https://[::1]/').getPort() == ''",
        "url('https://example.com:80/').getHostname() == 'example.com' && url('https://a.b/').getPort() == ''",
        "ip('ff02::1').isLinkLocalMulticast() && !ip('ff05::1').isLinkLocalMulticast()",
        "ip('224.0.0.1').isLinkLocalMulticast() && !ip('224.0.1.1').isLinkLocalMulticast()",
        "!format.uuid().validate('123e4567-e89b-12d3-a456-426614174000').hasValue()",
        "format.uuid().validate('123e4567').hasValue()",
        "!format.byte().validate('aGVsbG8=').hasValue() && format.byte().validate('!').hasValue()",
    ],
)
def test_the_expression_is_true(expression: str) -> None:
    assert compile_selector(expression).evaluate(build_device()) == Outcome(Truth.TRUE)


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("9223372036854775807 + size('a') > 0", "integer overflow"),
        ("-9223372036854775808 - size('a') < 0", "integer overflow"),
        ("18446744073709551615u + uint(size('a')) > 0u", "unsigned integer overflow"),
        ("int(double(size('a')) * 9.3e18) > 0", "integer overflow"),
        ("uint(double(size('a')) * 1.9e19) > 0u", "unsigned integer overflow"),
        (
            "timestamp('9999-12-31T23:59:59Z') + duration('1s') > timestamp('2000-01-01T00:00:00Z')",
            "timestamp overflow",
        ),
    ],
)
def test_a_value_beyond_its_type_is_an_error(expression: str, error: str) -> None:
    outcome = compile_selector(expression).evaluate(build_device())
    assert (outcome.truth, error in outcome.text) == (Truth.RUN_ERROR, True), outcome


@pytest.mark.parametrize(
    "expression",
    [
        "a || b && c", "(a || b) && c", "a == b && c != d", "a == b == c", "a == (b == c)", "a + b * c",
        "(a + b) * c",
        "a - b - c", "a - (b - c)", "a % b / c", "-a + b", "-(a + b)", "!(a && b)", "!a || b", "a ? b : c", "a[b].c",
        "a[?b]", "has(a.b)", "[a, b]", "{a: b}", "a in b", "a < b + 1", "a < b in c", "a in (b in c)",
        "(a ? b : c) || d", "a || (b ? c : d)", "a ? b : c ? d : e",
        "(a ? b : c) ? d : e", "!(a ? b : c)", "(a ? b : c) == d", "a ? b || c : d",
        "-a.b", "(-a).b", "(a + b).c", "[a ? b : c]",
    ],
)  # fmt: skip
def test_an_expression_is_written_with_the_parentheses_that_it_needs(expression: str) -> None:
    node = parse_expression(expression)
    assert node is not None
    assert render(node) == expression
