"""The parts of a selector that a device fails, with the value that it has and the value that is asked for."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from engine.claims.cel.planner import plan_program
from engine.claims.cel.rendering import Range, is_bind, render, split_range
from engine.claims.cel.syntax import (
    Call,
    CheckedExpression,
    Comprehension,
    Identifier,
    Literal,
    Node,
    Select,
    iterate_nodes,
)
from engine.claims.cel.values import CostError, EvaluationError, UnjudgedError, Value, ValueSizeError, to_text

_MISSING: Final = "no such key: "
_MAX_PARTS: Final = 32
_MAX_TEXT: Final = 300

WORDS: Final = {
    "==": "asked {}",
    "!=": "asked anything but {}",
    ">=": "asked at least {}",
    ">": "asked more than {}",
    "<=": "asked at most {}",
    "<": "asked less than {}",
    "in": "asked one of {}",
    "not in": "asked none of {}",
    "startsWith": "asked a beginning of {}",
    "endsWith": "asked an end of {}",
    "contains": "asked a part {}",
    "matches": "asked a match of {}",
    "includes": "asked {} among them",
}
"""Words for an operator with the value that is asked for."""

_OPERATORS: Final = {"_==_": "==", "_!=_": "!=", "_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">=", "@in": "in"}
_METHODS: Final = ("startsWith", "endsWith", "contains", "matches", "includes")
_INVERSE: Final = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">", "in": "not in", "not in": "in"}
_MIRROR: Final = {"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
_COMPARED: Final = {"isGreaterThan": ">", "isLessThan": "<"}


@dataclass(frozen=True, slots=True)
class FailedPart:
    """One part of a selector that is not true for a device.

    text: the part. subject, actual: the property and the value that the device has. operator, expected: the comparison
    that fails (a key of `WORDS`) and the value that is asked for; "" where the part compares nothing.
    error: CEL's error, if the part has no value. alternatives: the parts of which one would do.
    """

    text: str
    subject: str = ""
    actual: str = ""
    operator: str = ""
    expected: str = ""
    error: str = ""
    alternatives: tuple["FailedPart", ...] = ()

    def to_sentence(self) -> str:
        """Render the part as a sentence: ``memory 46068Mi, asked at least 80Gi``."""
        if self.alternatives:
            return "; or ".join(part.to_sentence() for part in self.alternatives)
        if self.error.startswith(_MISSING):
            return f"{self.error.removeprefix(_MISSING)} is not set, and {self.text} reads it"
        if self.error:
            return f"{self.text}: {self.error}"
        if self.operator:
            return f"{self.subject} {self.actual}, {WORDS[self.operator].format(self.expected)}"
        if self.subject and self.actual in ("true", "false"):
            return f"{self.subject} {self.actual}"
        return f"{self.subject} {self.actual}: {self.text} is false" if self.subject else f"{self.text} is false"


@dataclass(frozen=True, slots=True)
class _Scope:
    """A device, and the variables that surround a part."""

    checked: CheckedExpression
    device: Value
    names: tuple[str, ...] = ()
    values: tuple[Value, ...] = field(default=())

    def evaluate(self, node: Node) -> Value:
        return plan_program(self.checked, node, self.names).run(self.device, self.values)

    def bind(self, name: str, value: Value) -> "_Scope":
        return replace(self, names=(*self.names, name), values=(*self.values, value))


def explain_failure(checked: CheckedExpression, device: Value) -> tuple[FailedPart, ...]:
    """Explain which parts of a selector are not true for a device; nothing for a selector that is."""
    scope = _Scope(checked, device)
    try:
        return tuple(_explain(scope, checked.root, (0, len(checked.text))))[:_MAX_PARTS]
    except (CostError, ValueSizeError, UnjudgedError) as error:
        return (FailedPart(_shorten(checked.text), error=str(error)),)


def _explain(scope: _Scope, node: Node, span: Range | None) -> Iterator[FailedPart]:
    """Yield the parts of a node that are not true; none if it is true."""
    match node:
        case Call(function="_&&_"):
            parts = [part for term, piece in _split(scope, node, span) for part in _explain(scope, term, piece)]
            # Where a part is false, errors of others do not count, as in CEL.
            yield from [part for part in parts if not part.error] or parts
            return
    try:
        value = scope.evaluate(node)
    except EvaluationError as error:
        yield from _explain_error(scope, node, span, str(error))
        return
    if value is not True:
        yield from _explain_false(scope, node, span, value)


def _explain_error(scope: _Scope, node: Node, span: Range | None, error: str) -> Iterator[FailedPart]:
    if isinstance(node, Comprehension) and is_bind(node):
        try:
            inner = scope.bind(node.accumulator, scope.evaluate(node.start))
        except EvaluationError as cause:
            yield FailedPart(_shorten(render(node.start)), error=str(cause))
            return
        yield from _explain(inner, node.result, None)
        return
    yield FailedPart(_render_text(scope, node, span), error=error)


def _explain_false(scope: _Scope, node: Node, span: Range | None, value: Value) -> Iterator[FailedPart]:
    text = _render_text(scope, node, span)
    match node:
        case Call(function="_||_"):
            terms = [part for term, piece in _split(scope, node, span) for part in _explain(scope, term, piece)]
            yield FailedPart(text, alternatives=tuple(terms[:_MAX_PARTS]))
        case Call(function="!_", arguments=(operand,)):
            yield _negate(_describe(scope, operand, _shorten(render(operand)), True), text)
        case Call(function="_?_:_", arguments=(condition, truthy, falsy)):
            branch = truthy if scope.evaluate(condition) is True else falsy
            yield from _explain(scope, branch, None)
        case Comprehension() if is_bind(node):
            yield from _explain(scope.bind(node.accumulator, scope.evaluate(node.start)), node.result, None)
        case _:
            yield _describe(scope, node, text, value)


def _describe(scope: _Scope, node: Node, text: str, value: Value) -> FailedPart:
    """Describe a part by what it compares."""
    match node:
        case Call(function=function, arguments=(left, right)) if function in _OPERATORS:
            return _describe_comparison(scope, text, left, right, _OPERATORS[function])
        case Call(function=function, target=left, arguments=(right,)) if left is not None and function in _COMPARED:
            return _compare(scope, text, left, right, _COMPARED[function])
        case Call(function=function, target=left, arguments=(right,)) if left is not None and function in _METHODS:
            return _compare(scope, text, left, right, function)
        case Select(operand=_, field=name, is_test=True):
            return FailedPart(text, name, "is not set" if value is False else "is set")
        case Call(function="hasValue", target=target) if target is not None:
            return FailedPart(text, _name_property(target), "is not set" if value is False else "is set")
    if _is_chain(node):
        return FailedPart(text, _name_property(node), to_text(value), "==", "true")
    if isinstance(node, Comprehension) and _reads_device(scope, node.range):
        return FailedPart(text, _name_property(node.range), _print_value(scope, node.range))
    return FailedPart(text)


def _describe_comparison(scope: _Scope, text: str, left: Node, right: Node, operator: str) -> FailedPart:
    match left, right:
        case Call(function="compareTo", target=subject, arguments=(other,)), Literal(value=0) if subject is not None:
            return _compare(scope, text, subject, other, operator)
        case Literal(value=0), Call(function="compareTo", target=subject, arguments=(other,)) if subject is not None:
            return _compare(scope, text, subject, other, _MIRROR.get(operator, operator))
    return _compare(scope, text, left, right, operator)


def _compare(scope: _Scope, text: str, left: Node, right: Node, operator: str) -> FailedPart:
    if operator in _MIRROR and _reads_device(scope, right) and not _reads_device(scope, left):
        left, right, operator = right, left, _MIRROR[operator]
    if operator == "in" and _reads_device(scope, right) and not _reads_device(scope, left):
        return FailedPart(text, _print_value(scope, left).strip('"'), "is not set")
    return FailedPart(text, _name_property(left), _print_value(scope, left), operator, _print_value(scope, right))


def _negate(part: FailedPart, text: str) -> FailedPart:
    if part.operator in _INVERSE:
        return replace(part, text=text, operator=_INVERSE[part.operator])
    if part.actual == "is not set":
        return replace(part, text=text, actual="is set")
    return FailedPart(text)


def _split(scope: _Scope, node: Call, span: Range | None) -> Iterator[tuple[Node, Range | None]]:
    """Yield the operands of a chain of one operator with their text."""
    terms: list[Node] = []
    operators: list[int] = []
    _collect(scope, node, node.function, terms, operators)
    yield from zip(terms, split_range(scope.checked.text, span, operators, terms), strict=True)


def _collect(scope: _Scope, node: Node, operator: str, terms: list[Node], operators: list[int]) -> None:
    if not isinstance(node, Call) or node.function != operator:
        terms.append(node)
        return
    operators.append(scope.checked.positions.get(node.id, -1))
    for argument in node.arguments:
        _collect(scope, argument, operator, terms, operators)


def _render_text(scope: _Scope, node: Node, span: Range | None) -> str:
    return _shorten(render(node) if span is None else scope.checked.text[span[0] : span[1]].strip())


def _print_value(scope: _Scope, node: Node) -> str:
    try:
        return _shorten(to_text(scope.evaluate(node)))
    except EvaluationError as error:
        return f"({error})"


def _name_property(node: Node) -> str:
    """Name the property that a part is about: the last field of a chain, or the part itself."""
    match node:
        case Select(field=name):
            return name
        case Call(function="_[_]" | "_[?_]" | "_?._", arguments=(_, Literal(value=str() as name))):
            return name
        case Identifier(name=name):
            return name.removeprefix("device.")
        case Call(function="orValue" | "optMap" | "value", target=target) if target is not None:
            return _name_property(target)
    return _shorten(render(node))


def _is_chain(node: Node) -> bool:
    match node:
        case Select(is_test=False) | Identifier():
            return True
        case Call(function="_[_]"):
            return True
    return False


def _reads_device(scope: _Scope, node: Node) -> bool:
    """Return whether a part depends on the device."""
    return any(isinstance(child, Identifier) and _is_of_device(scope, child.name) for child in iterate_nodes(node))


def _is_of_device(scope: _Scope, name: str) -> bool:
    return name == "device" or name.startswith("device.") or name in scope.names


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT - 1]}…"
