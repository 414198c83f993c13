"""Kubernetes' checks of an expression's constants, which the CEL library does not make."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from engine.claims.cel.conversions import parse_duration, parse_timestamp
from engine.claims.cel.formatting import REFUSALS, FormattingError, split_format
from engine.claims.cel.patterns import matches
from engine.claims.cel.syntax import (
    Call,
    CheckedExpression,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    iterate_nodes,
    list_children,
)
from engine.claims.cel.values import EvaluationError, Value


class CompileError(ValueError):
    """An expression that Kubernetes does not compile; the text is Kubernetes' own."""


Problem = tuple[Node, str]
"""The part of an expression that is refused, and the cause."""

_NUMBERS: Final = ("int", "uint", "dyn")
_TAKEN: Final = {
    "d": _NUMBERS,
    "f": ("double", "string", "dyn"),
    "e": ("double", "string", "dyn"),
    "b": (*_NUMBERS, "bool"),
    "x": (*_NUMBERS, "string", "bytes"),
    "X": (*_NUMBERS, "string", "bytes"),
    "o": _NUMBERS,
    "s": ("list", "map", "int", "uint", "double", "bool", "string", "timestamp", "bytes", "duration", "type",
          "null_type", "dyn"),
}  # fmt: skip
"""Types that a clause of a format takes, by its letter."""
_NAMES: Final = {"any": "google.protobuf.Any", "duration": "google.protobuf.Duration",
                 "timestamp": "google.protobuf.Timestamp"}  # fmt: skip


def check_literals(checked: CheckedExpression) -> None:
    """Raise CompileError for constants that Kubernetes refuses while it compiles."""
    nodes = list(iterate_nodes(checked.root))
    problems = [problem for check in _CHECKS for problem in check(checked, nodes)]
    if problems:
        problems.sort(key=lambda problem: checked.positions.get(problem[0].id, 0))
        texts = [_show_position(checked, node, cause) for node, cause in problems]
        raise CompileError("compilation failed: " + "\n".join(texts))


def _check_arguments(function: str, position: int, parse: Callable[[str], Value]) -> "_Check":
    """Make the check of constant arguments of a function, which ``parse`` has to take."""

    def check(_: CheckedExpression, nodes: Sequence[Node]) -> Iterator[Problem]:
        for node in nodes:
            if isinstance(node, Call) and node.function == function and len(node.operands) > position:
                argument = node.operands[position]
                if isinstance(argument, Literal) and isinstance(argument.value, str) and not _parses(argument.value):
                    yield argument, f"invalid {function} argument"

    def _parses(text: str) -> bool:
        try:
            parse(text)
        except EvaluationError:
            return False
        return True

    return check


def _check_formats(checked: CheckedExpression, nodes: Sequence[Node]) -> Iterator[Problem]:
    """Check formats with their values, where both stand in the expression."""
    for node in nodes:
        match node:
            case Call(function="format", target=Literal(value=str() as form), arguments=(ListLiteral() as values,)):
                yield from _check_format(checked, node, form, values)


def _check_format(checked: CheckedExpression, node: Call, form: str, values: ListLiteral) -> Iterator[Problem]:
    count = 0
    try:
        for count, (_, letter, _) in enumerate(split_format(form)):
            if letter and count >= len(values.elements):
                yield node, f"index {count} out of range"
                return
            if letter and (bad := _refuse(checked, values.elements[count], letter)):
                name = _NAMES.get(checked.types.get(bad.id, "dyn"), checked.types.get(bad.id, "dyn"))
                yield bad, f"error during formatting: {REFUSALS[letter].format(name)}"
                return
    except FormattingError as error:
        yield node, str(error)
        return
    if len(values.elements) > count:
        supplied = len(values.elements)
        yield node, f"too many arguments supplied to string.format (expected {count}, got {supplied})"


def _refuse(checked: CheckedExpression, node: Node, letter: str) -> Node | None:
    """Return the part of a value that a clause does not take."""
    if checked.types.get(node.id, "dyn").partition("(")[0] not in _TAKEN[letter]:
        return node
    if letter == "s" and isinstance(node, ListLiteral | MapLiteral):
        return next((bad for child in list_children(node) if (bad := _refuse(checked, child, letter))), None)
    return None


def _check_types(checked: CheckedExpression, _: Sequence[Node]) -> Iterator[Problem]:
    """Check that lists and maps do not mix types; values for a format may."""
    yield from _check_types_below(checked, checked.root)


def _check_types_below(checked: CheckedExpression, node: Node) -> Iterator[Problem]:
    if isinstance(node, Call) and node.function == "format":
        return
    match node:
        case ListLiteral():
            yield from _check_same_type(checked, node.elements)
        case MapLiteral():
            yield from _check_same_type(checked, [entry.key for entry in node.entries])
            yield from _check_same_type(checked, [entry.value for entry in node.entries])
    for child in list_children(node):
        yield from _check_types_below(checked, child)


def _check_same_type(checked: CheckedExpression, nodes: Sequence[Node]) -> Iterator[Problem]:
    names = [checked.types.get(node.id, "dyn") for node in nodes]
    for node, name in zip(nodes, names, strict=True):
        if name != names[0]:
            yield node, f"expected type '{names[0]}' but found '{name}'"
            return


_Check = Callable[[CheckedExpression, Sequence[Node]], Iterator[Problem]]
_CHECKS: Final[tuple[_Check, ...]] = (
    _check_arguments("duration", 0, parse_duration),
    _check_arguments("timestamp", 0, parse_timestamp),
    _check_arguments("matches", 1, lambda pattern: matches("", pattern)),
    _check_formats,
    _check_types,
)


def _show_position(checked: CheckedExpression, node: Node, message: str) -> str:
    offset = checked.positions.get(node.id, 0)
    start = checked.text.rfind("\n", 0, offset) + 1
    line, column = checked.text.count("\n", 0, offset) + 1, offset - start
    source = checked.text[start:].split("\n", 1)[0]
    return f"ERROR: <input>:{line}:{column + 1}: {message}\n | {source}\n | {'.' * column}^"
