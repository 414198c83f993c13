"""The checks of node columns that every event with a row per node shares."""

from typing import Any, Protocol

from schemas.events.base import Refusal
from schemas.events.columns import Codes, Floats, check_codes, check_lengths
from schemas.events.field_types import Words


class HasNodeColumns(Protocol):
    """An event with a row per node."""

    @property
    def nodes(self) -> Words: ...
    @property
    def verdicts(self) -> Words: ...
    @property
    def refusals(self) -> list[Refusal]: ...
    @property
    def verdict(self) -> Codes: ...
    @property
    def score(self) -> Floats: ...
    @property
    def refused_by(self) -> Codes: ...
    @property
    def refusal(self) -> Codes: ...


def check_node_columns(event: HasNodeColumns, more: dict[str, Any]) -> None:
    """Raise ``ValueError`` unless the columns that both kinds of node tables share agree with each other."""
    columns = {
        "verdict": event.verdict,
        "score": event.score,
        "refused_by": event.refused_by,
        "refusal": event.refusal,
    } | more
    check_lengths(columns, len(event.nodes))
    tables = {"verdict": (event.verdict, len(event.verdicts)), "refusal": (event.refusal, len(event.refusals))}
    check_codes(tables)
    if event.verdict.size and event.verdict.min() < 0:
        raise ValueError("every node has a verdict")
