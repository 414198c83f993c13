"""Expressions that compile or not, with the errors that Kubernetes' compiler gave for them (`tests/conformance`)."""

import pytest

from engine.claims.cel.checks import CompileError
from engine.claims.cel.compiler import MAX_LENGTH, compile_expression, load_environment, parse_expression
from engine.claims.cel.syntax import Call, Identifier, Select
from engine.claims.cel.values import UnjudgedError

GPU = "device.attributes['gpu.nvidia.com']"


def describe(expression: str, *errors: tuple[int, str], line: int = 1) -> str:
    """Describe errors as cel-go prints them: position, text, the line, and a mark below the column."""
    text = expression.split("\n")[line - 1]
    return "compilation failed: " + "\n".join(
        f"ERROR: <input>:{line}:{column}: {error}\n | {text}\n | {'.' * (column - 1)}^" for column, error in errors
    )


def fail(expression: str, *, with_lists: bool = False) -> str:
    with pytest.raises(CompileError) as raised:
        compile_expression(expression, with_lists=with_lists)
    return str(raised.value)


@pytest.mark.parametrize(
    ("expression", "column", "error"),
    [
        ("[1,'a'] == []", 4, "expected type 'int' but found 'string'"),
        ("device.driver.matches('(')", 23, "invalid matches argument"),
        ("duration('x') > duration('30m')", 10, "invalid duration argument"),
        ("nosuchfn(device.driver)", 9, "undeclared reference to 'nosuchfn' (in container '')"),
        (f"{GPU}.driverVersion.nope() == 550", 55, "undeclared reference to 'nope' (in container '')"),
        (
            f"{GPU}.model.exists(x, true)",
            36,
            "expression of type 'any' cannot be range of a comprehension (must be list, map, or dynamic)",
        ),
        ("[1,2].?x.hasValue()", 6, "type 'list(int)' does not support field selection"),
        ("device.?nope.hasValue()", 7, "undefined field 'nope'"),
        ("device.nosuch", 7, "undefined field 'nosuch'"),
        (
            "device.attributes[",
            19,
            (
                "Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', '?', 'true', 'false', "
                "'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
            ),
        ),
        # Operators and functions name the types of their operands.
        ("1 == 1.0", 3, "found no matching overload for '_==_' applied to '(int, double)'"),
        ("device.driver > 3", 15, "found no matching overload for '_>_' applied to '(string, int)'"),
        ("[1,2][1.0] == 2", 6, "found no matching overload for '_[_]' applied to '(list(int), double)'"),
        (f"{GPU}.model in 'A100'", 43, "found no matching overload for '@in' applied to '(any, string)'"),
        (
            f"{GPU}.driverVersion < semver('1.0.0')",
            51,
            "found no matching overload for '_<_' applied to '(any, kubernetes.Semver)'",
        ),
        (
            "device.attributes[1].x == 'A'",
            18,
            "found no matching overload for '_[_]' applied to '(map(string, map(string, any)), int)'",
        ),
        (
            "string(device.capacity['gpu.nvidia.com'].memory) == '80Gi'",
            7,
            "found no matching overload for 'string' applied to '(kubernetes.Quantity)'",
        ),
        (
            "[1,2,3].first() == 1",
            17,
            "found no matching overload for '_==_' applied to '(optional_type(int), int)'",
        ),
        # Methods have the type of the receiver in front.
        ("'abc'.reverse() == 'cba'", 14, "found no matching overload for 'reverse' applied to 'string.()'"),
        (f"{GPU}.model.contains(1)", 51, "found no matching overload for 'contains' applied to 'any.(int)'"),
        (f"{GPU}.index.compareTo(1) == 0", 52, "found no matching overload for 'compareTo' applied to 'any.(int)'"),
    ],
)
def test_an_error_is_the_one_of_kubernetes(expression: str, column: int, error: str) -> None:
    assert fail(expression) == describe(expression, (column, error))


def test_errors_follow_in_the_order_of_the_text() -> None:
    expression = "math.greatest(1,2) == 2"
    assert fail(expression) == describe(
        expression,
        (1, "undeclared reference to 'math' (in container '')"),
        (14, "undeclared reference to 'greatest' (in container '')"),
    )
    expression = "nosuchfn(device.nosuch) && other()"
    assert fail(expression) == describe(
        expression,
        (9, "undeclared reference to 'nosuchfn' (in container '')"),
        (16, "undefined field 'nosuch'"),
        (33, "undeclared reference to 'other' (in container '')"),
    )


@pytest.mark.parametrize(
    ("expression", "line", "column", "error"),
    [
        (
            "true &&\n'abc'.reverse() == 'cba'",
            2,
            14,
            "found no matching overload for 'reverse' applied to 'string.()'",
        ),
        ("true\n  &&\n  1 == 1.0", 3, 5, "found no matching overload for '_==_' applied to '(int, double)'"),
        ("true ||\n  'abc'.contains(1)", 2, 17, "found no matching overload for 'contains' applied to 'string.(int)'"),
        (
            "string(quantity('1')) == '1'\n&& true",
            1,
            7,
            "found no matching overload for 'string' applied to '(kubernetes.Quantity)'",
        ),
    ],
)
def test_an_error_names_its_line(expression: str, line: int, column: int, error: str) -> None:
    assert fail(expression) == describe(expression, (column, error), line=line)


