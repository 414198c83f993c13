"""What is held between two lines, within bounds, and how it is let go: told as it is known."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from typing import Final

from ingest.hami.attempt import Attempt
from ingest.hami.events import Bind, about, tell, tell_bind
from ingest.hami.registry import Cards
from ingest.lines import klog
from ingest.lines.blocks import Lines, Origin
from ingest.protocol import Counts
from schemas.events import AttemptEvent

PATIENCE: Final = timedelta(minutes=10)
"""Of log time without a line about an attempt, after which its end is not waited for."""
MAX_OPEN: Final = 1_000
"""Attempts that are held at once; of more, the one that was silent longest is told as it is known."""
MAX_ROWS: Final = 500_000
"""Device and node lines that are held at once, over all attempts."""
MAX_WAITING: Final = 8
"""Attempts of one pod that wait for their event lines."""
MAX_REMEMBERED: Final = 20_000
"""Pods whose latest attempt is remembered, so that a bind finds it."""
MAX_TEXT: Final = 4_000


@dataclass(slots=True)
class Finished:
    """What a bind has to know of the attempt that chose the node."""

    uid: str
    started_at: datetime
    chosen: str


@dataclass(slots=True)
class Memory:
    """All that the reader remembers between two lines."""

    open: dict[str, Attempt] = field(default_factory=dict)
    """By pod."""
    waiting: dict[str, list[Attempt]] = field(default_factory=dict)
    """Attempts whose pod has begun another one, before their event line was there."""
    codes: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    """Per pod, of the event lines so far: reason code to nodes."""
    binds: dict[str, Bind] = field(default_factory=dict)
    finished: dict[str, Finished] = field(default_factory=dict)
    cards: Cards = field(default_factory=dict)
    rows: int = 0


class Book:
    """The attempts and binds that are going on. What is finished stands in ``told`` until it is taken."""

    def __init__(self, scheduler: str, cards: Cards, zone: tzinfo) -> None:
        self.counts = Counts()
        self.memory = Memory(cards=dict(cards))
        self.scheduler, self.zone = scheduler, zone
        self.lines, self.place = Lines(Origin(""), ()), 0
        """The lines that are being read, and which of them it is."""
        self.ask_in_several = True
        """False while no open attempt has several containers that ask."""
        self.told: list[AttemptEvent] = []

    def open(self, namespace: str, name: str, uid: str, now: datetime) -> Attempt:
        attempt = Attempt(namespace, name, uid, now, now)
        self.memory.open[attempt.pod] = attempt
        self._hold_within_bounds(now)
        self.ask_in_several = any(len(each.asking()) > 1 for each in self.memory.open.values())
        return attempt

    def _reference(self) -> datetime:
        """The line is not much younger than this."""
        times = self.lines.times
        return (times and times[self.place]) or self.lines.origin.reference

    def time_of(self, text: bytes) -> datetime | None:
        return klog.moment(text, self._reference(), self.zone)

    def by_name(self, name: str) -> Attempt | None:
        """The only open attempt of a pod with this name in any namespace; the line does not say the namespace."""
        found = [attempt for attempt in self.memory.open.values() if attempt.name == name]
        return found[0] if len(found) == 1 else None

    def wait(self, pod: str, attempt: Attempt) -> None:
        waiting = self.memory.waiting.setdefault(pod, [])
        waiting.append(attempt)
        if len(waiting) > MAX_WAITING:
            self.finish(waiting.pop(0))

    def _hold_within_bounds(self, now: datetime) -> None:
        """At the start of an attempt, and by the log's own clock: so the events follow from the text alone."""
        memory = self.memory
        held = [*memory.open.values(), *(each for waiting in memory.waiting.values() for each in waiting)]
        rows = sum(len(each.devices) + len(each.nodes) for each in held) if len(held) > 1 else 0
        if len(held) <= MAX_OPEN and rows <= MAX_ROWS and now - min(each.last for each in held) <= PATIENCE:
            return
        for attempt in sorted(held, key=lambda each: each.last):
            if attempt.started_at == now or (
                len(held) <= MAX_OPEN and rows <= MAX_ROWS and now - attempt.last <= PATIENCE
            ):
                break
            held.remove(attempt)
            rows -= len(attempt.devices) + len(attempt.nodes)
            self._drop(attempt)
            self.finish(attempt)
        for pod in [pod for pod, bind in memory.binds.items() if now - bind.started_at > PATIENCE]:
            self.finish_bind(pod)

    def held(self, pod: str) -> list[Attempt]:
        """The pod's attempts that are not told yet, in the order in which they started."""
        latest = self.memory.open.get(pod)
        return [*self.memory.waiting.get(pod, ()), *([latest] if latest else [])]

    def _drop(self, attempt: Attempt) -> None:
        memory = self.memory
        if memory.open.get(attempt.pod) is attempt:
            del memory.open[attempt.pod]
            return
        left = [each for each in memory.waiting.pop(attempt.pod, ()) if each is not attempt]
        if left:
            memory.waiting[attempt.pod] = left

    def finish(self, attempt: Attempt) -> None:
        """Tell it, and remember who it was: a bind may follow."""
        if not attempt.nodes and not attempt.ended_at and not attempt.devices:
            return
        told, reading = tell(attempt, self.memory.cards, self.scheduler)
        self.told += told
        if attempt.ended_at and not reading.not_reported:
            self.counts.attempts_complete += 1
        else:
            self.counts.attempts_incomplete += 1
        finished = self.memory.finished
        finished.pop(attempt.pod, None)
        finished[attempt.pod] = Finished(attempt.uid, attempt.started_at, "" if attempt.error else attempt.chosen)
        while len(finished) > MAX_REMEMBERED:
            del finished[next(iter(finished))]

    def chosen(self, pod: str) -> str:
        finished = self.memory.finished.get(pod)
        return finished.chosen if finished else ""

    def finish_bind(self, pod: str) -> None:
        """Tell a bind whose outcome was read; one without an outcome says nothing."""
        bind = self.memory.binds.pop(pod, None)
        if not bind or not bind.ended_at or not (names := names_of(pod)):
            return
        attempt = self._chooser(names, pod, bind)
        self.told.append(tell_bind(about(attempt, self.scheduler), bind, bind.ended_at))

    def _chooser(self, names: tuple[str, str], pod: str, bind: Bind) -> Attempt:
        """The attempt that chose the node: the latest that was told, or one that still waits for its event line."""
        for attempt in reversed(self.held(pod)):
            if attempt.chosen and attempt.started_at <= bind.started_at:
                return attempt
        if finished := self.memory.finished.get(pod):
            return Attempt(*names, finished.uid, finished.started_at, finished.started_at)
        return Attempt(*names, "", bind.started_at, bind.started_at)

    def take(self) -> list[AttemptEvent]:
        told, self.told = self.told, []
        self.counts.events += len(told)
        return told

    def waits_for(self) -> set[str]:
        """The attempts and binds that were begun and not told."""
        memory = self.memory
        held = [*memory.open.values(), *(each for waiting in memory.waiting.values() for each in waiting)]
        return {f"{each.pod} {each.started_at}" for each in held} | {f"bind {pod}" for pod in memory.binds}

    def close(self) -> None:
        """Let go of everything."""
        memory = self.memory
        for pod in [*memory.waiting, *memory.open]:
            for attempt in self.held(pod):
                self.finish(attempt)
            memory.waiting.pop(pod, None)
            memory.open.pop(pod, None)
        for pod in list(memory.binds):
            self.finish_bind(pod)
        memory.codes.clear()


def names_of(pod: str) -> tuple[str, str] | None:
    """Namespace and name of ``namespace/name``; None for what no pod is called."""
    namespace, _, name = pod.partition("/")
    return (namespace, name) if namespace and name and "/" not in name else None
