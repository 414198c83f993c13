"""The checks of node columns that every event with a row per node shares."""

from typing import Any, Protocol

import numpy as np

from .base import Refusal
from .columns import Codes, CodeText, Floats, check_codes, check_lengths, find_least, write_code_text
from .field_types import Words


class HasNodeColumns(Protocol):
    """An event with a row per node."""

    @property
    def nodes(self) -> Words: ...
    @property
    def verdicts(self) -> Words: ...
    @property
    def refusals(self) -> list[Refusal]: ...
    @property
    def verdict(self) -> CodeText: ...
    @property
    def score(self) -> Floats: ...
    @property
    def refused_by(self) -> CodeText: ...
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
    if find_least(event.verdict) < 0:
        raise ValueError("every node has a verdict")


def write_node_columns(event: HasNodeColumns) -> dict[str, Any]:
    """Build the columns whose JSON differs from their arrays."""
    return {
        "verdict": write_code_text(event.verdict),
        # Of thousands of nodes that do not fit, as a rule; a reader gets the zeros back.
        "score": event.score if np.any(event.score) else [],
        "refused_by": write_code_text(event.refused_by),
    }


def restore_scores(event: HasNodeColumns) -> None:
    """Put a 0 for each node in the place of a column of scores that was left out."""
    if not len(event.score):
        # Models are frozen for those who use them, and this one is not in use yet.
        event.__dict__["score"] = np.zeros(len(event.nodes), dtype=np.float32)
