"""Checks how docstrings and public texts begin: `python .ci/docstrings.py [--count] [PATH ...]`.

The docstring of a function begins with a verb in the imperative. That of a module, class or field is a noun phrase, and
so are the texts of `Field(description=…)`, of options and of metrics: none begins as a clause or a question does.
Properties, validators, context managers, fixtures and builders of tests are nouns where they are used, and may have a
noun phrase; so may tests, whose names are the sentence.
"""

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise

from language import CLAUSES, OPENINGS, VERBS, is_third_person, parse_first_word
from sources import Violation, check_files, list_tracked, run
from syntax import Function, is_named_after_result, iterate_members, iterate_statements, parse_text

PUBLIC = frozenset({"description", "help"})
METRICS = frozenset({"Counter", "Gauge", "Histogram", "Summary", "Info"})

HAS_PUBLIC_TEXTS = re.compile(rf"\b({'|'.join(PUBLIC)})=|\b({'|'.join(METRICS)})\(")

Verdict = tuple[str, str]
"""The rule that is broken, and an example of what to write instead."""


def judge_phrase(text: str) -> Verdict | None:
    """Name the rule that ``text`` breaks as a noun phrase; None if it breaks none."""
    if text.strip().lower().startswith(OPENINGS):
        return "refers to another sentence", "repeat the noun: “Cores requested, in percent.”"
    word = parse_first_word(text)
    if word in CLAUSES:
        return (
            "begins as a clause",
            f"instead of “{word.capitalize()} …” write a noun phrase: “Indices with a mapping.”",
        )
    return None


def judge_imperative(text: str) -> Verdict | None:
    """Name the rule that ``text`` breaks as the docstring of a function; None if it breaks none."""
    word = parse_first_word(text)
    if word in VERBS:
        return None
    if text.strip().split("\n\n")[0].rstrip().endswith("?"):
        return "is a question", "write “Tell whether …”, “Check whether …” or “Return whether …”"
    if verdict := judge_phrase(text):
        return verdict[0], "begin with a verb in the imperative: “Return the nodes that …”"
    if is_third_person(word):
        return "begins in the third person", f"instead of “{word.capitalize()} …” write the imperative: “Count …”"
    example = "“Return …”, “Derive …”, “Count …” (the verbs: .ci/language.toml)"
    return "begins with no verb", f"instead of “{word.capitalize()} …” begin with a verb in the imperative: {example}"


def judge_function(file: str, function: Function) -> Verdict | None:
    """Judge the docstring of a function by what the function is where it is used."""
    text = ast.get_docstring(function)
    if not text or parse_first_word(text) in VERBS:
        return None
    is_phrase = function.name.startswith("test_") or is_named_after_result(file, function)
    return judge_phrase(text) if is_phrase else judge_imperative(text)


def check_definitions(file: str, statements: Sequence[ast.AST]) -> Iterator[Violation]:
    """Check the docstrings of the module, its classes and its functions."""
    for node in statements:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                line, name, kind, verdict = (
                    node.body[0].lineno,
                    f"{node.name}()",
                    "function",
                    judge_function(file, node),
                )
            case ast.ClassDef() | ast.Module():
                line, name = node.body[0].lineno if node.body else 1, getattr(node, "name", file)
                kind = "class" if isinstance(node, ast.ClassDef) else "module"
                verdict = judge_phrase(ast.get_docstring(node) or "")
            case _:
                continue
        if verdict:
            yield Violation(file, line, name, f"docstring of a {kind} {verdict[0]}", verdict[1])


def check_fields(file: str, statements: Sequence[ast.AST]) -> Iterator[Violation]:
    """Check the texts that stand below the fields and constants that they describe."""
    for (owner, statement), (next_owner, text) in pairwise(iterate_members(statements)):
        if owner != next_owner or not isinstance(statement, ast.AnnAssign | ast.Assign):
            continue
        description = parse_text(text.value) if isinstance(text, ast.Expr) else None
        if description and (verdict := judge_phrase(description)):
            target = statement.target if isinstance(statement, ast.AnnAssign) else statement.targets[0]
            yield Violation(file, text.lineno, ast.unparse(target), f"docstring of a field {verdict[0]}", verdict[1])


def list_public_texts(call: ast.Call) -> list[tuple[str, ast.expr]]:
    """List the texts of a call that users read, each with the name of its argument."""
    texts = [(keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg in PUBLIC]
    function = ast.unparse(call.func).rsplit(".", 1)[-1]
    if function in METRICS and len(call.args) > 1:
        texts.append((function, call.args[1]))
    return [(name, text) for name, text in texts if name]


def check_public_texts(file: str, tree: ast.Module) -> Iterator[Violation]:
    """Check the descriptions of fields, options, commands and metrics."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Call):
            for name, node in list_public_texts(call):
                if (text := parse_text(node)) and (verdict := judge_phrase(text)):
                    yield Violation(file, node.lineno, name, f"public text {verdict[0]}", verdict[1])


def check_docstrings(file: str, text: str) -> list[Violation]:
    """Check every docstring and public text of a file."""
    tree = ast.parse(text)
    statements = list(iterate_statements(tree))
    # To walk through every expression takes as long as to parse the file, and few files have such texts.
    texts = check_public_texts(file, tree) if HAS_PUBLIC_TEXTS.search(text) else ()
    return [*check_definitions(file, statements), *check_fields(file, statements), *texts]


def find_violations(paths: list[str]) -> list[Violation]:
    return check_files(check_docstrings, list_tracked(paths, ".py"))


if __name__ == "__main__":
    sys.exit(run("Check how docstrings and public texts begin.", find_violations))
