"""Parts of a template's object: values that depend on conditions, expressions, and lines of Helm between entries."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

Tree = Any
"""YAML's values with the nodes of this module in them."""


class Absent:
    """No value: the entry is left out."""


ABSENT: Final = Absent()


@dataclass(frozen=True, slots=True)
class Expression:
    """Helm's text in the place of a value, printed as it is: ``{{ .Release.Namespace }}``."""

    text: str


@dataclass(frozen=True, slots=True)
class HelmLines:
    """Lines of Helm between the entries of a list or a map, each printed at the indentation of the entries."""

    text: str


@dataclass(frozen=True, slots=True)
class Branch:
    """``then`` where Helm's condition holds, else ``otherwise``."""

    condition: str
    then: Tree
    otherwise: Tree


def add_branches(tree: Tree, before: Any, after: Any, condition: str) -> Tree:
    """Change the tree to ``after``, under the condition, wherever ``after`` differs from ``before``.

    ``before`` is the plain value that the tree was made from; the tree may have branches of other conditions already.
    """
    if before == after:
        return tree
    if isinstance(before, dict) and isinstance(after, dict) and isinstance(tree, dict):
        keys = dict.fromkeys([*tree, *after])
        changed = {
            key: add_branches(tree.get(key, ABSENT), before.get(key, ABSENT), after.get(key, ABSENT), condition)
            for key in keys
        }
        return {key: value for key, value in changed.items() if value is not ABSENT}
    if isinstance(before, list) and isinstance(after, list) and isinstance(tree, list):
        if len(before) == len(after) == len(tree):
            return [add_branches(*parts, condition) for parts in zip(tree, before, after, strict=True)]
        if before == after[: len(before)]:
            return [*tree, *(Branch(condition, item, ABSENT) for item in after[len(before) :])]
    return Branch(condition, after, tree)


def choose(tree: Tree, *, holds: bool) -> Tree:
    """Choose one side of every branch."""
    if isinstance(tree, Branch):
        return choose(tree.then if holds else tree.otherwise, holds=holds)
    if isinstance(tree, dict):
        chosen = {key: choose(value, holds=holds) for key, value in tree.items()}
        return {key: value for key, value in chosen.items() if value is not ABSENT}
    if isinstance(tree, list):
        return [item for item in (choose(item, holds=holds) for item in tree) if item is not ABSENT]
    return tree


def edit(tree: Tree, change: Callable[[str, Any], Any], path: str = "") -> Tree:
    """Change every value of the tree, from the outside in; ``change`` gets its path (``spec.ports.0.name``)."""
    tree = change(path, tree)
    if isinstance(tree, Branch):
        # What a condition chooses has the path of the choice.
        return Branch(tree.condition, *(_edit_inside(side, change, path) for side in (tree.then, tree.otherwise)))
    return _edit_inside(tree, change, path)


def _edit_inside(tree: Tree, change: Callable[[str, Any], Any], path: str) -> Tree:
    prefix = f"{path}." if path else ""
    if isinstance(tree, dict):
        return {key: edit(value, change, f"{prefix}{key}") for key, value in tree.items()}
    if isinstance(tree, list):
        return [edit(item, change, f"{prefix}{number}") for number, item in enumerate(tree)]
    if isinstance(tree, str):
        return change(path, tree)
    return tree
