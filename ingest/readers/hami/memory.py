"""The reader's memory between two lines."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal

from pydantic import ConfigDict

from ingest.readers.hami.attempt import Bind, HamiAttempt
from ingest.readers.hami.container_requests import ContainerRequest
from ingest.readers.hami.devices import RegisteredDevices
from ingest.readers.node_states import EmittedStates, SavedEmittedStates

MAX_UNCLAIMED: Final = 8
MAX_LOCKS: Final = 20_000
"""Nodes whose locks are remembered."""
MAX_FINISHED: Final = 20_000
"""Pods whose latest attempt is remembered, so that a later bind is joined to it."""


@dataclass(slots=True)
class FinishedAttempt:
    """The part of an attempt that a later bind needs."""

    uid: str
    started_at: datetime
    chosen: str


@dataclass(slots=True)
class LockSet:
    """The lock of a node, since a pod set it."""

    pod: str
    """``namespace/name``, or the name where no line has its namespace."""
    locked_at: datetime


@dataclass(slots=True)
class LoggedSettings:
    """The scheduler's version and flags, as it printed them when it started."""

    flags: dict[str, str] = field(default_factory=dict)
    version: str = ""
    observed_at: datetime | None = None
    """The time of the first line about them; None where there is none."""
    digest: str = ""
    """Digest of what was published last."""
    is_open: bool = False
    """Lines about them may follow."""


@dataclass(slots=True)
class UnclaimedRequests:
    """A line with requests that names no pod, and that came before any other line of its attempt."""

    requests: list[ContainerRequest]
    at: datetime
    level: int


@dataclass(slots=True)
class AttemptMemory:
    """All that the reader remembers between two lines; a checkpoint keeps it."""

    # A memory that another version saved has other fields: it is refused, and the log is read from its start.
    __pydantic_config__ = ConfigDict(extra="forbid", defer_build=True)

    version: Literal[2]
    """Without a default, so that a memory without it is refused; to be raised when a field changes its meaning."""
    settings: LoggedSettings = field(default_factory=LoggedSettings)
    open: dict[str, HamiAttempt] = field(default_factory=dict)
    """By pod."""
    waiting: dict[str, list[HamiAttempt]] = field(default_factory=dict)
    """By pod, attempts whose event line has not come although the pod's next attempt has begun."""
    codes: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    """By pod, from the event lines so far: reason code to nodes."""
    unclaimed: list[UnclaimedRequests] = field(default_factory=list)
    filtering: dict[str, str] = field(default_factory=dict)
    """By node, the pod that it was last filtered for: the line with the result names no pod."""
    binds: dict[str, Bind] = field(default_factory=dict)
    locks: dict[str, LockSet] = field(default_factory=dict)
    """By node."""
    finished: dict[str, FinishedAttempt] = field(default_factory=dict)
    devices: RegisteredDevices = field(default_factory=dict)
    states: SavedEmittedStates = field(default_factory=EmittedStates)

    def set_lock(self, node: str, lock: LockSet) -> None:
        # Popped first, so that the newest is last and the oldest is dropped.
        self.locks.pop(node, None)
        self.locks[node] = lock
        while len(self.locks) > MAX_LOCKS:
            del self.locks[next(iter(self.locks))]

    def keep_unclaimed(self, line: UnclaimedRequests) -> None:
        # Two of them are enough to leave open whose they are.
        self.unclaimed = [*self.unclaimed, line][-MAX_UNCLAIMED:]

    def remember(self, attempt: HamiAttempt) -> None:
        """Keep what a later bind of the pod needs."""
        # Popped first, so that the newest is last and the oldest is dropped.
        self.finished.pop(attempt.pod, None)
        chosen = "" if attempt.error else attempt.chosen
        self.finished[attempt.pod] = FinishedAttempt(attempt.uid, attempt.started_at, chosen)
        while len(self.finished) > MAX_FINISHED:
            del self.finished[next(iter(self.finished))]
