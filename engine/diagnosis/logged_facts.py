"""Facts that lines of a scheduler's log hold without being a verdict: a node lost its devices, a pod holds some."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal

from schemas.events import Request

LoggedKind = Literal[
    "devices dropped", "devices added", "registration skipped", "node reserved", "mode not offered",
    "admission denied", "admission passed over", "lock taken", "lock released", "device held", "devices released",
    "request rejected", "no request read", "setting ignored", "quota exceeded", "not leader", "cache not synced",
    "scheduler crashed", "log ended", "pod evicted",
]  # fmt: skip
"""Kinds of facts. ``no request read``: the scheduler read no request for devices in the pod, and passed it on."""


@dataclass(frozen=True, slots=True)
class LoggedFact:
    """One fact of one line; the fields that the line does not give are empty."""

    kind: LoggedKind
    time: datetime
    node: str = ""
    pod: str = ""
    """``namespace/name``, or the name where the line has no namespace."""
    device: str = ""
    vendor: str = ""
    words: str = ""
    """The words of the line that say why."""
    numbers: Mapping[str, int] = field(default_factory=dict)
    """By name with the unit."""

    def is_about(self, namespace: str, name: str) -> bool:
        return self.pod in (name, f"{namespace}/{name}")


@dataclass(frozen=True, slots=True)
class UnfinishedAttempt:
    """An attempt that began in the log and got no verdict there."""

    namespace: str
    name: str
    uid: str
    scheduler: str
    started_at: datetime
    requests: Sequence[Request] = ()
    levels: Sequence[int] = ()
    reader: str = "hami-log"

    @property
    def pod(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class EarlierAttempts:
    """Attempts of a pod before its latest ones, of which only the number matters."""

    pod: str
    count: int


MAX_FACTS: Final = 50_000
MAX_OF_KEY: Final = 8
"""Facts of one kind about the same node, pod and device; the oldest beyond it are dropped."""


@dataclass(slots=True)
class LoggedFacts:
    """The facts of a log, bounded: of repeated ones the first and the latest."""

    _facts: dict[tuple[str, ...], list[LoggedFact]] = field(default_factory=dict)
    _size: int = 0
    left_out: int = 0
    """Facts beyond ``MAX_FACTS``."""

    def add(self, fact: LoggedFact) -> None:
        key = (fact.kind, fact.node, fact.pod, fact.device, fact.vendor)
        facts = self._facts.get(key)
        if facts is None and self._size >= MAX_FACTS:
            self.left_out += 1
            return
        facts = self._facts.setdefault(key, [])
        facts.append(fact)
        self._size += 1
        if len(facts) > MAX_OF_KEY:
            del facts[1]
            self._size -= 1

    def list_facts(self) -> list[LoggedFact]:
        """List the facts in the order of their times."""
        return sorted((fact for facts in self._facts.values() for fact in facts), key=lambda fact: fact.time)


def select_facts(facts: Iterable[LoggedFact], *kinds: LoggedKind) -> Iterator[LoggedFact]:
    return (fact for fact in facts if fact.kind in kinds)


def find_latest(facts: Iterable[LoggedFact], until: datetime) -> LoggedFact | None:
    """Find the latest of the facts, which are in the order of their times, that is not after ``until``."""
    latest = None
    for fact in facts:
        if fact.time <= until:
            latest = fact
    return latest
