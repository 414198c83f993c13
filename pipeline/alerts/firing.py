"""What a condition holds for."""

from collections.abc import Callable
from typing import NamedTuple


class Case(NamedTuple):
    """``labels`` tell the cases of one rule apart."""

    labels: dict[str, str]
    summary: str
    numbers: dict[str, float]
    query: Callable[[], dict[str, str]]
    """Asked for when the alert is told: what fires holds at every tick."""
