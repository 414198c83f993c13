"""Dotted names in backticks that look like modules of the project resolve, in docstrings, comments and pages.

A name may be a suffix of the path of a module (`codec.chunking`), followed by a name of the module and a member of that
class. What begins otherwise than a module, is a text somewhere in the code (topics, event types, settings), or hangs on
a variable of its file is no reference to a module.
"""

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FILES = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
CODE = [file for file in FILES if file.endswith(".py") and (ROOT / file).exists()]
PAGES = [file for file in FILES if file.endswith(".md") and file != "CHANGELOG.md" and (ROOT / file).exists()]

DOTTED = re.compile(r"(`{1,2})([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)(?:\(\))?\1")
FILE = re.compile(r"\.(crt|html|io|jsonl?|key|md|properties|proto|py|toml|xz|ya?ml)$")
OURS = (".py", ".toml", ".proto")
"""Endings of files of the project; the others belong to users, too."""

FOREIGN = {
    "kubernetes.aio": "a package of Kubernetes' own client",
    "kubernetes.aio.watch.Watch": "a class of it",
    "expected.pod_request": "a key of a recorded case",
    "name.toml": "a name that differs",
    "pending.title": "a key of page/texts.toml",
    "retention.bytes": "a setting of Kafka's topics",
    "cel.expr.CheckedExpr": "a message of CEL's protocol",
    "parts.attempts_topic.why_not": "a field of the API's readiness",
    "parts.later": "a macro of page/templates",
    "schedulerlog.packages": "the folder of the packages in the wheel",
    "schedulerlog.packages.schemas": "a package in the wheel",
    "schedulerlog.api": "a name that decision 0024 does without",
    "scheduler.extender.extraArgs": "a value of HAMi's Helm chart",
    "webhook.Handle": "HAMi's, in Go",
    "filter.jsonl.xz": "a file of recorded cases",
    "status.reason": "a field of Kubernetes' pods",
    "status.nominatedNodeName": "a field of Kubernetes' pods",
    "status.allocatable": "a field of Kubernetes' nodes",
    "status.capacity": "a field of Kubernetes' nodes",
    "resources.limits": "a field of Kubernetes' containers",
    "resources.requests": "a field of Kubernetes' containers",
    "capacity.requests": "a field of Kubernetes' claims",
    "spec.pool.generation": "a field of Kubernetes' slices",
    "spec.pool.resourceSliceCount": "a field of Kubernetes' slices",
    "index.default_pipeline": "a setting of OpenSearch's indices",
}

ModulePath = tuple[str, ...]


@cache
def read_text(file: str) -> str:
    return (ROOT / file).read_text("utf-8")


@cache
def list_modules() -> dict[ModulePath, list[str]]:
    """List the modules and packages: their paths, each with its files."""
    modules: dict[ModulePath, list[str]] = {}
    for file in CODE:
        parts = Path(file).with_suffix("").parts
        path = parts[:-1] if parts[-1] == "__init__" else parts
        modules.setdefault(path, []).append(file)
        for length in range(1, len(path)):
            modules.setdefault(path[:length], [])
    return modules


@cache
def list_members(file: str) -> dict[str, set[str]]:
    """List what a module defines or imports, each with the names that it binds itself."""
    members: dict[str, set[str]] = {}
    for statement in ast.parse(read_text(file)).body:
        for node in ast.walk(statement) if not isinstance(statement, ast.ClassDef) else [statement]:
            match node:
                case ast.ClassDef(name=name):
                    members[name] = list_bound(node)
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.Name(id=name):
                    members.setdefault(name, set())
                case ast.alias():
                    members.setdefault((node.asname or node.name).split(".")[0], set())
    return members


def list_bound(tree: ast.AST) -> set[str]:
    """List the variables, parameters, attributes, functions and classes that are bound below ``tree``."""
    bound: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                bound.add(name)
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                bound.add(name)
    return bound


def has_member(files: list[str], names: ModulePath) -> bool:
    """Tell whether one of the files defines a name, or a class with that member."""
    if not names:
        return True
    members = [list_members(file).get(names[0]) for file in files]
    return any(bound is not None and set(names[1:]) <= bound for bound in members)


def resolve(name: str) -> list[ModulePath]:
    """Resolve a dotted name to the modules that it may mean: those that share most of their path with it."""
    parts = tuple(name.split("."))
    for length in range(len(parts), 0, -1):
        suffix, names = parts[:length], parts[length:]
        paths = [path for path in list_modules() if path[-length:] == suffix]
        matches = [path for path in paths if has_member(list_modules()[path], names)]
        if suffix in matches:
            return [suffix]
        if product := [path for path in matches if path[0] != "tests"]:
            return product
        if matches:
            return matches
    return []


