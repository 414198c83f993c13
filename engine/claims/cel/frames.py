"""One evaluation of an expression: its device, its variables, and its cost so far."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from engine.claims.cel import costs
from engine.claims.cel.lists import wrap
from engine.claims.cel.values import CostError, OptionalValue, Value

_LOOP_ROUNDS: Final = 200_000
"""Rounds of loops over constants, which cost nothing."""


class Frame:
    """One evaluation: the device, the variables of loops, and the cost so far."""

    __slots__ = ("cost", "device", "rounds", "slots")

    def __init__(self, device: Value, slots: int) -> None:
        """Begin an evaluation on a device with a number of variables."""
        self.device = device
        self.slots: list[Any] = [None] * slots
        self.cost = 0
        self.rounds = 0

    def spend(self, units: int) -> None:
        """Count units of cost; raise CostError beyond Kubernetes' limit."""
        self.cost += units
        if self.cost > costs.LIMIT:
            raise CostError("operation cancelled: actual cost limit exceeded")

    def count_round(self) -> None:
        """Count a round of a loop; raise CostError for loops that cost nothing and do not end."""
        self.rounds += 1
        if self.rounds > _LOOP_ROUNDS:
            raise CostError("operation cancelled: actual cost limit exceeded")


Evaluate = Callable[[Frame], Value]


@dataclass(frozen=True, slots=True)
class EvaluationStep:
    """A part of an expression that can be evaluated. constant: its value, where no device decides it."""

    evaluate: Evaluate
    constant: OptionalValue | None = None


def make_constant(value: Value) -> EvaluationStep:
    """Make the step of a constant."""
    return EvaluationStep(lambda _: value, wrap(value))
