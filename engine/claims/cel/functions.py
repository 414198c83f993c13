"""Functions of CEL as values: overloads with the types that they take, and the choice of one by its arguments."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from engine.claims.cel.values import NO_OVERLOAD, EvaluationError, Value, name_type

Implementation = Callable[..., Value]


@dataclass(frozen=True, slots=True)
class Parameter:
    """The types of one argument; none stand for any type. elements: the types of a list's elements."""

    types: frozenset[type] = frozenset()
    elements: frozenset[type] = frozenset()

    def accepts(self, value: Value) -> bool:
        """Return whether a value has one of the types; of a list only the first element counts, as in CEL."""
        if self.types and type(value) not in self.types:
            return False
        return not self.elements or not value or type(value[0]) in self.elements


ANY: Final = Parameter()


@dataclass(frozen=True, slots=True)
class Overload:
    """One implementation of a function and the arguments that it takes."""

    parameters: tuple[Parameter, ...]
    implementation: Implementation

    def accepts(self, arguments: Sequence[Value]) -> bool:
        """Return whether the overload takes these arguments."""
        if len(arguments) != len(self.parameters):
            return False
        for parameter, value in zip(self.parameters, arguments, strict=True):  # noqa: SIM110 - of every evaluation
            if not parameter.accepts(value):
                return False
        return True


@dataclass(frozen=True, slots=True)
class Function:
    """A function. is_terse: CEL does not name the function when no overload takes its arguments."""

    name: str
    overloads: tuple[Overload, ...]
    is_terse: bool = False

    def choose(self, arguments: Sequence[Value]) -> Overload:
        """Choose the overload that takes the arguments; raise EvaluationError if none does."""
        for candidate in self.overloads:
            if candidate.accepts(arguments):
                return candidate
        names = ", ".join(name_type(value) for value in arguments)
        raise EvaluationError(NO_OVERLOAD if self.is_terse else f"{NO_OVERLOAD}: {self.name}({names})")


Functions = dict[str, Function]


def take(*types: type) -> Parameter:
    """Describe an argument of one of these types."""
    return Parameter(frozenset(types))


def take_list(*elements: type) -> Parameter:
    """Describe a list of elements of one of these types; of any type if none is named."""
    return Parameter(frozenset({tuple}), frozenset(elements))


def make_overload(implementation: Implementation, *parameters: type | Parameter) -> Overload:
    """Describe an overload; a type stands for an argument of this type."""
    return Overload(tuple(item if isinstance(item, Parameter) else take(item) for item in parameters), implementation)


def define(name: str, *overloads: Overload, is_terse: bool = False) -> Function:
    """Describe a function."""
    return Function(name, overloads, is_terse)


def index(*functions: Function) -> Functions:
    """Index functions by their names."""
    return {function.name: function for function in functions}
