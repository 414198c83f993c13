"""The sessions that are not over yet, with their attempts. Bounded: three sessions, 20,000 attempts in each.

KAI prints no end of a session, and lines about conditions may come after the next session has begun; so a session is
taken to be over when ``OPEN_SESSIONS`` others have followed, or when the log is closed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from engine.diagnosis.logged_facts import LoggedFact, UnfinishedAttempt
from ingest.readers.kai import tags
from ingest.readers.kai.attempt import KaiAttempt
from ingest.readers.kai.devices import SharedDeviceStates
from ingest.readers.kai.events import SCHEDULER, SOURCE, build_events, is_complete
from ingest.readers.kai.grammar import ParsedMessage
from ingest.readers.kai.node_labels import NodePools
from ingest.readers.kai.placements import PlacedMemories
from ingest.readers.kai.session import Session
from ingest.readers.kai.states import StateMemo
from ingest.readers.node_states import EmittedStates, SavedEmittedStates
from ingest.reading.protocol import Counts, NoteFact
from schemas.events import Event

OPEN_SESSIONS: Final = 3


@dataclass(slots=True)
class SessionMemory:
    """The sessions in a checkpoint."""

    sessions: list[Session] = field(default_factory=list)
    """Oldest first."""
    tag_context: tags.TagContext = field(default_factory=tags.TagContext)
    states: SavedEmittedStates = field(default_factory=EmittedStates)
    placed: PlacedMemories = field(default_factory=PlacedMemories)
    node_pool: str = ""
    """The pool that the scheduler serves, as a line named it last."""


class OpenSessions:
    """Events of attempts that are over are appended to ``finished`` until ``take`` is called."""

    def __init__(
        self, cluster: str, gpu_memory_mib: Mapping[str, int], pools: NodePools, note: NoteFact | None = None
    ) -> None:
        """Start without sessions. ``gpu_memory_mib``: memory of each GPU as KAI counts it, by node."""
        self._note = note
        self.counts = Counts()
        self.memory = SessionMemory()
        self.finished: list[Event] = []
        self._cluster, self._gpu_memory_mib, self._pools = cluster, gpu_memory_mib, pools

    def apply(self, message: ParsedMessage) -> bool:
        """Add a message to its session; False if it changes nothing."""
        name = message.session or message.get_part("session")
        sessions = self.memory.sessions
        # Most lines are about the latest session.
        is_latest = bool(sessions) and sessions[-1].name == name
        session = sessions[-1] if is_latest else self._find_session(name, message.time)
        return session.apply(message)

    def apply_tagged(self, line: tags.TaggedLine, session_name: str, time: datetime, number: int) -> bool:
        """Add a line of the patch to its session; False if it changes nothing. ``number`` is the line's."""
        session = self._find_session(session_name, time)
        # These lines name no session: a new walk of the pod after its allocation is its next attempt.
        if tags.begins_walk(line) and (over := session.attempts.get(tags.find_pod(line))) and over.is_allocation_over:
            self._finish(session.attempts.pop(over.pod), session, StateMemo())
        before = len(session.attempts)
        is_applied = tags.apply(session, self.memory.tag_context, line, time)
        if len(session.attempts) > before:
            next(reversed(session.attempts.values())).ordinal = number
        return is_applied

    def _find_session(self, name: str, time: datetime) -> Session:
        sessions = self.memory.sessions
        for session in reversed(sessions):
            if session.name == name:
                return session
        session = Session(name, time, devices=SharedDeviceStates(total_mib=dict(self._gpu_memory_mib)))
        sessions.append(session)
        while len(sessions) > OPEN_SESSIONS:
            self._finish_session(sessions.pop(0))
        return session

    def _finish_session(self, session: Session) -> None:
        states = StateMemo()
        self.memory.node_pool = session.node_pool or self.memory.node_pool
        for attempt in session.attempts.values():
            self._finish(attempt, session, states)
        if self._note:
            _note_evictions(session, self._note)

    def _finish(self, attempt: KaiAttempt, session: Session, states: StateMemo) -> None:
        if attempt.is_placed:
            attempt.outside_pool = self._pools.describe_contradiction(attempt.chosen, self.memory.node_pool)
        self.memory.placed.compare(attempt)
        self.memory.placed.remember(attempt)
        self.finished.extend(build_events(attempt, self._cluster, states, self.memory.states, session.node_count))
        if is_complete(attempt):
            self.counts.attempts_complete += 1
        else:
            self.counts.attempts_incomplete += 1

    def take(self) -> list[Event]:
        """Take the events that were finished since the last call."""
        events, self.finished = self.finished, []
        self.counts.events += len(events)
        return events

    def close(self) -> None:
        """Finish all attempts as far as they are known, and forget them."""
        while self.memory.sessions:
            self._finish_session(self.memory.sessions.pop(0))
        self.memory = SessionMemory(
            states=self.memory.states, placed=self.memory.placed, node_pool=self.memory.node_pool
        )


def _note_evictions(session: Session, note: NoteFact) -> None:
    """Note each committed eviction as the pod's latest attempt: it has no verdict, the fact says what became of it."""
    for pod, eviction in session.evictions.items():
        if time := eviction.committed_at:
            namespace, _, name = pod.partition("/")
            note(UnfinishedAttempt(namespace, name, "", SCHEDULER, time, reader=SOURCE))
            note(LoggedFact("pod evicted", time, node=eviction.node, pod=pod, words=eviction.reason))
