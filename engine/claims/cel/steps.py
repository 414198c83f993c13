"""Operators, calls, literals and loops as functions that evaluate their operands in a frame."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from engine.claims.cel import costs
from engine.claims.cel.arithmetic import ARITHMETIC, refuse_operand
from engine.claims.cel.frames import Evaluate, EvaluationStep, Frame
from engine.claims.cel.functions import Function
from engine.claims.cel.lists import contains, take_value
from engine.claims.cel.values import (
    NO_OVERLOAD,
    ORDERED,
    EvaluationError,
    MapValue,
    OptionalValue,
    Value,
    compare,
    is_equal,
    to_map_key,
)

COMPARISONS: Final[dict[str, Callable[[int], bool]]] = {
    "_<_": lambda order: order < 0,
    "_<=_": lambda order: order <= 0,
    "_>_": lambda order: order > 0,
    "_>=_": lambda order: order >= 0,
}
"""Comparisons by their names, of the order of both sides."""


@dataclass(frozen=True, slots=True)
class Loop:
    """The parts of a loop and the slots of its variables."""

    values: Evaluate
    start: Evaluate
    condition: EvaluationStep
    step: Evaluate
    accumulator: int
    variables: list[int]


def decide(terms: Sequence[Evaluate], deciding: bool, frame: Frame) -> Value:
    """Evaluate ``&&`` or ``||``: the first term with the deciding value decides, errors notwithstanding."""
    error: EvaluationError | None = None
    for term in terms:
        try:
            value = term(frame)
        except EvaluationError as cause:
            error = error or cause
            continue
        if value is deciding:
            return deciding
        if type(value) is not bool:
            error = error or EvaluationError(NO_OVERLOAD)
    if error:
        raise error
    return not deciding


def is_not_strictly_false(operand: Evaluate, frame: Frame) -> bool:
    frame.spend(1)
    try:
        return operand(frame) is not False
    except EvaluationError:
        return True


def choose_branch(condition: Evaluate, truthy: Evaluate, falsy: Evaluate, frame: Frame) -> Value:
    value = condition(frame)
    if value is True:
        return truthy(frame)
    if value is False:
        return falsy(frame)
    raise EvaluationError(NO_OVERLOAD)


def choose_present(optional: Evaluate, alternative: Evaluate, takes_value: bool, frame: Frame) -> Value:
    value = optional(frame)
    if type(value) is not OptionalValue:
        raise EvaluationError(NO_OVERLOAD)
    if not value.has_value:
        return alternative(frame)
    return take_value(value) if takes_value else value


def check_equality(left: Evaluate, right: Evaluate, expected: bool, frame: Frame) -> bool:
    values = (left(frame), right(frame))
    frame.spend(costs.compare_equal(values))
    return is_equal(*values) is expected


def check_order(left: Evaluate, right: Evaluate, operator: str, frame: Frame) -> bool:
    values = (left(frame), right(frame))
    frame.spend(costs.COSTS[operator](values))
    if type(values[0]) not in ORDERED:
        raise refuse_operand(values[0], operator)
    return COMPARISONS[operator](compare(*values))


def calculate(left: Evaluate, right: Evaluate, operator: str, frame: Frame) -> Value:
    values = (left(frame), right(frame))
    frame.spend(costs.COSTS[operator](values) if operator == "_+_" else 1)
    return ARITHMETIC[operator](*values)


def apply(operand: Evaluate, implementation: Callable[[Value], Value], frame: Frame) -> Value:
    value = operand(frame)
    frame.spend(1)
    return implementation(value)


def call_function(function: Function, operands: Sequence[Evaluate], cost: costs.Cost | None, frame: Frame) -> Value:
    arguments = [operand(frame) for operand in operands]
    overload = function.choose(arguments)
    frame.spend(cost(arguments) if cost else 1)
    return overload.implementation(*arguments)


def is_member(value: Evaluate, keys: frozenset[Any], frame: Frame) -> bool:
    return to_map_key(value(frame)) in keys


def check_membership(value: Evaluate, values: Evaluate, frame: Frame) -> bool:
    element, collection = value(frame), values(frame)
    frame.spend(max(1, len(collection)) if type(collection) is tuple else 1)
    return contains(collection, element)


def make_list(elements: Sequence[Evaluate], optional: frozenset[int], frame: Frame) -> Value:
    values = []
    for position, element in enumerate(elements):
        value = element(frame)
        if position not in optional:
            values.append(value)
        elif type(value) is not OptionalValue:
            raise EvaluationError("cannot initialize optional list element from non-optional value")
        elif value.has_value:
            values.append(value.value)
    frame.spend(costs.LIST_LITERAL)
    return tuple(values)


def make_map(entries: Iterable[tuple[Evaluate, Evaluate, bool]], frame: Frame) -> MapValue:
    pairs = []
    for key_step, value_step, is_optional in entries:
        key, value = key_step(frame), value_step(frame)
        if is_optional:
            if type(value) is not OptionalValue:
                raise EvaluationError("cannot initialize optional entry from non-optional value")
            if not value.has_value:
                continue
            value = value.value
        pairs.append((key, value))
    frame.spend(costs.MAP_LITERAL)
    return build_map(pairs)


def build_map(pairs: Iterable[tuple[Value, Value]]) -> MapValue:
    return MapValue({to_map_key(key): (key, value) for key, value in pairs})


def run_loop(loop: Loop, result_step: Evaluate, frame: Frame) -> Value:
    values = loop.values(frame)
    slots = frame.slots
    slots[loop.accumulator] = loop.start(frame)
    is_endless = loop.condition.constant is not None and loop.condition.constant.value is True
    for items in _iterate(values, len(loop.variables)):
        frame.count_round()
        for slot, item in zip(loop.variables, items, strict=True):
            slots[slot] = item
        if not is_endless and loop.condition.evaluate(frame) is not True:
            break
        try:
            slots[loop.accumulator] = loop.step(frame)
        except EvaluationError as error:
            slots[loop.accumulator] = error
    return result_step(frame)


def _iterate(values: Value, count: int) -> Iterable[tuple[Value, ...]]:
    """Yield the values of the variables of a loop round by round."""
    if type(values) is MapValue:
        return values.iterate() if count == 2 else ((key,) for key, _ in values.iterate())
    if type(values) is tuple:
        return enumerate(values) if count == 2 else ((value,) for value in values)
    raise EvaluationError(f"got '{type(values).__name__}', expected iterable type")
