"""Division of a pod's wait among the layers that held it. Pure.

The parts add up to the whole: from the pod's creation, or its first attempt, to its bind, and to its start once it has
started.
"""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from engine.summaries.pod_facts import LayerMark

NODES: Final = "nodes"
BIND: Final = "bind"
START: Final = "start"
MAX_MARKS: Final = 64
"""Limit of the marks of one pod: of more, those that repeat the one before go first, then the oldest."""


class WaitTimes(NamedTuple):
    """Times at which a pod went on: ``chosen_at`` and ``running_at`` are None where they are not known."""

    since: datetime
    chosen_at: datetime | None
    bound_at: datetime
    running_at: datetime | None


def divide_wait(times: WaitTimes, marks: Collection[LayerMark]) -> dict[str, float]:
    """Divide the wait among the layers, in seconds; layers that did not hold the pod are left out."""
    # Clocks differ: no part is negative.
    bound = max(times.bound_at, times.since)
    chosen = min(max(times.chosen_at or bound, times.since), bound)
    running = max(times.running_at or bound, bound)
    parts = [*_iterate_marked(times.since, chosen, sort_marks(marks)), (BIND, chosen, bound), (START, bound, running)]
    seconds: dict[str, float] = {}
    for layer, begin, end in parts:
        if end > begin:
            seconds[layer] = seconds.get(layer, 0.0) + (end - begin).total_seconds()
    return seconds


def _iterate_marked(
    since: datetime, until: datetime, marks: Sequence[LayerMark]
) -> Iterator[tuple[str, datetime, datetime]]:
    """Iterate over the parts between the marks; the first mark holds from the beginning."""
    begin, layer = since, marks[0].layer if marks else NODES
    for mark in marks[1:]:
        end = min(max(mark.time, since), until)
        yield layer, begin, end
        begin, layer = end, mark.layer
    yield layer, begin, until


def sort_marks(marks: Collection[LayerMark]) -> list[LayerMark]:
    """Sort marks by time; of one time and pod the order is that of the layers."""
    return sorted(marks, key=lambda mark: (mark.time, mark.layer))


def limit_marks(marks: Collection[LayerMark]) -> list[LayerMark]:
    """Limit the marks of one pod to ``MAX_MARKS``."""
    ordered = sort_marks(marks)
    if len(ordered) <= MAX_MARKS:
        return ordered
    changes = [mark for index, mark in enumerate(ordered) if not index or ordered[index - 1].layer != mark.layer]
    return [*changes[:1], *changes[1:][-(MAX_MARKS - 1) :]]
