"""YAML as Kubernetes reads it, with the line of every key, so that an error message can name the place.

Values are those of JSON: a date remains a string. A key that occurs twice in one mapping is a mistake, where YAML
itself would silently use the last one.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from math import isfinite
from typing import Any, Final

import yaml


class Mapping(dict[str, Any]):
    """A mapping with its first line and the line of each key, counted from 1."""

    __slots__ = ("line", "lines")

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: dict[str, int] = {}

    def get_line(self, key: str) -> int:
        return self.lines.get(key, self.line)


class YamlError(ValueError):
    """Kubernetes would refuse this text as YAML. line: counted from 1. problem: what is wrong."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"line {line}: {problem}")
        self.line, self.problem = line, problem


class _Loader(yaml.CSafeLoader):
    """Loader that is safe and fast, reads no dates, notes lines, and refuses deep nesting before it reads on."""

    _depth = 0

    # Called around each node. libyaml's time grows with the square of the depth: 1.3 s for 16,000 brackets.
    def descend_resolver(self, parent: yaml.Node | None, _: object) -> None:
        self._depth += 1
        if parent is not None and self._depth > MAX_DEPTH:
            raise YamlError(parent.start_mark.line + 1, f"is nested more than {MAX_DEPTH} deep")

    def ascend_resolver(self) -> None:
        self._depth -= 1


MAX_DEPTH: Final = 100
"""Far deeper than any object of Kubernetes."""
_MAX_ALIASED: Final = 100_000
_MAX_TIMES_WRITTEN: Final = 10
"""Limit of the values that aliases may make of a document, as a number and as a multiple of the written values."""
_MAX_INT_LENGTH: Final = 100
"""Characters; 64 bits have 66 in base two with its mark. Python's time grows with the square of the length."""
_DECIMAL: Final = re.compile(r"[-+]?[0-9_]+")
_TAB: Final = re.compile(rb" *\t")
_TIMESTAMP: Final = "tag:yaml.org,2002:timestamp"
_MERGE: Final = "tag:yaml.org,2002:merge"
# A new dict: the one of CSafeLoader is shared by everything in the process that reads YAML.
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def _construct_mapping(loader: _Loader, node: yaml.MappingNode) -> Iterator[Mapping]:
    mapping = Mapping(node.start_mark.line + 1)
    # Yielded before it is filled, as PyYAML requires: a mapping may contain an alias of itself.
    yield mapping
    written: dict[str, int] = {}
    merged = any(key.tag == _MERGE for key, _ in node.value)
    if merged:
        loader.flatten_mapping(node)
    for key_node, value_node in node.value:
        key, line = loader.construct_object(key_node), key_node.start_mark.line + 1
        if not isinstance(key, str):
            raise YamlError(line, f"the key {key!r:.40} is not a string; put it in quotes")
        # After a merge (`<<`) a key may stand twice: overriding is what merges are for.
        if key in written and not merged:
            raise YamlError(line, f"{key} is defined here again, first in line {written[key]}; keep one of them")
        written[key] = mapping.lines[key] = line
        mapping[key] = loader.construct_object(value_node, deep=True)


def _construct_int(loader: _Loader, node: yaml.ScalarNode) -> Any:
    # Numbers to the base of 60 are text to Kubernetes' reader (gopkg.in/yaml), and take time with the square of theirs.
    if ":" in node.value:
        return node.value
    if len(node.value) <= _MAX_INT_LENGTH and -(2**63) <= (number := loader.construct_yaml_int(node)) < 2**64:
        return number
    # Beyond 64 bits that reader has floats, and text for what is too large for one or has another base than ten.
    return _construct_float(loader, node) if _DECIMAL.fullmatch(node.value) else node.value


def _construct_float(loader: _Loader, node: yaml.ScalarNode) -> Any:
    if ":" in node.value:
        return node.value
    number = loader.construct_yaml_float(node)
    if isfinite(number):
        return number
    if node.value.lstrip("+-").lower() in {".inf", ".nan"}:
        raise YamlError(node.start_mark.line + 1, f"{node.value} is not a number of JSON; put it in quotes")
    return node.value


_Loader.add_constructor("tag:yaml.org,2002:map", _construct_mapping)
_Loader.add_constructor("tag:yaml.org,2002:int", _construct_int)
_Loader.add_constructor("tag:yaml.org,2002:float", _construct_float)


def parse_documents(text: bytes) -> Iterator[tuple[int, Any]]:
    """Yield each document with its first line. Raises `YamlError` at the first that can't be read."""
    loader = None
    try:
        loader = _Loader(text)
        while loader.check_node():
            if node := loader.get_node():
                if b"*" in text:
                    _refuse_many_aliases(node)
                yield node.start_mark.line + 1, loader.construct_document(node)
    except yaml.reader.ReaderError as error:
        position = error.position if isinstance(error.position, int) else 0
        raise YamlError(text[:position].count(b"\n") + 1, f"{error.reason}; write UTF-8 text") from None
    except yaml.MarkedYAMLError as error:
        raise _to_yaml_error(error, text.splitlines()) from None
    except (RecursionError, ValueError) as error:
        # A YamlError is a ValueError too, and has its line already.
        if isinstance(error, YamlError):
            raise
        raise YamlError(1, f"can't be read: {error}") from None
    finally:
        if loader is not None:
            loader.dispose()


def _refuse_many_aliases(root: yaml.Node) -> None:
    """Raise `YamlError` if the aliases of a short text would become more values than a long text has.

    An alias of an alias doubles its values, and twenty of them in a row make a million of the first.
    """
    sizes: dict[int, int] = {}

    def count_values(node: yaml.Node) -> int:
        if id(node) not in sizes:
            sizes[id(node)] = 1  # of a node that contains itself
            sizes[id(node)] = 1 + sum(map(count_values, _iterate_children(node)))
        return sizes[id(node)]

    values = count_values(root)
    if values > max(_MAX_ALIASED, _MAX_TIMES_WRITTEN * len(sizes)):
        raise YamlError(root.start_mark.line + 1, f"its aliases make {values} values of {len(sizes)}; write them out")


def _iterate_children(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        yield from chain.from_iterable(node.value)
    elif isinstance(node, yaml.SequenceNode):
        yield from node.value


def _to_yaml_error(error: yaml.MarkedYAMLError, lines: Sequence[bytes]) -> YamlError:
    mark = error.problem_mark or error.context_mark
    if mark and mark.line >= len(lines) and error.context_mark:
        mark = error.context_mark  # PyYAML finds an unclosed bracket at the end; the mistake is at its beginning
    if mark and mark.line < len(lines) and _TAB.match(lines[mark.line]):
        return YamlError(mark.line + 1, "is not YAML: the line is indented with a tab; write spaces")
    words = " ".join(part for part in (error.context, error.problem) if part)
    return YamlError(mark.line + 1 if mark else 1, f"is not YAML: {words}")
