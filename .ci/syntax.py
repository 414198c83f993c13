"""Kinds of functions, as the lints tell them apart by their decorators, and the definitions of a file."""

import ast
from collections.abc import Iterable, Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef

PROPERTIES = frozenset({"property", "cached_property", "setter", "getter", "deleter", "computed_field"})
VALIDATORS = frozenset({"field_validator", "model_validator", "field_serializer", "model_serializer"})
OPERANDS = frozenset({"contextmanager", "asynccontextmanager"})
COMMANDS = frozenset({"command", "callback", "with_settings", "with_api_options"})
GIVEN_TO_TESTS = frozenset({"fixture", "composite", "invariant"})
PHRASES = PROPERTIES | VALIDATORS | OPERANDS | GIVEN_TO_TESTS


def list_decorators(function: Function) -> set[str]:
    """List the last names of the decorators: `command` of `@app.command("why")`."""
    called = [node.func if isinstance(node, ast.Call) else node for node in function.decorator_list]
    return {ast.unparse(node).rsplit(".", 1)[-1] for node in called}


def is_builder(file: str, function: Function) -> bool:
    return file.startswith("tests/") and function.name.lstrip("_").startswith(("a_", "an_"))


def is_named_after_result(file: str, function: Function) -> bool:
    """Tell whether the function is a noun where it is used: a value, what `with` enters, or what a test is given."""
    return not PHRASES.isdisjoint(list_decorators(function)) or is_builder(file, function)


def iterate_members(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, ast.stmt]]:
    """Iterate over the statements of modules and classes, each with the name of its class, empty for a module."""
    for node in nodes:
        if isinstance(node, ast.Module | ast.ClassDef):
            owner = node.name if isinstance(node, ast.ClassDef) else ""
            for statement in node.body:
                yield owner, statement


def iterate_statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Iterate over the tree's statements at every depth, but not over their expressions: a tenth of its nodes."""
    yield tree
    for name in ("body", "handlers", "cases", "orelse", "finalbody"):
        for statement in getattr(tree, name, ()):
            yield from iterate_statements(statement)


def parse_text(node: ast.expr | None) -> str | None:
    """Parse the beginning of a literal text, also of one that is put together; None for anything else."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]):
            return text
        case ast.BinOp(left=left, op=ast.Add()):
            return parse_text(left)
        case _:
            return None
