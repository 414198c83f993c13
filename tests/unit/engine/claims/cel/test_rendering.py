"""Expressions as text: parentheses by the precedence of CEL's operators, and pieces of a text that was written.

Precedence: https://github.com/google/cel-spec/blob/master/doc/langdef.md, "Syntax".
"""

from typing import cast

import pytest

from engine.claims.cel.compiler import compile_expression, parse_expression
from engine.claims.cel.rendering import Range, is_bind, render, split_range
from engine.claims.cel.syntax import Call, Identifier, ListLiteral, Literal, MapLiteral, Node, StructLiteral
from tests.support.builders.cel_devices import GPU


def parse(text: str) -> Node:
    node = parse_expression(text)
    assert node is not None, text
    return node


@pytest.mark.parametrize(
    "text",
    [
        # Literals.
        "null", "true", "false", "1", "-1", "1u", "1.5", "'a'", "''", r"'it\'s'", r"'a\\b'", r"'a\nb'", "b'a'",
        "[]", "[a]", "[a, 'b', 1]", "{}", "{'a': 1}", "{'a': b, c: 'd'}", "a.b.Message{…}",
        # Chains.
        "a.b.c", "a[0].b", "a['b']", "a[?'b']", "a.?b", "a.?b.c", "a[b[c]]", "has(a.b)", "has(a.b.c)",
        # Calls.
        "f()", "f(a, 1)", "a.f()", "a.f(b, c)", "a.b.f(c).g()", "sets.contains([1], [2])", "(a + b).f()", "(-a).f()",
        # From the weakest operator to the strongest.
        "a ? b : c", "a || b", "a && b", "a == b", "a != b", "a < b", "a <= b", "a > b", "a >= b", "a in b",
        "a + b", "a - b", "a * b", "a / b", "a % b", "!a", "-a",
        "a || b && c", "(a || b) && c", "a && b == c", "(a && b) == c", "a == b + c", "(a == b) + c", "a + b * c",
        "(a + b) * c", "-a * b", "-(a * b)", "!a == b", "!(a == b)", "a * -b", "(a ? b : c) || d", "a ? b || c : d",
        # Operators of one level bind to the left.
        "a == b == c", "a == (b == c)", "a - b - c", "a - (b - c)", "a / b * c", "a / (b * c)", "a % (b % c)",
        "a < b in c", "a < (b in c)",
        # Chains of && and || need no parentheses.
        "a && b && c && d", "a || b || c || d",
        # Conditions bind to the right.
        "a ? b : c ? d : e", "(a ? b : c) ? d : e", "a ? (b ? c : d) : e",
        "[a ? b : c]", "f(a ? b : c)", "a[b ? c : d]", "{a || b: c ? d : e}", "(a ? b : c).d", "(a || b)[0]",
        # Macros.
        "[1].exists(x, x == 1)", "a.all(x, x && b)", "a.exists_one(x, x == 1)", "a.filter(x, x > 1)",
        "a.map(x, x + 1)", "a.map(x, x > 1, x + 1)", "a.exists(k, v, k == v)", "a.all(i, v, v > i)",
        "(a + b).exists(x, x)", "cel.bind(x, a, x + 1)", "cel.bind(x, a || b, x)", "a.exists(x, x || b)",
    ],
)  # fmt: skip
def test_an_expression_is_written_as_a_person_writes_it(text: str) -> None:
    node = StructLiteral(1, "a.b.Message") if "…" in text else parse(text)
    assert render(node) == text


_LEVELS = (("||",), ("&&",), ("==", "!=", "<", "<=", ">", ">=", "in"), ("+", "-"), ("*", "/", "%"))
"""Operators of two operands, from the weakest to the strongest."""
_LEVEL = {operator: level for level, operators in enumerate(_LEVELS) for operator in operators}


@pytest.mark.parametrize("first", _LEVEL)
@pytest.mark.parametrize("second", _LEVEL)
def test_two_operators_need_parentheses_against_their_precedence(first: str, second: str) -> None:
    assert render(parse(f"a {first} b {second} c")) == f"a {first} b {second} c"
    left = f"a {first} b"
    left = left if _LEVEL[first] >= _LEVEL[second] else f"({left})"
    assert render(parse(f"(a {first} b) {second} c")) == f"{left} {second} c"
    is_free = _LEVEL[second] > _LEVEL[first] or first == second in ("&&", "||")
    right = f"b {second} c" if is_free else f"(b {second} c)"
    assert render(parse(f"a {first} (b {second} c)")) == f"a {first} {right}"


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("((a))", "a"),
        ("(a && b) && c", "a && b && c"),
        ("a && (b && c)", "a && b && c"),
        ("a || (b || c)", "a || b || c"),
        ("(a - b) - c", "a - b - c"),
        ("a+b", "a + b"),
        ('"a"', "'a'"),
        ("(a).b", "a.b"),
        ("!(a)", "!a"),
        ("a ? (b) : (c ? d : e)", "a ? b : c ? d : e"),
        ("b'\\xff'", r"b'\xff'"),
        ("{'a': 1}.transformMap(k, v, v)", "{'a': 1}.transform(k, v, …)"),
    ],
)
def test_parentheses_and_quotes_that_are_not_needed_are_left_out(text: str, rendered: str) -> None:
    assert render(parse(text)) == rendered


