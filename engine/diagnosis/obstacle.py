"""Chooses, of several obstacles, the one that is stated first.

What keeps the scheduler from judging at all comes before what it judged. Of its reasons those come first that pass
when other pods end, then what an administrator can repair, then what the pod itself excludes: of ten nodes, nine of
another model matter less than the tenth, which is full. Within a kind, the one that keeps more nodes out.
"""

from collections.abc import Collection, Iterable
from typing import Final

from engine.diagnosis.outcome import FoundObstacle
from engine.diagnosis.refused_nodes import KINDS
from engine.diagnosis.texts import kind_of
from engine.hami.node_checks import PROBLEMS
from engine.hami.reason_codes import ReasonCode

WORDS_ALONE: Final = "SchedulerFoundNone"


def by_importance(found: Iterable[FoundObstacle]) -> list[FoundObstacle]:
    """Each code once, the most important first; of equals the one that was found first."""
    first: dict[tuple[str, ...], FoundObstacle] = {}
    for obstacle in found:
        # An obstacle of nodes that are named is another one than that of the nodes that an attempt counted.
        apart = [str(obstacle.words.get(name, "")) for name in ("resource", "asked", "count")]
        first.setdefault((obstacle.code, *apart), obstacle)
    explained = {name for obstacle in first.values() if obstacle.code in PROBLEMS for name in obstacle.nodes}
    first = {key: obstacle for key, obstacle in first.items() if not _is_explained(obstacle, explained)}
    if len(first) > 1:
        # What is known of the nodes explains the scheduler's words.
        first = {key: obstacle for key, obstacle in first.items() if obstacle.code != WORDS_ALONE}
    return sorted(first.values(), key=lambda obstacle: (KINDS[kind_of(obstacle.code)], -obstacle.node_count))


def _is_explained(obstacle: FoundObstacle, explained: Collection[str]) -> bool:
    """That the scheduler knows no devices of these nodes follows from what is wrong with their registrations."""
    is_unregistered = obstacle.code == ReasonCode.NODE_UNREGISTERED and obstacle.node_count == len(obstacle.nodes)
    return is_unregistered and set(obstacle.nodes) <= set(explained)
