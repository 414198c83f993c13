"""Plans of expressions: values, costs, constants and variables.

Values are those of CEL's language definition. Costs follow Kubernetes' rules
(https://kubernetes.io/docs/reference/using-api/cel/#runtime-cost-budget): one for a variable, one for each step from
it, one for most calls; constants cost nothing.
"""

import pytest

from engine.claims.cel.compiler import load_environment
from engine.claims.cel.frames import Frame
from engine.claims.cel.planner import EvaluationPlan, plan_program
from engine.claims.cel.syntax import Call, CheckedExpression, Comprehension, Literal, StructLiteral, iterate_nodes
from engine.claims.cel.values import EvaluationError, TypeValue, Uint, UnjudgedError, Value, to_text
from engine.claims.cel.wire import decode_checked
from tests.support.builders.cel_devices import GPU, build_device


def check(text: str) -> CheckedExpression:
    return decode_checked(load_environment(False).compile(text).serialize(), text)


def measure_cost(plan: EvaluationPlan) -> int:
    frame = Frame(build_device(), plan.slots)
    plan.step.evaluate(frame)
    return frame.cost


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("1", 0),
        ("true", 0),
        ("device.driver", 2),
        (GPU, 3),
        (f"{GPU}.index", 4),
        (f"{GPU}['index']", 4),
        (f"has({GPU}.index)", 3),
        (f"has({GPU}.rack)", 3),
        # A key that is itself a chain costs its steps only; the value that the outer chain begins with costs one.
        ("{'gpu.nvidia.com': 7}[device.driver]", 3),
        ("device.attributes[device.driver].index", 5),
        # A key of another form costs what it costs.
        ("{'a': 7}['' + 'a']", 3),
        # Only the branch that is taken counts, without its variable.
        (f"{GPU}.mig ? device.driver : 'none'", 4),
        (f"!{GPU}.mig ? device.driver : 'none'", 6),
        (f"{GPU}.mig ? 1 : 2 + 3", 5),
        # The step to an absent value does not count.
        (f"{GPU}[?'index']", 4),
        (f"{GPU}.?index", 4),
        (f"{GPU}[?'rack']", 3),
        # Calls and operators: one each, and their operands.
        (f"-{GPU}.index", 5),
        (f"!{GPU}.mig", 5),
        (f"{GPU}.index + 1", 5),
        (f"{GPU}.index < 1", 5),
        (f"{GPU}.index == 1", 5),
        (f"{GPU}.index != 1", 5),
        ("size(device.driver)", 3),
        ("device.driver.size()", 3),
        # Conversions of constants are made once.
        ("string(1)", 0),
        ("string(device.driver)", 3),
        # A constant list is looked up, any other is walked.
        (f"{GPU}.index in [1, 2, 3]", 4),
        (f"{GPU}.index in [b'a', b'b', b'c']", 7),
        (f"3 in [{GPU}.index, 1, 2]", 17),
        (f"{GPU}.index in []", 0),
        ("[1, 2]", 0),
        ("{'a': 1}", 0),
        (f"[{GPU}.index]", 14),
        (f"{{'a': {GPU}.index}}", 34),
        # The first term that decides ends it.
        (f"true || {GPU}.mig", 0),
        (f"false && {GPU}.mig", 0),
        (f"false || {GPU}.mig", 4),
        (f"true && ({GPU}.mig && {GPU}.mig)", 4),
    ],
)
def test_an_expression_costs_its_variables_steps_and_calls(text: str, cost: int) -> None:
    assert measure_cost(plan_program(check(text))) == cost


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("10 - 2 - 3", 5),
        ("7 / 2 + 7 % 2", 4),
        ("3u - 1u", Uint(2)),
        ("-(1 - 3)", 2),
        ("!(1 < 2)", False),
        ("'a' < 'b' && 2 <= 2 && 3 > 2 && 3 >= 3", True),
        ("2 < 2 || 3 <= 2 || 2 > 2 || 2 >= 3", False),
        ("dyn(1) == 1.0", True),
        ("1 != 1", False),
        ("size([1, 2])", 2),
        # Errors are absorbed by a term that decides, wherever it stands.
        ("1 / 0 == 1 || true", True),
        ("true || 1 / 0 == 1", True),
        ("false && 1 / 0 == 1", False),
        ("1 / 0 == 1 && (2 / 0 == 1 && false)", False),
        ("false || (true && false) || true", True),
        ("true && (false || true)", True),
        # Optional values.
        ("optional.none().orValue(1)", 1),
        ("optional.of(2).orValue(1)", 2),
        ("optional.of(2).or(optional.of(1)).value()", 2),
        ("optional.none().or(optional.of(1)).value()", 1),
        ("{'a': 1}[?'a'].value()", 1),
        ("{'a': 1}.?b.orValue(3)", 3),
        ("[1, 2][?5].orValue(9)", 9),
        ("{'a': {'b': 1}}.?a.b.value()", 1),
        ("{'a': {'b': 1}}.a.b", 1),
        ("[[1, 2], [3]][0][1]", 2),
        ("has({'a': 1}.a)", True),
        ("has({'a': 1}.b)", False),
        # Membership.
        ("1 in [1, 2]", True),
        ("3 in [1, 2]", False),
        ("dyn(2.0) in [1, 2]", True),
        ("dyn(true) in [0, 1]", False),
        ("b'a' in [b'a']", True),
        ("[1] in [[2], [1]]", True),
        ("1 in []", False),
        ("'a' in {'a': 1}", True),
        ("1 in {'a': 1}.map(k, 1)", True),
        # Loops.
        ("[1, 2].exists(x, x == 2)", True),
        ("[1, 2].all(x, x == 2)", False),
        ("[0, 1].exists(x, 1 / x == 1)", True),
        ("[0, 1].all(x, 1 / x == 2)", False),
        ("[1, 2].exists(x, [3].exists(x, x == 3) && x == 2)", True),
        ("[1, 2].exists(x, [3].exists(y, y == x + 1)) && [1].exists(x, x == 1)", True),
        ("[5].exists(device, device == 5) && device.driver == 'gpu.nvidia.com'", True),
        ("[5, 6].exists(i, x, i == 1 && x == 6)", True),
        ("{'a': 1}.exists(k, v, k == 'a' && v == 1)", True),
        ("cel.bind(x, 2, x * x)", 4),
        ("cel.bind(x, 2, cel.bind(y, 3, x * y) + x)", 8),
        # Functions of every library.
        ("'abc'.startsWith('a')", True),
        ("int('3')", 3),
        ("duration('1h').getHours()", 1),
        ("quantity('1k').isGreaterThan(quantity('1'))", True),
        ("ip('10.0.0.1').family()", 4),
        ("url('http://a.b/c').getHost()", "a.b"),
        ("'a1'.find('[0-9]')", "1"),
        ("[3, 1].min()", 1),
        ("type(1)", TypeValue("int")),
        ("int", TypeValue("int")),
    ],
)
def test_an_expression_has_its_value(text: str, value: Value) -> None:
    evaluated = plan_program(check(text)).run(build_device())
    assert (type(evaluated), evaluated) == (type(value), value)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("[1, 'a', [2u]]", '[1, "a", [2]]'),
        ("[?optional.of(1), ?optional.none(), 2]", "[1, 2]"),
        ("[device.driver, 'a']", '["gpu.nvidia.com", "a"]'),
        ("{'a': 1, 'b': [true]}", '{"a": 1, "b": [true]}'),
        ("{'a': 1, ?'b': optional.none(), ?'c': optional.of(3)}", '{"a": 1, "c": 3}'),
        ("{device.driver: 1}", '{"gpu.nvidia.com": 1}'),
        ("{'a': device.driver}", '{"a": "gpu.nvidia.com"}'),
        ("[1, 2].map(x, x + 1)", "[2, 3]"),
        ("[1, 2, 3].filter(x, x != 2)", "[1, 3]"),
        ("[1, 2].map(x, [3, 4].map(y, x * y))", "[[3, 4], [6, 8]]"),
        ("{'a': 1}.transformMap(k, v, v + 1)", '{"a": 2}'),
    ],
)
def test_a_list_or_map_has_its_elements(text: str, printed: str) -> None:
    assert to_text(plan_program(check(text)).run(build_device())) == printed


