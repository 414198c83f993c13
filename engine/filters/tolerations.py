"""Tolerations of pods for taints of nodes and devices."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from engine.snapshot.fields import Object, read_items, read_text
from engine.snapshot.nodes import Taint
from engine.snapshot.selectors import read_integer

_BLOCKING: Final = frozenset(("NoSchedule", "NoExecute"))
_DECIMAL: Final = re.compile(r"0|-?[1-9][0-9]*")


@dataclass(frozen=True, slots=True)
class Toleration:
    """A toleration. How long it lasts does not matter to scheduling."""

    key: str
    operator: str
    value: str
    effect: str

    def covers(self, taint: Taint, *, compares: bool = False) -> bool:
        """Return whether the toleration covers a taint: no effect covers all effects, no key all keys.

        compares: whether ``Gt`` and ``Lt`` are known (gate TaintTolerationComparisonOperators).
        """
        if self.effect not in ("", taint.effect) or self.key not in ("", taint.key):
            return False
        if self.operator in ("", "Equal"):
            return self.value == taint.value
        if self.operator == "Exists":
            return True
        return compares and self._compares(taint)

    def _compares(self, taint: Taint) -> bool:
        if not (_DECIMAL.fullmatch(self.value) and _DECIMAL.fullmatch(taint.value)):
            return False
        bound, value = read_integer(self.value), read_integer(taint.value)
        if bound is None or value is None:
            return False
        return (self.operator == "Gt" and value > bound) or (self.operator == "Lt" and value < bound)


def read_tolerations(parent: Object, path: str = "spec") -> tuple[Toleration, ...]:
    """Read the tolerations of a pod's spec or of a device request."""
    fields = ("key", "operator", "value", "effect")
    return tuple(
        Toleration(*(read_text(item, field, location) for field in fields))
        for location, item in read_items(parent, "tolerations", path)
    )


def blocks_scheduling(taint: Taint) -> bool:
    """Return whether a taint keeps pods from a node that do not tolerate it."""
    return taint.effect in _BLOCKING


def find_untolerated(
    taints: Iterable[Taint], tolerations: tuple[Toleration, ...], *, compares: bool = False
) -> Taint | None:
    """Return the first blocking taint that no toleration covers."""
    for taint in taints:
        if blocks_scheduling(taint) and not any(
            toleration.covers(taint, compares=compares) for toleration in tolerations
        ):
            return taint
    return None
