"""The syntax tree of a checked CEL expression."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Constant: TypeAlias = "bool | int | float | str | bytes | UintConstant | None"


@dataclass(frozen=True, slots=True)
class UintConstant:
    """An unsigned integer of the expression's text, such as ``1u``."""

    value: int


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant."""

    id: int
    value: Constant


@dataclass(frozen=True, slots=True)
class Identifier:
    """The name of a variable or type."""

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class Select:
    """A field of a value. is_test: the macro ``has``."""

    id: int
    operand: "Node"
    field: str
    is_test: bool


@dataclass(frozen=True, slots=True)
class Call:
    """A function, operator or method called. target: the receiver of a method."""

    id: int
    function: str
    target: "Node | None"
    arguments: tuple["Node", ...]

    @property
    def operands(self) -> tuple["Node", ...]:
        """Receiver, if there is one, and arguments."""
        return self.arguments if self.target is None else (self.target, *self.arguments)


@dataclass(frozen=True, slots=True)
class ListLiteral:
    """A list in brackets. optional: positions of elements that are left out if they have no value."""

    id: int
    elements: tuple["Node", ...]
    optional: frozenset[int]


@dataclass(frozen=True, slots=True)
class MapEntry:
    """One entry of a map in braces."""

    id: int
    key: "Node"
    value: "Node"
    is_optional: bool


@dataclass(frozen=True, slots=True)
class MapLiteral:
    """A map in braces."""

    id: int
    entries: tuple[MapEntry, ...]


@dataclass(frozen=True, slots=True)
class StructLiteral:
    """A message in braces, such as ``google.protobuf.Int32Value{value: 1}``."""

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class Comprehension:
    """A macro over a list or map, expanded into a loop."""

    id: int
    variable: str
    second_variable: str
    range: "Node"
    accumulator: str
    start: "Node"
    condition: "Node"
    step: "Node"
    result: "Node"


Node: TypeAlias = Literal | Identifier | Select | Call | ListLiteral | MapLiteral | StructLiteral | Comprehension


@dataclass(frozen=True, slots=True)
class CheckedExpression:
    """An expression that compiles.

    types: type names of nodes by id, as CEL writes them. positions: offsets in characters by id. macros: the calls
    that were written in place of expanded nodes, by id.
    """

    text: str
    root: Node
    types: Mapping[int, str]
    positions: Mapping[int, int]
    macros: Mapping[int, Node]

    @property
    def result_type(self) -> str:
        """Type of the value of the expression."""
        return self.types.get(self.root.id, "dyn")


def list_children(node: Node) -> Sequence[Node]:
    """List the nodes directly below a node."""
    match node:
        case Select():
            return (node.operand,)
        case Call():
            return node.operands
        case ListLiteral():
            return node.elements
        case MapLiteral():
            return [child for entry in node.entries for child in (entry.key, entry.value)]
        case Comprehension():
            return (node.range, node.start, node.condition, node.step, node.result)
        case _:
            return ()


def iterate_nodes(node: Node) -> Iterator[Node]:
    """Yield a node and everything below it."""
    yield node
    for child in list_children(node):
        yield from iterate_nodes(child)
