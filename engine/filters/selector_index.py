"""Things that select nodes by labels, found from a node's labels without trying each."""

from collections.abc import Iterable, Iterator
from heapq import merge
from operator import itemgetter
from typing import Generic, TypeVar

from engine.snapshot.selectors import Labels, Requirement

Item = TypeVar("Item")


class SelectorIndex(Generic[Item]):
    """Items by one label that each requires of a node.

    Volumes and capacities of local storage are as many as nodes, and each requires one node's own label.
    """

    def __init__(self, items: Iterable[tuple[Item, tuple[Requirement, ...]]]) -> None:
        """Index items; requirements: all that a node has to meet for the item, () where they are alternatives."""
        self._by_label: dict[str, dict[str, list[tuple[int, Item]]]] = {}
        self._others: list[tuple[int, Item]] = []
        for rank, (item, requirements) in enumerate(items):
            self._add(rank, item, requirements)

    def _add(self, rank: int, item: Item, requirements: tuple[Requirement, ...]) -> None:
        for requirement in requirements:
            if requirement.operator == "In":
                by_value = self._by_label.setdefault(requirement.key, {})
                for value in set(requirement.values):
                    by_value.setdefault(value, []).append((rank, item))
                return
        self._others.append((rank, item))

    def find_candidates(self, labels: Labels) -> Iterator[Item]:
        """Yield, in the order of the input, every item that these labels may meet; others are left out."""
        entries = [self._others] if self._others else []
        for key, by_value in self._by_label.items():
            value = labels.get(key)
            if value is not None and value in by_value:
                entries.append(by_value[value])
        ranked = entries[0] if len(entries) == 1 else merge(*entries, key=itemgetter(0))
        return (item for _, item in ranked)
