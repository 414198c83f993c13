"""Which happenings belong to one attempt, and when nothing more of it is to be expected. Pure.

HAMi tells an attempt in several events (a line for each reason, a last line, then kube-scheduler's own), each with a
time of its own. A pod is tried again and again, so what can't be of one try begins the next.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from ingest.kube.scheduling_events import Happening, Kind

TOGETHER: Final = timedelta(seconds=2)
"""HAMi's events have whole seconds, and kube-scheduler's comes last: so far apart can one attempt's events be."""
QUIET_SECONDS: Final = 2.0
"""Without a further event for so long a pod's attempts are told."""
MAX_PODS: Final = 100_000
_ENDS: Final[frozenset[Kind]] = frozenset(("refused", "failed", "fits", "chosen"))
_BINDS: Final[frozenset[Kind]] = frozenset(("bound", "not bound"))
_ORDER: Final[dict[Kind, int]] = {
    "failed by code": 0, "failed": 1, "fits": 1, "refused": 2, "chosen": 2, "bound": 3, "not bound": 3, "pushed out": 4,
}  # fmt: skip


@dataclass(slots=True)
class Group:
    """The happenings of one attempt, in order."""

    happenings: list[Happening] = field(default_factory=list)

    @property
    def kinds(self) -> set[Kind]:
        return {each.kind for each in self.happenings}

    @property
    def started_at(self) -> datetime:
        """kube-scheduler's own time where there is one: it has microseconds, and is the same after a restart."""
        # A bind may come late or by itself: it never moves the start.
        tried = [each.time for each in self.happenings if each.kind not in _BINDS] or [self.happenings[0].time]
        return next((time for time in tried if time.microsecond), tried[0])

    def of(self, *kinds: Kind) -> list[Happening]:
        return [each for each in self.happenings if each.kind in kinds]

    def takes(self, happening: Happening) -> bool:
        """Can it be of the same attempt?"""
        if not self.happenings:
            return True
        kinds = self.kinds
        if happening.kind in _BINDS:
            # However late: a bind waits for volumes, and both HAMi and kube-scheduler tell of one bind.
            return kinds <= _BINDS or bool(kinds & {"fits", "chosen"})
        if happening.time - self.happenings[0].time > TOGETHER or kinds & _BINDS:
            return False
        return not (happening.kind in kinds & _ENDS or _contradicts(happening.kind, kinds))


def _contradicts(kind: Kind, kinds: set[Kind]) -> bool:
    """Behind its last line nothing but kube-scheduler's word on the same attempt comes."""
    if kind == "failed by code":
        return bool(kinds & _ENDS)
    if kind in ("fits", "chosen"):
        return bool(kinds & {"failed", "refused", "failed by code"})
    return kind == "failed" and bool(kinds & _ENDS)


def groups(found: list[Happening]) -> Iterator[Group]:
    """One pod's happenings, cut into attempts."""
    group = Group()
    for happening in sorted(found, key=lambda each: (each.time, _ORDER[each.kind], each.text)):
        if not group.takes(happening):
            yield group
            group = Group()
        group.happenings.append(happening)
    if group.happenings:
        yield group


@dataclass(slots=True)
class _Waiting:
    happenings: list[Happening]
    touched: float


class Gathered:
    """Happenings that wait for others of their attempt. Bounded: of too many pods the longest waiting go first."""

    def __init__(self) -> None:
        self._pods: OrderedDict[str, _Waiting] = OrderedDict()

    def __len__(self) -> int:
        return len(self._pods)

    def is_waiting(self, pod: str) -> bool:
        return pod in self._pods

    def add(self, happening: Happening, now: float) -> list[Group]:
        """Take in a happening; the groups of another pod that had to go for want of room. ``now`` as in ``settled``."""
        pod = str(happening.pod)
        waiting = self._pods.pop(pod, None) or _Waiting([], now)
        if happening not in waiting.happenings:
            waiting.happenings.append(happening)
        waiting.touched = now
        self._pods[pod] = waiting
        if len(self._pods) <= MAX_PODS:
            return []
        return list(groups(self._pods.popitem(last=False)[1].happenings))

    def settled(self, now: float) -> list[Group]:
        """The attempts of pods about which nothing was said for a while."""
        found: list[Group] = []
        while self._pods:
            pod, waiting = next(iter(self._pods.items()))
            if now - waiting.touched < QUIET_SECONDS:
                break
            del self._pods[pod]
            found.extend(groups(waiting.happenings))
        return found

    def all(self) -> list[Group]:
        waiting, self._pods = self._pods, OrderedDict()
        return [group for each in waiting.values() for group in groups(each.happenings)]
