"""Parts of an expression as text: as they were written where the positions show it, else rendered from the tree."""

from dataclasses import replace
from typing import Any, Final

from engine.claims.cel.compiler import parse_expression
from engine.claims.cel.syntax import (
    Call,
    Comprehension,
    Constant,
    Identifier,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    Select,
    StructLiteral,
    UintConstant,
)

_BINARY: Final = {
    "_||_": ("||", 1), "_&&_": ("&&", 2), "_==_": ("==", 3), "_!=_": ("!=", 3), "_<_": ("<", 3), "_<=_": ("<=", 3),
    "_>_": (">", 3), "_>=_": (">=", 3), "@in": ("in", 3), "_+_": ("+", 4), "_-_": ("-", 4), "_*_": ("*", 5),
    "_/_": ("/", 5), "_%_": ("%", 5),
}  # fmt: skip
_UNARY: Final = {"!_": "!", "-_": "-"}
_HIGHEST: Final = 9
_UNARY_LEVEL: Final = 6


def render(node: Node, level: int = 0) -> str:
    """Render a node; in parentheses where it binds less than ``level``."""
    text, bound = _render(node)
    return f"({text})" if bound < level else text


def is_bind(node: Node) -> bool:
    """Return whether a loop is the macro ``cel.bind``: it never runs and only names a value."""
    if not isinstance(node, Comprehension) or node.variable != "#unused":
        return False
    return isinstance(node.range, ListLiteral) and not node.range.elements


def _render(node: Node) -> tuple[str, int]:
    match node:
        case Literal(value=value):
            return _render_constant(value), _HIGHEST
        case Identifier(name=name):
            return name, _HIGHEST
        case Select(operand=operand, field=field, is_test=is_test):
            text = f"{render(operand, _HIGHEST)}.{field}"
            return (f"has({text})" if is_test else text), _HIGHEST
        case ListLiteral(elements=elements):
            return f"[{', '.join(map(render, elements))}]", _HIGHEST
        case MapLiteral(entries=entries):
            pairs = ", ".join(f"{render(entry.key)}: {render(entry.value)}" for entry in entries)
            return f"{{{pairs}}}", _HIGHEST
        case StructLiteral(name=name):
            return f"{name}{{…}}", _HIGHEST
        case Comprehension():
            return _render_loop(node), _HIGHEST
        case Call():
            return _render_call(node)


def _render_call(node: Call) -> tuple[str, int]:
    operands = node.operands
    if node.function in _BINARY:
        operator, bound = _BINARY[node.function]
        # Chains of && and || are balanced trees; other operators bind to the left.
        right = bound if node.function in ("_&&_", "_||_") else bound + 1
        return f"{render(operands[0], bound)} {operator} {render(operands[1], right)}", bound
    if node.function in _UNARY:
        return f"{_UNARY[node.function]}{render(operands[0], _UNARY_LEVEL)}", _UNARY_LEVEL
    match node.function:
        case "_?_:_":
            return f"{render(operands[0], 1)} ? {render(operands[1], 1)} : {render(operands[2])}", 0
        case "_[_]" | "_[?_]":
            mark = "?" if node.function == "_[?_]" else ""
            return f"{render(operands[0], _HIGHEST)}[{mark}{render(operands[1])}]", _HIGHEST
        case "_?._":
            field = render(operands[1]).strip("'")
            return f"{render(operands[0], _HIGHEST)}.?{field}", _HIGHEST
    arguments = ", ".join(map(render, node.arguments))
    receiver = "" if node.target is None else f"{render(node.target, _HIGHEST)}."
    return f"{receiver}{node.function}({arguments})", _HIGHEST


def _render_loop(node: Comprehension) -> str:
    """Render a loop as the macro that it was written as."""
    if is_bind(node):
        return f"cel.bind({node.accumulator}, {render(node.start)}, {render(node.result)})"
    variables = ", ".join(name for name in (node.variable, node.second_variable) if name)
    name, body = _name_loop(node)
    return f"{render(node.range, _HIGHEST)}.{name}({variables}{', ' if body else ''}{body})"


