"""Mutants of a module: each differs from it in one place, as a slip of its author would. Pure."""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

_OPERATORS: Final = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "//"),
    ast.FloorDiv: ("//", "*"),
}
"""Operator to its text, and to the text that replaces it."""
_FUNCTIONS: Final = {"any": "all", "all": "any", "min": "max", "max": "min"}


class Mutant(NamedTuple):
    """Bytes ``start`` to ``end`` of a module replaced by ``new``."""

    line: int
    start: int
    end: int
    old: bytes
    new: bytes

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.new + source[self.end :]

    def describe(self) -> str:
        """Describe the change on one line."""
        old, new = (" ".join(text.decode().split()) for text in (self.old, self.new))
        return f"{self.line}: `{old}` became `{new}`"


def list_mutants(source: bytes) -> list[Mutant]:
    """List the mutants of a module, in the order of their places.

    Decorators and annotations are left as they are: what they say is checked by types, not by tests.
    """
    finder = _Finder(source)
    finder.visit(ast.parse(source))
    return sorted(set(finder.mutants), key=lambda mutant: (mutant.start, mutant.end, mutant.new))


class _Finder(ast.NodeVisitor):
    def __init__(self, source: bytes) -> None:
        self._source = source
        self._lines = [0, *(match.end() for match in re.finditer(rb"\n", source))]
        self.mutants: list[Mutant] = []

    def _locate(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        start = self._lines[node.lineno - 1] + node.col_offset
        return start, self._lines[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)

    def _add(self, node: ast.expr | ast.stmt, start: int, end: int, new: bytes) -> None:
        self.mutants.append(Mutant(node.lineno, start, end, self._source[start:end], new))

    def _replace(self, node: ast.expr | ast.stmt, new: bytes) -> None:
        self._add(node, *self._locate(node), new)

    def _replace_operator(self, operator: ast.AST, left: ast.expr, right: ast.expr) -> None:
        """Replace the operator between two operands."""
        if type(operator) not in _OPERATORS:
            return
        text, new = _OPERATORS[type(operator)]
        start, end = self._locate(left)[1], self._locate(right)[0]
        pattern = rb"(?<![\w])" + rb"\s+".join(map(re.escape, text.encode().split())) + rb"(?![\w])"
        if match := re.search(pattern, self._source[start:end]):
            self._add(left, start + match.start(), start + match.end(), new.encode())

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for operator, (left, right) in zip(node.ops, pairwise(operands), strict=True):
            self._replace_operator(operator, left, right)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for left, right in pairwise(node.values):
            self._replace_operator(node.op, left, right)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self._replace_operator(node.op, node.left, node.right)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            start, end = self._locate(node.operand)
            self._replace(node, b"bool(" + self._source[start:end] + b")")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._replace(node, str(not node.value).encode())
        elif isinstance(node.value, int):
            self._replace(node, str(node.value + 1).encode())

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
            self._replace(node.func, _FUNCTIONS[node.func.id].encode())
        self.generic_visit(node)

    def _negate(self, test: ast.expr) -> None:
        start, end = self._locate(test)
        self._replace(test, b"not (" + self._source[start:end] + b")")

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        self._negate(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._negate(test)
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        """Leave a call out whose value nobody uses. Docstrings are no code."""
        if isinstance(node.value, ast.Constant):
            return
        if isinstance(node.value, ast.Call):
            self._replace(node, b"pass")
        self.generic_visit(node)

    def visit_Continue(self, node: ast.Continue) -> None:
        self._replace(node, b"pass")

    def visit_Break(self, node: ast.Break) -> None:
        self._replace(node, b"pass")

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.op, ast.Add | ast.Sub):
            self._replace(node, b"pass")
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self.visit(node.value)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for statement in node.body:
            self.visit(statement)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._visit_function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._visit_function(node)

    def _visit_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for default in _list_defaults(node.args):
            self.visit(default)
        for statement in node.body:
            self.visit(statement)


def _list_defaults(arguments: ast.arguments) -> Iterator[ast.expr]:
    yield from arguments.defaults
    yield from (default for default in arguments.kw_defaults if default)