@pytest.mark.parametrize(
    ("text", "constant"),
    [
        ("1u", Uint(1)), ("'a'", "a"), ("null", None), ("[1, [2]]", (1, (2,))), ("int", TypeValue("int")),
        ("int('3')", 3), ("double(1)", 1.0), ("device.driver in []", False),
    ],
)  # fmt: skip
def test_no_device_decides_a_constant(text: str, constant: Value) -> None:
    step = plan_program(check(text)).step
    assert step.constant is not None
    assert (type(step.constant.value), step.constant.value) == (type(constant), constant)


def test_a_map_of_constants_is_a_constant() -> None:
    constant = plan_program(check("{'a': 1, 2u: 'b'}")).step.constant
    assert constant is not None
    assert to_text(constant.value) == '{"a": 1, 2: "b"}'


@pytest.mark.parametrize(
    "text",
    ["1 + 1", "size('a')", "[device.driver]", "[1, ?optional.of(1)]", "{?'a': optional.of(1)}", "{device.driver: 1}",
     "{'a': device.driver}", "string(device.driver)", "device.driver in ['a']", "{'a': 1}.a"],
)  # fmt: skip
def test_any_other_expression_is_evaluated_on_each_device(text: str) -> None:
    assert plan_program(check(text)).step.constant is None


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("int('x')", "type conversion error"),
        ("device.driver.find('(')", "error parsing regexp"),
        ("device.driver.findAll('(')", "error parsing regexp"),
    ],
)
def test_a_malformed_constant_fails_before_any_device_is_read(text: str, error: str) -> None:
    with pytest.raises(EvaluationError, match=error):
        plan_program(check(text))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("dyn(1).find('a')", r"^no such overload$"),
        ("dyn(1).findAll('a')", r"^no such overload$"),
        ("dyn(1).find(device.driver)", r"^no such overload: find\(int, string\)$"),
        ("device.driver.find('' + '(')", "error parsing regexp"),
        ("1 / 0 == 1", "division by zero"),
        ("1 / 0 == 1 && true", "division by zero"),
        ("device.attributes['gpu.nvidia.com'].rack == 'r1'", "no such key: rack"),
        ("optional.none().value()", r"optional\.none\(\) dereference"),
        ("[1][1]", "index out of bounds: 1"),
    ],
)
def test_an_error_at_run_time_has_the_text_of_kubernetes(text: str, error: str) -> None:
    plan = plan_program(check(text))
    with pytest.raises(EvaluationError, match=error):
        plan.run(build_device())


