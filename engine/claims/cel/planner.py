"""A checked expression turned into Python functions that evaluate it.

Kubernetes' limit of cost is counted while they run, so that no expression runs without a bound.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from engine.claims.cel import costs
from engine.claims.cel.arithmetic import ARITHMETIC, negate, negate_truth
from engine.claims.cel.chains import Link, make_chain, read_device, read_variable
from engine.claims.cel.conversions import CONVERSIONS
from engine.claims.cel.frames import EvaluationStep, Frame, make_constant
from engine.claims.cel.functions import Function
from engine.claims.cel.kubernetes import KUBERNETES
from engine.claims.cel.lists import COLLECTIONS, measure_size
from engine.claims.cel.networks import NETWORKS
from engine.claims.cel.patterns import matches
from engine.claims.cel.steps import (
    COMPARISONS,
    Loop,
    apply,
    build_map,
    calculate,
    call_function,
    check_equality,
    check_membership,
    check_order,
    choose_branch,
    choose_present,
    decide,
    is_member,
    is_not_strictly_false,
    make_list,
    make_map,
    run_loop,
)
from engine.claims.cel.strings import STRINGS
from engine.claims.cel.syntax import (
    Call,
    CheckedExpression,
    Comprehension,
    Identifier,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    Select,
    StructLiteral,
    UintConstant,
)
from engine.claims.cel.times import TIMES
from engine.claims.cel.urls import URLS
from engine.claims.cel.values import TypeValue, Uint, UnjudgedError, Value, to_map_key

FUNCTIONS: Final[dict[str, Function]] = {
    **STRINGS, **COLLECTIONS, **CONVERSIONS, **TIMES, **KUBERNETES, **NETWORKS, **URLS,
}  # fmt: skip
_UNARY: Final[dict[str, Callable[[Value], Value]]] = {"!_": negate_truth, "-_": negate, "size": measure_size}
_HASHED: Final = frozenset({bool, int, Uint, float, str})


@dataclass(frozen=True, slots=True)
class EvaluationPlan:
    """An expression, or a part of one, that can be evaluated on devices."""

    step: EvaluationStep
    slots: int

    def run(self, device: Value, values: Sequence[Value] = ()) -> Value:
        """Evaluate on a device, with values for the variables around a part.

        Raises EvaluationError, CostError, ValueSizeError or UnjudgedError.
        """
        frame = Frame(device, self.slots)
        frame.slots[: len(values)] = values
        return self.step.evaluate(frame)


def plan_program(checked: CheckedExpression, node: Node | None = None, variables: Sequence[str] = ()) -> EvaluationPlan:
    """Plan an expression, or a node of it inside of variables; raise EvaluationError if a constant is malformed."""
    planner = _Planner(checked, variables)
    step = planner.plan(checked.root if node is None else node)
    return EvaluationPlan(step, planner.slots)


class _Planner:
    """Plans nodes; knows the variables in scope by their slots."""

    def __init__(self, checked: CheckedExpression, variables: Sequence[str]) -> None:
        self.checked = checked
        self.scope = {name: slot for slot, name in enumerate(variables)}
        self.slots = len(variables)

    def plan(self, node: Node) -> EvaluationStep:
        """Plan one node."""
        match node:
            case Literal(value=value):
                return make_constant(Uint(value.value) if isinstance(value, UintConstant) else value)
            case Identifier() | Select():
                return self._plan_chain(node)
            case Call():
                return self._plan_call(node)
            case ListLiteral():
                return self._plan_list(node)
            case MapLiteral():
                return self._plan_map(node)
            case Comprehension():
                return self._plan_loop(node)
            case StructLiteral():
                raise UnjudgedError(f"the message {node.name} is not judged in a device selector")

    # Chains of names: device.attributes["domain"].name

    def _plan_chain(self, node: Node, *, has_base_cost: bool = True) -> EvaluationStep:
        base, links = self._split_chain(node)
        is_test = isinstance(node, Select) and node.is_test
        root = self._plan_root(base)
        if root.constant and not links:
            return root
        return EvaluationStep(make_chain(root.evaluate, links, len(links) + (has_base_cost and not is_test)))

    def _split_chain(self, node: Node) -> tuple[Node, list[Link]]:
        """Split a chain into its first value and the links behind it."""
        links: list[Link] = []
        while True:
            match node:
                case Select(operand=operand, field=field, is_test=is_test):
                    links.append(Link(field, None, is_optional=is_test, is_test=is_test))
                    node = operand
                case Call(function="_[_]" | "_[?_]" | "_?._" as function, arguments=(operand, key)):
                    links.append(self._link(key, is_optional=function != "_[_]"))
                    node = operand
                case Identifier(name=name) if name.startswith("device.") and name not in self.scope:
                    links.extend(Link(part, None) for part in reversed(name.split(".")[1:]))
                    node = Identifier(node.id, "device")
                case _:
                    return node, links[::-1]

    def _link(self, key: Node, *, is_optional: bool) -> Link:
        step = self.plan(key)
        if step.constant:
            return Link(step.constant.value, None, is_optional=is_optional)
        if self._is_chain(key):
            step = self._plan_chain(key, has_base_cost=False)
        return Link(None, step.evaluate, is_optional=is_optional)

    def _is_chain(self, node: Node) -> bool:
        match node:
            case Identifier() | Select():
                return True
            case Call(function=function):
                return function in ("_[_]", "_[?_]", "_?._")
        return False

    def _plan_root(self, node: Node) -> EvaluationStep:
        if not isinstance(node, Identifier):
            return self.plan(node)
        if node.name in self.scope:
            return EvaluationStep(partial(read_variable, self.scope[node.name]))
        if node.name == "device":
            return EvaluationStep(read_device)
        return make_constant(TypeValue(node.name))

    # Calls

    def _plan_call(self, node: Call) -> EvaluationStep:
        match node.function:
            case "_&&_" | "_||_":
                terms = [self.plan(term).evaluate for term in _flatten(node, node.function)]
                return EvaluationStep(partial(decide, terms, node.function == "_||_"))
            case "_?_:_":
                return self._plan_choice(node)
            case "_[_]" | "_[?_]" | "_?._":
                return self._plan_chain(node)
            case "_==_" | "_!=_":
                left, right = (self.plan(operand).evaluate for operand in node.operands)
                return EvaluationStep(partial(check_equality, left, right, node.function == "_==_"))
            case "@in":
                return self._plan_membership(node)
            case "@not_strictly_false":
                return EvaluationStep(partial(is_not_strictly_false, self.plan(node.arguments[0]).evaluate))
            case "or" | "orValue":
                left, right = (self.plan(operand).evaluate for operand in node.operands)
                return EvaluationStep(partial(choose_present, left, right, node.function == "orValue"))
        return self._plan_function(node)

    def _plan_function(self, node: Call) -> EvaluationStep:
        steps = [self.plan(operand) for operand in node.operands]
        operands = [step.evaluate for step in steps]
        name = node.function
        if name in COMPARISONS:
            return EvaluationStep(partial(check_order, operands[0], operands[1], name))
        if name in ARITHMETIC:
            return EvaluationStep(partial(calculate, operands[0], operands[1], name))
        if name in _UNARY:
            return EvaluationStep(partial(apply, operands[0], _UNARY[name]))
        function = FUNCTIONS.get(name)
        if function is None:
            raise UnjudgedError(f"the function {name} is not judged in a device selector")
        if name in ("find", "findAll") and steps[1].constant:
            matches("", steps[1].constant.value)  # Kubernetes compiles constant patterns once.
            function = replace(function, is_terse=True)
        if name in CONVERSIONS and steps[0].constant:
            value = steps[0].constant.value
            return make_constant(function.choose([value]).implementation(value))
        return EvaluationStep(partial(call_function, function, operands, costs.COSTS.get(name)))

    def _plan_choice(self, node: Call) -> EvaluationStep:
        condition = self.plan(node.arguments[0]).evaluate
        branches = [
            self._plan_chain(branch, has_base_cost=False) if self._is_chain(branch) else self.plan(branch)
            for branch in node.arguments[1:]
        ]
        return EvaluationStep(partial(choose_branch, condition, branches[0].evaluate, branches[1].evaluate))

    def _plan_membership(self, node: Call) -> EvaluationStep:
        value, values = (self.plan(operand) for operand in node.operands)
        if values.constant and type(values.constant.value) is tuple:
            elements = values.constant.value
            if not elements:
                return make_constant(False)
            if all(type(element) in _HASHED for element in elements):
                keys = frozenset(to_map_key(element) for element in elements)
                return EvaluationStep(partial(is_member, value.evaluate, keys))
        return EvaluationStep(partial(check_membership, value.evaluate, values.evaluate))

    # Collections and loops

    def _plan_list(self, node: ListLiteral) -> EvaluationStep:
        steps = [self.plan(element) for element in node.elements]
        constants = [step.constant for step in steps if step.constant]
        if len(constants) == len(steps) and not node.optional:
            return make_constant(tuple(constant.value for constant in constants))
        return EvaluationStep(partial(make_list, [step.evaluate for step in steps], node.optional))

    def _plan_map(self, node: MapLiteral) -> EvaluationStep:
        steps = [(self.plan(entry.key), self.plan(entry.value), entry.is_optional) for entry in node.entries]
        if all(key.constant and value.constant and not is_optional for key, value, is_optional in steps):
            pairs = [(key.constant.value, value.constant.value) for key, value, _ in steps]  # type: ignore[union-attr]
            return make_constant(build_map(pairs))
        entries = [(key.evaluate, value.evaluate, is_optional) for key, value, is_optional in steps]
        return EvaluationStep(partial(make_map, entries))

    def _plan_loop(self, node: Comprehension) -> EvaluationStep:
        values, start = self.plan(node.range).evaluate, self.plan(node.start).evaluate
        scope = self.scope
        accumulator, variables = self.slots, []
        self.slots += 1
        self.scope = scope | {node.accumulator: accumulator}
        result_step = self.plan(node.result).evaluate
        for name in (node.variable, node.second_variable):
            if name:
                self.scope = self.scope | {name: self.slots}
                variables.append(self.slots)
                self.slots += 1
        loop = Loop(values, start, self.plan(node.condition), self.plan(node.step).evaluate, accumulator, variables)
        self.scope = scope
        return EvaluationStep(partial(run_loop, loop, result_step))


def _flatten(node: Node, operator: str) -> list[Node]:
    """List the operands of a chain of the same operator, which CEL parses into a balanced tree."""
    if isinstance(node, Call) and node.function == operator:
        return [term for argument in node.arguments for term in _flatten(argument, operator)]
    return [node]
