"""Event `node.checked` of a node, the same for every source that checks the node."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from engine.hami.node_checks import RegistrationProblem
from schemas.events import NodeChecked, NodeProblem

_MAX_HANDSHAKE_CHARACTERS: Final = 200
"""Limit of a reported handshake: real ones are shorter, but an annotation may hold anything."""


def to_node_checked(
    cluster: str, node: str, observed_at: datetime, problems: Iterable[RegistrationProblem], *, scheduler: str = ""
) -> NodeChecked:
    """Convert the problems that the node has now to its event."""
    listed = list(map(_to_node_problem, problems))
    return NodeChecked(cluster=cluster, node=node, observed_at=observed_at, scheduler=scheduler, problems=listed)


def _to_node_problem(problem: RegistrationProblem) -> NodeProblem:
    fields: dict[str, Any] = {"code": problem.code, "vendor": problem.vendor, "message": problem.message}
    if problem.handshake:
        written_at = problem.handshake_at
        fields |= {
            "handshake": problem.handshake.text[:_MAX_HANDSHAKE_CHARACTERS],
            # The contract has no time before 1970.
            "handshake_at": written_at if written_at and written_at.year >= 1970 else None,
            "is_asked": problem.handshake.is_request,
        }
    if problem.allocatable is not None:
        fields["allocatable"] = max(problem.allocatable, 0)
    return NodeProblem(**fields)