def test_a_message_is_not_judged() -> None:
    checked = check("true")
    with pytest.raises(UnjudgedError, match=r"^the message google\.protobuf\.Empty is not judged"):
        plan_program(checked, StructLiteral(1, "google.protobuf.Empty"))


def test_a_function_that_no_library_here_has_is_not_judged() -> None:
    checked = check("true")
    with pytest.raises(UnjudgedError, match=r"^the function authorizer is not judged"):
        plan_program(checked, Call(1, "authorizer", None, (Literal(2, 1),)))


def test_a_part_is_evaluated_with_values_for_the_variables_around_it() -> None:
    checked = check("[1].exists(x, [2].exists(y, x * 10 + y == 12))")
    loops = [node for node in iterate_nodes(checked.root) if isinstance(node, Comprehension)]
    part = next(node for node in iterate_nodes(loops[-1].step) if isinstance(node, Call) and node.function == "_+_")
    plan = plan_program(checked, part, ["x", "y"])
    assert plan.slots == 2
    assert plan.run(build_device(), (4, 5)) == 45
    swapped = plan_program(checked, part, ["y", "x"])
    assert swapped.run(build_device(), (4, 5)) == 54


@pytest.mark.parametrize(
    ("text", "slots"),
    [
        ("true", 0),
        # A loop needs its result and one or two variables.
        ("[1].exists(x, x == 1)", 2),
        ("[1].exists(i, x, x == 1)", 3),
        ("[1].exists(x, x == 1) && [1].exists(x, x == 1)", 4),
        ("[1].exists(x, [1].exists(y, y == x))", 4),
    ],
)
def test_every_variable_has_a_slot(text: str, slots: int) -> None:
    assert plan_program(check(text)).slots == slots
