"""A selector compiled once, and its outcome on a device."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Final

from engine.claims.cel.checks import CompileError
from engine.claims.cel.compiler import compile_expression
from engine.claims.cel.parts import FailedPart, explain_failure
from engine.claims.cel.planner import EvaluationPlan, plan_program
from engine.claims.cel.reads import Reads, find_reads
from engine.claims.cel.syntax import CheckedExpression
from engine.claims.cel.values import CostError, EvaluationError, UnjudgedError, Value, ValueSizeError, name_type

_MAX_REMEMBERED: Final = 2_000
"""Characters of a selector that is remembered; it holds 50 bytes for each."""


class Truth(Enum):
    """The outcome of a selector on a device."""

    TRUE = "true"
    FALSE = "false"
    RUN_ERROR = "run error"
    COMPILE_ERROR = "compile error"
    UNJUDGED = "unjudged"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a selector on a device. text: the error, or the reason why it is not judged."""

    truth: Truth
    text: str = ""

    @property
    def is_true(self) -> bool:
        """Return whether the device is selected."""
        return self.truth is Truth.TRUE


TRUE = Outcome(Truth.TRUE)
FALSE = Outcome(Truth.FALSE)


@dataclass(frozen=True, slots=True)
class Selector:
    """A compiled selector. failure: its outcome on every device, if it does not compile."""

    text: str
    checked: CheckedExpression | None
    program: EvaluationPlan | None
    failure: Outcome | None
    reads: Reads | None
    """Attributes that decide the outcome; None if the selector may read any of them."""

    def evaluate(self, device: Value) -> Outcome:
        """Evaluate the selector on a device (`engine.claims.cel.attributes.make_device`)."""
        if self.program is None:
            return self.failure or FALSE
        try:
            value = self.program.run(device)
        except (EvaluationError, CostError) as error:
            return Outcome(Truth.RUN_ERROR, str(error))
        except (ValueSizeError, UnjudgedError) as error:
            return Outcome(Truth.UNJUDGED, str(error))
        if type(value) is bool:
            return TRUE if value else FALSE
        name = name_type(value)
        return Outcome(
            Truth.RUN_ERROR,
            f"CEL result of type {name} could not be converted to bool: {_explain_conversion(name)}",
        )

    def explain(self, device: Value) -> Sequence[FailedPart]:
        """Explain which parts are not true for a device; nothing for a selector that does not compile."""
        return explain_failure(self.checked, device) if self.checked else ()


def _explain_conversion(name: str) -> str:
    """Explain why a value is no truth value, in the words of its type in Kubernetes."""
    words: Mapping[str, str] = {
        "string": "unsupported native conversion from string to 'bool'",
        "int": "unsupported type conversion from 'int' to bool",
        "uint": "unsupported type conversion from 'uint' to bool",
        "double": "type conversion error from Double to 'bool'",
        "kubernetes.Semver": "type conversion error from 'Semver' to 'bool'",
        "list": "type conversion error from list to 'bool'",
        "map": "type conversion error from map to 'bool'",
    }
    return words.get(name, f"unsupported native conversion from {name} to 'bool'")


def compile_selector(text: str, *, with_lists: bool = False) -> Selector:
    """Compile a selector; one that does not compile is a selector with a failure."""
    if len(text) > _MAX_REMEMBERED:
        return _build_selector(text, with_lists)
    return remember_selector(text, with_lists)


@lru_cache(maxsize=256)
def remember_selector(text: str, with_lists: bool) -> Selector:
    """Compile a selector once."""
    return _build_selector(text, with_lists)


def _build_selector(text: str, with_lists: bool) -> Selector:
    try:
        checked = compile_expression(text, with_lists=with_lists)
        program = plan_program(checked)
    except CompileError as error:
        return _fail(text, Truth.COMPILE_ERROR, str(error))
    except EvaluationError as error:
        # A constant that cannot be computed fails while Kubernetes builds the program.
        return _fail(text, Truth.COMPILE_ERROR, f"program instantiation failed: {error}")
    except (UnjudgedError, ValueSizeError) as error:
        return _fail(text, Truth.UNJUDGED, str(error))
    except RecursionError:
        return _fail(text, Truth.UNJUDGED, "the expression is nested too deeply to be judged")
    return Selector(text, checked, program, None, find_reads(checked.root))


def _fail(text: str, truth: Truth, cause: str) -> Selector:
    return Selector(text, None, None, Outcome(truth, cause), Reads(()))