@pytest.mark.parametrize(
    ("expression", "kind"), [("1 + 1", "int"), ("device.driver", "string"), ("device", "kubernetes.DRADevice")]
)
def test_a_selector_has_to_be_true_or_false(expression: str, kind: str) -> None:
    assert fail(expression) == f"must evaluate to bool or the unknown type, not {kind}"


@pytest.mark.parametrize(
    ("expression", "with_lists", "compiles"),
    [
        ("true", False, True),
        (f"{GPU}.mig", False, True),
        ("dyn(true)", False, False),
        ("dyn(true)", True, True),
        # With the gate of attributes with several values, an attribute is of any type at run time.
        (f"{GPU}.mig", True, True),
        (f"{GPU}.models.exists(x, x == 'A100')", True, True),
        (f"{GPU}.models.exists(x, x == 'A100')", False, False),
        (f"{GPU}.models.includes('A100')", True, True),
        ("1 + 1", True, False),
    ],
)
def test_the_gate_of_lists_changes_the_type_of_attributes(expression: str, with_lists: bool, compiles: bool) -> None:
    if compiles:
        assert compile_expression(expression, with_lists=with_lists).text == expression
    else:
        assert fail(expression, with_lists=with_lists)


def test_the_gate_of_lists_is_off_unless_it_is_named() -> None:
    with pytest.raises(CompileError, match=r"not dyn$"):
        compile_expression("dyn(true)")


@pytest.mark.parametrize(
    "expression",
    [
        # One function of each of Kubernetes' libraries and of each extension.
        "quantity('1Gi').isGreaterThan(device.capacity['a'].memory)",
        "semver('1.0.0').major() == 1",
        "ip('10.0.0.1').family() == 4",
        "cidr('10.0.0.0/8').containsIP('10.0.0.1')",
        "url('http://a').getScheme() == 'http'",
        "format.named('date').hasValue()",
        "'a'.find('a') == 'a'",
        "[1].isSorted()",
        "[1].indexOf(1) == 0",
        "[2, 1].sort() == [1, 2]",
        "[1, 2].sortBy(x, -x) == [2, 1]",
        "sets.contains([1], [1])",
        "cel.bind(x, 1, x == 1)",
        "optional.of(1).hasValue()",
        "device.?driver.hasValue()",
        "[1].exists(i, v, v == i + 1)",
        "'%s'.format(['a']) == 'a'",
        "string(1) == '1'",
        "device.allowMultipleAllocations",
        "device.driver == 'a'",
    ],
)
def test_kubernetes_functions_are_declared(expression: str) -> None:
    checked = compile_expression(expression)
    assert checked.result_type == "bool"
    assert checked.text == expression


@pytest.mark.parametrize(
    "expression", ["math.greatest(1, 2) == 2", "base64.encode(b'a') == 'a'", "string(quantity('1')) == '1'"]
)
def test_functions_of_other_libraries_are_not(expression: str) -> None:
    assert fail(expression).startswith("compilation failed: ERROR: <input>:1:")


@pytest.mark.parametrize(
    ("expression", "size"),
    [
        ("'" + "a" * (MAX_LENGTH - 8) + "' == ''", MAX_LENGTH),
        ("'" + "a" * (MAX_LENGTH - 7) + "' == ''", MAX_LENGTH + 1),
        # Bytes count, not characters.
        ("'" + "ä" * 6000 + "' == ''", 12_008),
    ],
)
def test_an_expression_has_no_more_than_10_kib(expression: str, size: int) -> None:
    assert len(expression.encode()) == size
    if size <= 10_240:
        assert compile_expression(expression).text == expression
        return
    with pytest.raises(UnjudgedError) as raised:
        compile_expression(expression)
    assert str(raised.value) == f"the expression has {size:,} bytes, more than the 10,240 that Kubernetes allows"


def test_an_expression_that_the_library_does_not_read_is_left_open() -> None:
    with pytest.raises(UnjudgedError, match=r"^the expression is nested more deeply than the CEL library here reads"):
        compile_expression("(" * 300 + "true" + ")" * 300)


@pytest.mark.parametrize("text", ["", "a +", "a b", "(a", "a.1"])
def test_a_malformed_text_does_not_parse(text: str) -> None:
    assert parse_expression(text) is None


def test_an_expression_is_parsed_without_types() -> None:
    assert parse_expression("unknown") == Identifier(1, "unknown")
    node = parse_expression("device.nosuch.call(1)")
    assert isinstance(node, Call)
    assert isinstance(node.target, Select)
    assert (node.function, node.target.field) == ("call", "nosuch")


def test_a_compiled_expression_has_positions_of_its_nodes() -> None:
    checked = compile_expression("true && false")
    assert isinstance(checked.root, Call)
    assert checked.positions[checked.root.id] == 5
    assert [checked.positions[node.id] for node in checked.root.arguments] == [0, 8]


def test_an_environment_is_loaded_once() -> None:
    assert load_environment(False) is load_environment(False)
    assert load_environment(False) is not load_environment(True)