@cache
def list_parts() -> set[str]:
    return {part for path in list_modules() for part in path}


def may_be_ours(name: str) -> bool:
    """Tell whether a name begins as a module does, or has a part of two words that names one: its folder has moved."""
    first, *others = name.split(".")
    return first in list_parts() or any("_" in part and part in list_parts() for part in others)


@cache
def is_text(name: str) -> bool:
    """Tell whether a text in the code begins with ``name``, as topics and types of events do."""
    return any(f'"{name}' in read_text(file) for file in CODE if not file.startswith("tests/"))


@cache
def is_chart_value(name: str) -> bool:
    """Tell whether a name is a value of the Helm chart, or one below a map that it leaves to the user."""
    part = yaml.safe_load(read_text("deploy/helm/values.yaml"))
    for key in name.split("."):
        if part == {}:
            return True
        if not isinstance(part, dict) or key not in part:
            return False
        part = part[key]
    return True


def iterate_sentences(file: str) -> Iterator[tuple[int, str]]:
    """Iterate over the docstrings and comments of a module, or over a page, each with its line."""
    if file.endswith(".md"):
        yield 1, read_text(file)
        return
    for token in tokenize.generate_tokens(io.StringIO(read_text(file)).readline):
        is_statement = token.type == tokenize.STRING and not token.line[: token.start[1]].strip()
        if token.type == tokenize.COMMENT or is_statement:
            yield token.start[0], token.string


def iterate_references(file: str) -> Iterator[tuple[int, str]]:
    """Iterate over the names in backticks that begin as a module of the project does, each with its line."""
    # Most files have no such name, and splitting them all into tokens took five of this test's seven seconds.
    if not any(is_reference(match[2]) for match in DOTTED.finditer(read_text(file))):
        return
    for line, sentence in iterate_sentences(file):
        for match in DOTTED.finditer(sentence):
            if is_reference(match[2]):
                yield line + sentence.count("\n", 0, match.start()), match[2]


def is_reference(name: str) -> bool:
    return name not in FOREIGN and (may_be_ours(name) or name.endswith(OURS))


def describe_problem(file: str, name: str) -> str | None:
    """Describe why ``name`` misleads a reader who looks for it; None if it resolves or is no reference."""
    if FILE.search(name):
        is_missing = name.endswith(OURS) and not any(f"/{other}".endswith(f"/{name}") for other in FILES)
        return "no file of the project has this name" if is_missing else None
    is_variable = file.endswith(".py") and name.split(".")[0] in list_bound(ast.parse(read_text(file)))
    if is_variable or is_text(name) or is_chart_value(name):
        return None
    match resolve(name):
        case []:
            return "no module resolves it: name the module as it is now, or add what is not ours to FOREIGN"
        case [_]:
            return None
        case paths:
            return f"write more of the path: {', '.join('.'.join(path) for path in paths)}"


def test_names_of_modules_in_backticks_resolve() -> None:
    problems = [
        f"{file}:{line}: `{name}`: {problem}"
        for file in [*CODE, *PAGES]
        for line, name in iterate_references(file)
        if (problem := describe_problem(file, name))
    ]
    assert problems == []


def test_foreign_names_are_still_written() -> None:
    texts = [read_text(file) for file in [*CODE, *PAGES] if file != "tests/contract/test_references.py"]
    assert [name for name in FOREIGN if not any(f"`{name}`" in text for text in texts)] == []


@pytest.mark.parametrize(
    ("name", "paths"),
    [
        ("tests.contract.test_references", ["tests/contract/test_references"]),
        ("test_references.resolve", ["tests/contract/test_references"]),
        ("contract.test_references.DOTTED", ["tests/contract/test_references"]),
        ("test_references.resolved", []),
        ("contracts.test_references", []),
        ("schedulerlog.main", ["schedulerlog"]),
    ],
)
def test_suffixes_of_paths_resolve_with_names_of_the_module(name: str, paths: list[str]) -> None:
    assert ["/".join(path) for path in resolve(name)] == paths


def test_a_name_that_several_modules_end_with_is_ambiguous() -> None:
    ends = [path for path in list_modules() if path[-1] == "__main__" and path[0] != "tests"]
    assert resolve("__main__") == ends
    assert len(ends) > 1
    assert "write more of the path" in (describe_problem("docs/api.md", "__main__.main") or "")
