"""One case in which the condition of a rule holds."""

from collections.abc import Callable
from dataclasses import dataclass, field

from schemas.events import NodeProblem


@dataclass(frozen=True, slots=True)
class Firing:
    labels: dict[str, str]
    """Distinguish the cases of one rule; together with the rule's name they identify the alert."""
    summary: str
    numbers: dict[str, float]
    links: Callable[[], dict[str, str]]
    """Builds the alert's ``query``. Called only when an alert begins: a condition holds at every tick, and building
    URLs each time would be the most expensive part of a tick."""
    problems: list[NodeProblem] = field(default_factory=list)