def _name_loop(node: Comprehension) -> tuple[str, str]:
    match node.step:
        case Call(function="_||_", arguments=(_, body)):
            return "exists", render(body)
        case Call(function="_&&_", arguments=(_, body)):
            return "all", render(body)
        case Call(function="_?_:_", arguments=(body, Call(function="_+_", arguments=(_, Literal())), _)):
            return "exists_one", render(body)
        case Call(function="_?_:_", arguments=(body, Call(arguments=(_, ListLiteral(elements=(value,)))), _)):
            is_filter = value == Identifier(value.id, node.variable)
            return ("filter", render(body)) if is_filter else ("map", f"{render(body)}, {render(value)}")
        case Call(function="_+_", arguments=(_, ListLiteral(elements=(value,)))):
            return "map", render(value)
    return "transform", "…"


def _render_constant(value: Constant) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case UintConstant():
            return f"{value.value}u"
        case str():
            escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
            return f"'{escaped}'"
        case bytes():
            text = value.decode("utf-8", "backslashreplace")
            return f"b'{text}'"
        case int() | float():
            return str(value)
    raise TypeError(type(value))


Range = tuple[int, int]
"""The characters of an expression's text from one position up to another."""


def split_range(text: str, span: Range | None, operators: list[int], terms: list[Node]) -> list[Range | None]:
    """Find the text of each operand of a chain of ``&&`` or ``||`` by the positions of its operators.

    None for all of them where a piece does not parse to its operand, which parentheses around several can cause.
    """
    if span is None or len(operators) != len(terms) - 1:
        return [None] * len(terms)
    edges = sorted(operators)
    starts, ends = [span[0], *(edge + 2 for edge in edges)], [*edges, span[1]]
    spans = [_strip(text, start, end) for start, end in zip(starts, ends, strict=True)]
    pieces = [_match(text, piece, term) for piece, term in zip(spans, terms, strict=True)]
    return list(pieces) if all(pieces) else [None] * len(terms)


def _match(text: str, span: Range, term: Node) -> Range | None:
    """Return the range, without parentheses around all of it, if it parses to the term."""
    while True:
        piece = text[span[0] : span[1]]
        parsed = parse_expression(piece)
        if parsed is None or _normalize(parsed) != _normalize(term):
            return None
        if not (piece.startswith("(") and piece.endswith(")")):
            return span
        inner = _strip(text, span[0] + 1, span[1] - 1)
        if parse_expression(text[inner[0] : inner[1]]) is None:
            return span
        if _match(text, inner, term) is None:
            return span
        span = inner


def _strip(text: str, start: int, end: int) -> Range:
    piece = text[start:end]
    return start + len(piece) - len(piece.lstrip()), end - len(piece) + len(piece.rstrip())


def _normalize(node: Node) -> Node:
    """Drop the ids of a tree, and write the checker's names of two parts as the parser reads them."""
    match node:
        case Identifier(name=name) if name.startswith("device."):
            base: Node = Identifier(0, "device")
            for part in name.split(".")[1:]:
                base = Select(0, base, part, is_test=False)
            return base
        case Select():
            return replace(node, id=0, operand=_normalize(node.operand))
        case Call():
            return _normalize_call(node)
        case ListLiteral():
            return replace(node, id=0, elements=tuple(map(_normalize, node.elements)))
        case MapLiteral():
            entries = [
                replace(entry, id=0, key=_normalize(entry.key), value=_normalize(entry.value)) for entry in node.entries
            ]
            return replace(node, id=0, entries=tuple(entries))
        case Comprehension():
            parts: dict[str, Any] = {name: _normalize(getattr(node, name)) for name in _PARTS}
            return replace(node, id=0, **parts)
        case _:
            return replace(node, id=0)


_NAMESPACES: Final = ("sets", "lists", "optional", "format", "strings", "ip", "cel")
_PARTS: Final = ("range", "start", "condition", "step", "result")


def _normalize_call(node: Call) -> Node:
    """Normalize a call; the checker turns a namespace in front of a function into a part of its name."""
    target = None if node.target is None else _normalize(node.target)
    name = node.function
    if isinstance(target, Identifier) and target.name in _NAMESPACES:
        name, target = f"{target.name}.{name}", None
    return replace(node, id=0, function=name, target=target, arguments=tuple(map(_normalize, node.arguments)))
