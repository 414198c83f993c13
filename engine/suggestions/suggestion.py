"""Suggestions, their costs, and the choice of those worth showing."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from engine.fit.judge.decision import Allocation
from engine.suggestions.ask import Constraint

Actor = Literal["you", "administrator", "wait"]

COSTS: Final[dict[Constraint, float]] = {
    "memory": 1,
    "cores": 1,
    "count": 2,
    "numa": 0.3,
    "policy": 0.3,
    "mode": 0.5,
    "type": 0.5,
    "uuid": 0.5,
    "nodes": 0.6,
    "quota": 1.5,
    "cordon": 1.5,
    "lock": 1.5,
    "taint": 0.7,
    "selector": 0.6,
    "request": 1,
    "uncordon": 1.5,
    "claim": 0.8,
    "class": 0.75,
    "volume": 0.9,
    "node": 1.9,
    "registration": 1.8,
    "health": 2,
    "use": 2,
}
"""Cost of giving up a constraint completely; of an amount, the share that is given up counts, of devices and pods each
one. Only the order matters: first changes that the owner of the pod can make without requesting less, last losses of
others."""


ADMINISTRATORS: Final[frozenset[Constraint]] = frozenset(
    ("quota", "cordon", "health", "registration", "lock", "uncordon", "node")
)
"""Constraints that only an administrator can change."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One change."""

    constraint: Constraint
    where: str
    """The container's resource, the annotation, the device, the quota's resource, the node, or the pod's uid."""
    before: str
    after: str
    """New value; empty if it is removed."""
    share: float = 1.0
    """Share that is given up."""
    where_zh: str = ""
    before_zh: str = ""
    """``before`` in Chinese, as ``where_zh`` is ``where``, if they are words."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Changes after which the pod fits, and its placement then."""

    edits: tuple[Edit, ...]
    allocation: Allocation
    """Node, and devices of each container."""
    fit_nodes: int
    """Number of nodes that it would fit."""

    @property
    def cost(self) -> float:
        return sum(COSTS[edit.constraint] * edit.share for edit in self.edits)

    @property
    def actor(self) -> Actor:
        """Person who can make all of the changes."""
        constraints = {edit.constraint for edit in self.edits}
        if constraints & ADMINISTRATORS:
            return "administrator"
        return "wait" if "use" in constraints else "you"

    def sum_shares(self) -> dict[Constraint, float]:
        """Sum the shares that are given up, by constraint."""
        amounts: dict[Constraint, float] = {}
        for edit in self.edits:
            amounts[edit.constraint] = amounts.get(edit.constraint, 0.0) + edit.share
        return amounts


def select_pareto(suggestions: Iterable[Suggestion]) -> list[Suggestion]:
    """Select the Pareto-optimal suggestions, cheapest first."""
    selected: list[Suggestion] = []
    for suggestion in sorted(suggestions, key=_rank_by_cost):
        mine = suggestion.sum_shares()
        if not any(_is_no_worse(other.sum_shares(), mine) for other in selected):
            selected.append(suggestion)
    return selected


def _rank_by_cost(suggestion: Suggestion) -> tuple[float, list[str]]:
    return suggestion.cost, [edit.where for edit in suggestion.edits]


def _is_no_worse(other: dict[Constraint, float], mine: dict[Constraint, float]) -> bool:
    return all(share <= mine.get(constraint, 0.0) for constraint, share in other.items())
