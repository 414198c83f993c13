"""What a suggestion is, what it costs, and which ones are worth showing."""

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
    "registration": 1.8,
    "health": 2,
    "use": 2,
}
"""What giving up all of it costs; of an amount, the share that is given up counts, of devices and pods each one. Only
the order matters: first what the owner of the pod can change without asking for less, last what others would lose."""


ADMINISTRATORS: Final[frozenset[Constraint]] = frozenset(("quota", "cordon", "health", "registration", "lock"))
"""What only an administrator can change."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One thing to change."""

    constraint: Constraint
    where: str
    """The container's resource, the annotation, the device, the quota's resource, the node, or the pod's uid."""
    before: str
    after: str
    """Empty: it goes."""
    share: float = 1.0
    """How much of it is given up."""
    where_zh: str = ""
    before_zh: str = ""
    """Both in Chinese, where they are words."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Changes after which the pod fits, and where it would go."""

    edits: tuple[Edit, ...]
    allocation: Allocation
    """The node, and the devices of each container."""
    fit_nodes: int
    """How many nodes it would fit."""

    @property
    def cost(self) -> float:
        return sum(COSTS[edit.constraint] * edit.share for edit in self.edits)

    @property
    def actor(self) -> Actor:
        """Who can do all of it."""
        constraints = {edit.constraint for edit in self.edits}
        if constraints & ADMINISTRATORS:
            return "administrator"
        return "wait" if "use" in constraints else "you"

    def given_up(self) -> dict[Constraint, float]:
        """How much of each constraint."""
        amounts: dict[Constraint, float] = {}
        for edit in self.edits:
            amounts[edit.constraint] = amounts.get(edit.constraint, 0.0) + edit.share
        return amounts


def pareto(suggestions: Iterable[Suggestion]) -> list[Suggestion]:
    """Those of which no other gives up no more of anything and less of something; the cheapest first."""
    found: list[Suggestion] = []
    for suggestion in sorted(suggestions, key=_by_cost):
        mine = suggestion.given_up()
        if not any(_is_no_worse(other.given_up(), mine) for other in found):
            found.append(suggestion)
    return found


def _by_cost(suggestion: Suggestion) -> tuple[float, list[str]]:
    return suggestion.cost, [edit.where for edit in suggestion.edits]


def _is_no_worse(other: dict[Constraint, float], mine: dict[Constraint, float]) -> bool:
    return all(share <= mine.get(constraint, 0.0) for constraint, share in other.items())
