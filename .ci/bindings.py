"""Checks what names say: `python .ci/bindings.py [--count] [PATH ...]`.

- A local, parameter, field or function does not have a name that says nothing (`found`, `own`, `of`): it is the noun of
  its type.
- A function begins with a verb; a function that returns a bool may be a question (`is_deleted`, `accepts`). Values are
  nouns: properties, validators, context managers, commands, fixtures, and builders of tests (`a_node`).
- A question changes nothing: it assigns to no attribute or item of its arguments and calls nothing that mutates them.
- The name of a class is not a permutation of another's words (`DevicesJudgedHead` and `NodesJudged`).

`.ci/language.toml` has the words, and the exceptions with their reasons.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from language import (
    EXCEPTIONS,
    MUTATORS,
    NOUNS,
    PREFIXES,
    PROTOCOLS,
    QUESTIONS,
    VAGUE,
    VERBS,
    is_third_person,
    split_name,
)
from sources import Definition, Violation, check_files, list_classes, list_tracked, run
from syntax import COMMANDS, Function, is_named_after_result, iterate_members, list_decorators

Binding = tuple[int, str]
"""Line and name."""


NAMES = {
    ast.FunctionDef: "name",
    ast.AsyncFunctionDef: "name",
    ast.arg: "arg",
    ast.Name: "id",
    ast.Attribute: "attr",
    ast.ExceptHandler: "name",
    ast.alias: "asname",
    ast.MatchAs: "name",
    ast.MatchStar: "name",
    ast.MatchMapping: "rest",
}
"""The attribute with the name that a node binds. A table, because a million nodes are asked."""


def parse_binding(node: ast.AST) -> Binding | None:
    """Parse the name that ``node`` itself binds; None if it binds none."""
    attribute = NAMES.get(type(node))
    if attribute is None or type(getattr(node, "ctx", None)) in (ast.Load, ast.Del):
        return None
    name = getattr(node, attribute)
    return (node.lineno, name) if name else None


def qualify_names(nodes: Sequence[ast.AST]) -> dict[Binding, str]:
    """Name methods and fields `Class.name` and parameters `function.name`, by their bindings."""
    qualified = {
        (argument.lineno, argument.arg): f"{function.name}.{argument.arg}"
        for function in nodes
        if isinstance(function, Function)
        for argument in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    }
    for owner, statement in iterate_members(nodes):
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", statement)]
        for binding in filter(None, map(parse_binding, targets if owner else [])):
            qualified[binding] = f"{owner}.{binding[1]}"
    return qualified


def check_vague_names(file: str, nodes: Sequence[ast.AST], qualified: dict[Binding, str]) -> Iterator[Violation]:
    """Check that no name is one of the words that say nothing."""
    for line, name in filter(None, map(parse_binding, nodes)):
        advice = VAGUE.get(name.strip("_0123456789").lower())
        if advice and EXCEPTIONS.isdisjoint((name, qualified.get((line, name), name))):
            yield Violation(file, line, name, "a name that says nothing", f"write {advice}")


def returns_bool(function: Function) -> bool:
    return function.returns is not None and ast.unparse(function.returns).startswith(("bool", "TypeGuard", "TypeIs"))


def is_question(function: Function) -> bool:
    """Tell whether the function is named as a predicate."""
    first = (split_name(function.name) or [""])[0]
    return first in QUESTIONS or (returns_bool(function) and is_third_person(first))


def is_noun(file: str, function: Function) -> bool:
    """Tell whether something other than a verb names the function rightly."""
    if function.name.startswith("__") or function.name.lstrip("_") in PROTOCOLS:
        return True
    return is_named_after_result(file, function) or not COMMANDS.isdisjoint(list_decorators(function))


def check_verbs(file: str, function: Function, qualified: dict[Binding, str]) -> Iterator[Violation]:
    """Check that the function begins with a verb, unless it is a question or a noun where it is used."""
    first = (split_name(function.name) or [""])[0]
    if first in PREFIXES or (first in VERBS and first not in NOUNS):
        return
    name = qualified.get((function.lineno, function.name), function.name)
    if is_question(function) or is_noun(file, function) or {name, function.name} & EXCEPTIONS:
        return
    advice = "begin with what it does: derive_wait, list_nodes, to_answer, is_deleted"
    yield Violation(file, function.lineno, f"{name}()", "a function begins with a verb", advice)


def iterate_body(function: Function) -> Iterator[ast.AST]:
    """Iterate over the body of the function without those of the functions inside it."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, Function | ast.Lambda | ast.ClassDef):
            waiting.extend(ast.iter_child_nodes(node))


def parse_root(node: ast.AST) -> str | None:
    """Parse the variable that an attribute or item hangs on: `self` of `self.nodes[name].labels`."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def list_changes(function: Function) -> Iterator[tuple[int, str]]:
    """List the lines of the function that change what is not its own, each with its code."""
    nodes = list(iterate_body(function))
    local_names = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    for node in nodes:
        match node:
            case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del()):
                changed: ast.AST = node
            case ast.Call(func=ast.Attribute(value=changed, attr=method)) if method in MUTATORS:
                pass
            case ast.Global() | ast.Nonlocal():
                yield node.lineno, ast.unparse(node)
                continue
            case _:
                continue
        root = parse_root(changed)
        if root is not None and root not in local_names:
            yield node.lineno, ast.unparse(node)


def check_questions(file: str, function: Function, qualified: dict[Binding, str]) -> Iterator[Violation]:
    """Check that a function that is named as a question changes nothing."""
    name = qualified.get((function.lineno, function.name), function.name)
    if is_question(function) and not {name, function.name} & EXCEPTIONS:
        for line, code in list_changes(function):
            advice = f"`{code}` changes something: name the function after that, as in allow_caching"
            yield Violation(file, line, f"{name}()", "a question changes nothing", advice)


def check_bindings(file: str, text: str) -> list[Violation]:
    """Check every name that a file binds."""
    nodes = list(ast.walk(ast.parse(text)))
    qualified = qualify_names(nodes)
    violations = list(check_vague_names(file, nodes, qualified))
    for node in nodes:
        if isinstance(node, Function):
            violations += [*check_verbs(file, node, qualified), *check_questions(file, node, qualified)]
    return violations


def cut_ending(word: str) -> str:
    """Cut what sets a plural apart from its singular: `nod` of `nodes` and `node`, `quer` of `queries` and `query`."""
    return re.sub(r"(?<=\w\w)(ie|e|y)?s?$", "", word)


def check_classes(classes: Iterable[Definition]) -> Iterator[Violation]:
    """Check that no class, with its file and line, has the words of another in another order."""
    by_words: dict[tuple[str, ...], dict[tuple[str, ...], Definition]] = defaultdict(dict)
    for file, line, name in classes:
        words = tuple(cut_ending(word) for word in split_name(name))
        by_words[tuple(sorted(words))].setdefault(words, (file, line, name))
    for orders in by_words.values():
        (_, _, first), *others = orders.values()
        for file, line, name in others:
            if name not in EXCEPTIONS:
                advice = f"{first} has the same: name what sets it apart, as in DevicesJudgedHead"
                yield Violation(file, line, name, "the words of another class in another order", advice)


def find_violations(paths: list[str]) -> list[Violation]:
    """Find the names below the paths that the rules refuse; a class is compared with those of the whole project."""
    files = list_tracked(paths, ".py")
    classes = check_classes(list_classes(list_tracked([], ".py")))
    return [*check_files(check_bindings, files), *(violation for violation in classes if violation.file in files)]


if __name__ == "__main__":
    sys.exit(run("Check what names say.", find_violations))
