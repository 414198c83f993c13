"""The reader: lines of one log in, events out, an attempt when its session is over."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from pydantic import ConfigDict, TypeAdapter, ValidationError

from ingest.kai import tags
from ingest.kai.attempt import Attempt
from ingest.kai.cards import CardStates, totals
from ingest.kai.events import events_of, is_complete
from ingest.kai.framing import CONSOLE, JSON, PLAIN_REST, Message, message_of, time_of
from ingest.kai.grammar import LINES, Line, Sentence, knows_folder, matched, sentence_of
from ingest.kai.session import Session
from ingest.lines.blocks import Lines
from ingest.protocol import EVENT, Counts
from ingest.protocol import NOISE as NOISE_LINE
from schemas.events import Event

OPEN_SESSIONS: Final = 3
"""Sessions follow each other; lines about conditions may come when the next one has begun."""
MAX_LONG_TEXT: Final = 256 * 1024
"""Bytes of one message over all its lines."""


@dataclass(slots=True)
class _State:
    """All that is remembered between two calls."""

    __pydantic_config__ = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")
    version: int = 2
    sessions: list[Session] = field(default_factory=list)
    """Oldest first."""
    focus: tags.TagFocus = field(default_factory=tags.TagFocus)
    pending: Message | None = None
    """A message whose text may go on in the next line."""
    last_time: datetime | None = None


_STATE: Final = TypeAdapter(_State)


class KaiLog:
    """``memory_labels``: each node's label ``nvidia.com/gpu.memory`` (MiB of one card), where it is known."""

    def __init__(self, memory_labels: Mapping[str, int] | None = None) -> None:
        self.counts = Counts()
        self._totals = totals(memory_labels or {})
        self._state = _State()
        self._forms = CONSOLE, JSON

    def feed(self, lines: Lines) -> Iterable[Event]:
        """What these lines tell. An attempt is told when its session is over."""
        told: list[Event] = []
        noise = 0
        # A log is in one form nearly everywhere: the one that the line before it had is tried first.
        likely, other = self._forms
        for at, text in enumerate(lines.texts):
            if (head := likely.match(text)) is None and (head := other.match(text)):
                likely, other = self._forms = other, likely
            pending = self._state.pending
            if head is None:
                if pending is None and text[:1] == b"\t":
                    noise += 1  # a pod of a node dump, of which there are many
                else:
                    self._without_head(text, lines, at, told)
                continue
            if pending:
                self._flush(told)
            begins = caller, word = head.group("caller", "word")
            if known := LINES.get(begins):
                if likely is CONSOLE:
                    self._console(known, head, text, told)
                elif not self._plain_json(known, head, text, told):
                    self._begin(head, text, lines.place.number + at, told)
            elif word in tags.FIRST_WORDS:
                self._begin(head, text, lines.place.number + at, told)
            elif knows_folder(caller):
                noise += 1
            else:
                self.counts.unknown(text)
        self.counts.lines[NOISE_LINE] += noise
        self.counts.events += len(told)
        return told

    def close(self) -> Iterable[Event]:
        """What was begun and not ended, told as far as it is known."""
        told: list[Event] = []
        self._flush(told)
        while self._state.sessions:
            told.extend(self._tell(self._state.sessions.pop(0)))
        self._state = _State()
        self.counts.events += len(told)
        return told

    def waits_for(self) -> set[str]:
        """The sessions that are not over, and a message whose text goes on."""
        names = {f"session {session.name}" for session in self._state.sessions}
        return names | ({"text"} if self._state.pending else set())

    def save(self) -> bytes:
        return _STATE.dump_json(self._state)

    def restore(self, saved: bytes) -> None:
        try:
            state = _STATE.validate_json(saved)
        except ValidationError as error:
            raise ValueError(f"no saved state of a KAI log: {error.error_count()} errors") from None
        if state.version != _State().version:
            raise ValueError(f"state of version {state.version}: the log is read from its start")
        self._state = state

    def _without_head(self, text: bytes, lines: Lines, at: int, told: list[Event]) -> None:
        if text.startswith(tags.FIRST_BYTES):
            self._flush(told)
            number = lines.place.number + at
            self._tagged(text.decode(errors="replace"), "", self._time(lines, at), number, told)
        else:
            self._continuation(text)

    def _console(self, known: list[Line], head: re.Match[bytes], text: bytes, told: list[Event]) -> None:
        """The shortest way from a line to what it says: half of all lines take it."""
        found = matched(known, text[head.start("word") :].decode(errors="replace"))
        if found is None:
            self.counts.lines[NOISE_LINE] += 1
            return
        line, parts = found
        stamp, session = head.group("stamp", "session")
        if (time := time_of(stamp)) is None:
            self.counts.unknown(text)
            return
        self._state.last_time = time
        if line.is_long:
            self.counts.lines[EVENT] += 1
            self._state.pending = message_of(text, head)
        else:
            self._take(Sentence(line, time, session.decode() if session else "", parts), told)

    def _plain_json(self, known: list[Line], head: re.Match[bytes], text: bytes, told: list[Event]) -> bool:
        """The same for JSON that need not be decoded; False where it must."""
        stamp, rest = head["stamp"], PLAIN_REST.fullmatch(text, head.end("word"))
        # Between date and time anything may stand, also what JSON forbids.
        if rest is None or stamp[10:11] != b"T" or (time := time_of(stamp)) is None:
            return False
        self._state.last_time = time
        if found := matched(known, text[head.start("word") : rest.start("end")].decode()):
            session = rest["session"]
            self._take(Sentence(found[0], time, session.decode() if session else "", found[1]), told)
        else:
            self.counts.lines[NOISE_LINE] += 1
        return True

    def _begin(self, head: re.Match[bytes], text: bytes, number: int, told: list[Event]) -> None:
        message = message_of(text, head)
        if message is None or (time := time_of(message.stamp)) is None:
            self.counts.unknown(text)
            return
        self._state.last_time = time
        if message.line.startswith(tags.FIRST_BYTES, message.start):
            self._tagged(message.text.decode(errors="replace"), message.session, time, number, told)
        else:
            self._message(message, head.re is JSON, told)

    def _continuation(self, text: bytes) -> None:
        pending = self._state.pending
        if pending is None:
            # What a node dump says of a pod, each on a line of its own; an empty line of a long text.
            if text.startswith((b"\t", b" ")) or not text:
                self.counts.lines[NOISE_LINE] += 1
            else:
                self.counts.unknown(text)
            return
        if len(pending.line) < MAX_LONG_TEXT:
            self._state.pending = pending._replace(line=pending.line + b"\n" + text[:MAX_LONG_TEXT])
        self.counts.lines[EVENT] += 1

    def _message(self, message: Message, is_whole: bool, told: list[Event]) -> None:
        said = sentence_of(message)
        if said is None:
            self.counts.lines[NOISE_LINE] += 1
        elif said.line.is_long and not is_whole:
            self.counts.lines[EVENT] += 1
            self._state.pending = message
        else:
            self._take(said, told)

    def _flush(self, told: list[Event]) -> None:
        """The message is whole: another line has begun."""
        pending, self._state.pending = self._state.pending, None
        if pending and (said := sentence_of(pending)):
            self.counts.lines[EVENT] -= 1
            self._take(said, told)

    def _take(self, said: Sentence, told: list[Event]) -> None:
        name = said.session or said.named("session")
        sessions = self._state.sessions
        # Most lines are of the latest session.
        session = sessions[-1] if sessions and sessions[-1].name == name else self._session(name, said.time, told)
        self.counts.lines[EVENT if session.take(said) else NOISE_LINE] += 1

    def _tagged(self, text: str, session: str, time: datetime, number: int, told: list[Event]) -> None:
        said = tags.tagged(text)
        if said is None:
            self.counts.unknown(text.encode(errors="replace"))
            return
        known = self._session(session, time, told)
        if tags.begins(said) and (over := known.attempts.get(tags.pod_of(said))) and over.is_allocation_over:
            told.extend(events_of(known.attempts.pop(over.pod), known.node_count))
            self._count(over)
        before = len(known.attempts)
        taken = tags.take(known, self._state.focus, said, time)
        if len(known.attempts) > before:
            next(reversed(known.attempts.values())).ordinal = number
        self.counts.lines[EVENT if taken else NOISE_LINE] += 1

    def _session(self, name: str, time: datetime, told: list[Event]) -> Session:
        for session in reversed(self._state.sessions):
            if session.name == name:
                return session
        session = Session(name, time, cards=CardStates(total_mib=dict(self._totals)))
        self._state.sessions.append(session)
        while len(self._state.sessions) > OPEN_SESSIONS:
            told.extend(self._tell(self._state.sessions.pop(0)))
        return session

    def _tell(self, session: Session) -> Iterator[Event]:
        for attempt in session.attempts.values():
            yield from events_of(attempt, session.node_count)
            self._count(attempt)

    def _count(self, attempt: Attempt) -> None:
        if is_complete(attempt):
            self.counts.attempts_complete += 1
        else:
            self.counts.attempts_incomplete += 1

    def _time(self, lines: Lines, at: int) -> datetime:
        """Of a line that has none: the transport's, else that of the line before, else that of the log."""
        time = lines.times[at] if lines.times else None
        return time or self._state.last_time or lines.origin.reference