@pytest.mark.parametrize(
    ("text", "level", "rendered"),
    [
        ("a ? b : c", 0, "a ? b : c"), ("a ? b : c", 1, "(a ? b : c)"), ("a || b", 1, "a || b"),
        ("a || b", 2, "(a || b)"), ("a && b", 2, "a && b"), ("a && b", 3, "(a && b)"), ("a == b", 3, "a == b"),
        ("a in b", 4, "(a in b)"), ("a + b", 4, "a + b"), ("a - b", 5, "(a - b)"), ("a * b", 5, "a * b"),
        ("a % b", 6, "(a % b)"), ("!a", 6, "!a"), ("-a", 7, "(-a)"), ("a.b", 9, "a.b"), ("[a]", 9, "[a]"),
        ("f(a)", 9, "f(a)"), ("1", 9, "1"), ("a.exists(x, x)", 9, "a.exists(x, x)"), ("a[0]", 9, "a[0]"),
        ("{}", 9, "{}"), ("a.?b", 9, "a.?b"), ("has(a.b)", 9, "has(a.b)"),
    ],
)  # fmt: skip
def test_an_expression_has_parentheses_where_it_binds_less_than_its_place(text: str, level: int, rendered: str) -> None:
    assert render(parse(text), level) == rendered


@pytest.mark.parametrize(
    ("text", "expected"),
    [("cel.bind(x, 1, x)", True), ("[1].exists(x, x == 1)", False), ("[].exists(x, x)", False), ("a", False)],
)
def test_a_bound_name_is_a_loop_that_never_runs(text: str, expected: bool) -> None:
    assert is_bind(parse(text)) is expected


def find_operators(text: str, operator: str) -> list[int]:
    return [position for position in range(len(text)) if text.startswith(operator, position)]


def split(text: str, operator: str, *terms: str, span: Range | None = None) -> list[str | None]:
    ranges = split_range(text, span or (0, len(text)), find_operators(text, operator), [parse(term) for term in terms])
    return [piece and text[piece[0] : piece[1]] for piece in ranges]


@pytest.mark.parametrize(
    ("text", "operator", "terms"),
    [
        ("a && b", "&&", ["a", "b"]),
        ("a&&b&&c", "&&", ["a", "b", "c"]),
        ("  a  ||  b  ", "||", ["a", "b"]),
        ("a\n  && b\n  && c", "&&", ["a", "b", "c"]),
        ("a && (b || c)", "&&", ["a", "b || c"]),
        ("(a) && ((b))", "&&", ["a", "b"]),
        ("( a ) && b", "&&", ["a", "b"]),
        # Parentheses that close before the end are the term's.
        ("(a || b) == (c || d) && e", "&&", ["(a || b) == (c || d)", "e"]),
        ("a.b  ==  'c' || [a,b] == {a:b}", "||", ["a.b  ==  'c'", "[a,b] == {a:b}"]),
        ("x.exists(y,y>1) && sets.contains([1],[2])", "&&", ["x.exists(y,y>1)", "sets.contains([1],[2])"]),
    ],
)
def test_a_term_is_the_text_that_was_written(text: str, operator: str, terms: list[str]) -> None:
    assert split(text, operator, *terms) == terms


def test_a_term_is_looked_for_in_its_part_of_the_text() -> None:
    text = "x || (a && b)"
    operators = find_operators(text, "&&")
    assert split_range(text, (6, 12), operators, [parse("a"), parse("b")]) == [(6, 7), (11, 12)]


def test_operators_are_taken_in_the_order_of_the_text() -> None:
    terms = [parse("a"), parse("b"), parse("c")]
    assert split_range("a && b && c", (0, 11), [7, 2], terms) == [(0, 1), (5, 6), (10, 11)]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        # A parenthesis around several terms.
        ("(a && b) && c", ["a", "b", "c"]),
        ("a && b", ["a", "c"]),
        ("a && b", ["b", "b"]),
        ("a && b", ["a", "b", "c"]),
        ("a && b && c", ["a", "b"]),
        ("a && f(b)", ["a", "f(c)"]),
        ("a && [b]", ["a", "[c]"]),
        ("a && {'b': 1}", ["a", "{'c': 1}"]),
        ("a && b.c", ["a", "b.d"]),
        ("a && x.exists(y, y)", ["a", "x.exists(z, z)"]),
        ("a && 1", ["a", "2"]),
    ],
)
def test_there_are_no_pieces_where_one_is_not_its_term(text: str, terms: list[str]) -> None:
    assert split(text, "&&", *terms) == [None] * len(terms)


def test_without_a_range_there_are_no_pieces() -> None:
    assert split_range("a && b", None, [2], [parse("a"), parse("b")]) == [None, None]


@pytest.mark.parametrize(
    "term",
    [
        f"{GPU}.model == 'A100'",
        "device.capacity['a'].memory.isGreaterThan(quantity('1Gi'))",
        "device.driver in ['a', 'b']",
        "sets.contains([1], [1, 2])",
        "optional.of(1).hasValue()",
        "lists.range(3).exists(x, x == 1)",
        "{'a': 1}.exists(k, v, k == 'a')",
        "[device.driver].all(x, x == 'a')",
        "size({'a': device.driver}) == 1",
        "cel.bind(x, 1, x == 1)",
        "ip.isCanonical('10.0.0.1')",
        "!has(device.attributes['a'].b)",
        "strings.quote(device.driver) == 'a'",
        "format.named('date').hasValue()",
        "-1 < 1",
    ],
)
def test_a_checked_term_is_the_one_that_was_written(term: str) -> None:
    """The checker writes names of two parts as one, and a namespace as a part of a function's name."""
    text = f"true && ({term})"
    checked = compile_expression(text)
    root = cast("Call", checked.root)
    pieces = split_range(text, (0, len(text)), [checked.positions[root.id]], list(root.arguments))
    assert pieces == [(0, 4), (9, 9 + len(term))]


def test_a_tree_may_be_written_by_hand() -> None:
    elements = ListLiteral(1, (Identifier(2, "a"), Literal(3, 2)), frozenset())
    assert render(Call(4, "size", elements, ())) == "[a, 2].size()"
    assert render(MapLiteral(1, ())) == "{}"
