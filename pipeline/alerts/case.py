"""What a condition holds for."""

from typing import NamedTuple


class Case(NamedTuple):
    """``labels`` tell the cases of one rule apart."""

    labels: dict[str, str]
    summary: str
    numbers: dict[str, float]
    query: dict[str, str]
