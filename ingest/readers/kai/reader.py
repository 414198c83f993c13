"""The reader of KAI's log: lines in, events out.

Each line takes the shortest way that its form allows: the processor limits the speed, and nine of ten lines are noise.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from pydantic import ConfigDict, TypeAdapter, ValidationError

from ingest.lines.blocks import Lines
from ingest.readers.kai import tags
from ingest.readers.kai.devices import floor_totals
from ingest.readers.kai.framing import CONSOLE, JSON, PLAIN_REST, LogMessage, parse_message, parse_time
from ingest.readers.kai.grammar import PATTERNS, MessagePattern, ParsedMessage, find_match, is_kai_file, parse
from ingest.readers.kai.node_labels import NodePools
from ingest.readers.kai.open_attempts import OpenSessions, SessionMemory
from ingest.reading.protocol import EVENT, NOISE, Counts, NoteFact
from schemas.events import DEFAULT_CLUSTER, Event

MAX_LONG_TEXT: Final = 256 * 1024
"""Bytes of one message over all its lines."""
VERSION: Final = 5
"""Version of the saved state; to be raised when a field of it changes."""


@dataclass(slots=True)
class _State:
    """All that is remembered between two calls."""

    __pydantic_config__ = ConfigDict(extra="forbid", ser_json_bytes="base64", val_json_bytes="base64", defer_build=True)
    version: int = VERSION
    attempts: SessionMemory = field(default_factory=SessionMemory)
    pending: LogMessage | None = None
    """A message whose text may continue on the next line."""
    last_time: datetime | None = None


_NO_POOLS: Final = NodePools()
_STATE: Final = TypeAdapter(_State)


def is_kai_line(line: bytes) -> bool:
    """Tell whether a line names one of KAI's files or has one of the tags; other programs log with zap as well."""
    if line.startswith(tags.FIRST_BYTES):
        return True
    head = JSON.match(line) or CONSOLE.match(line)
    return bool(head and is_kai_file(head["caller"]))


class KaiLog:
    """Reads KAI-Scheduler's log. See ``ingest.reading.protocol.LogReader``."""

    def __init__(
        self,
        memory_labels: Mapping[str, int] | None = None,
        *,
        cluster: str = DEFAULT_CLUSTER,
        pools: NodePools = _NO_POOLS,
        note: NoteFact | None = None,
    ) -> None:
        """Start without lines. ``memory_labels``: labels ``nvidia.com/gpu.memory`` by node (MiB per GPU).

        ``note`` takes the pods that KAI evicted: events have no place for them.
        """
        self._attempts = OpenSessions(cluster, floor_totals(memory_labels or {}), pools, note)
        self._pending: LogMessage | None = None
        self._last_time: datetime | None = None
        self._forms = CONSOLE, JSON

    @property
    def counts(self) -> Counts:
        return self._attempts.counts

    def feed(self, lines: Lines) -> Iterable[Event]:
        """Read lines, and return the events of the attempts whose session is over."""
        noise = 0
        # Nearly every log has one form throughout: the form of the line before is tried first.
        likely, other = self._forms
        for index, text in enumerate(lines.texts):
            if (head := likely.match(text)) is None and (head := other.match(text)):
                likely, other = self._forms = other, likely
            if head is None:
                if self._pending is None and text[:1] == b"\t":
                    noise += 1  # a pod in a dump of a node, of which there are many
                else:
                    self._read_without_head(text, lines, index)
                continue
            if self._pending:
                self._flush()
            start = caller, word = head.group("caller", "word")
            # The file and the first word decide for nine of ten lines; a line number changes with every release.
            if patterns := PATTERNS.get(start):
                if likely is CONSOLE:
                    self._read_console(patterns, head, text)
                elif not self._read_plain_json(patterns, head, text):
                    self._read_carefully(head, text, lines.position.number + index)
            elif word in tags.FIRST_WORDS:
                self._read_carefully(head, text, lines.position.number + index)
            elif is_kai_file(caller):
                noise += 1
            else:
                self.counts.count_unknown(text)
        self.counts.lines[NOISE] += noise
        return self._attempts.take()

    def close(self) -> Iterable[Event]:
        """Return the events of everything that is open."""
        self._flush()
        self._attempts.close()
        self._last_time = None
        return self._attempts.take()

    def list_unfinished(self) -> set[str]:
        """List the sessions that are not over, and a message whose text may continue, by name."""
        names = {f"session {session.name}" for session in self._attempts.memory.sessions}
        return names | ({"text"} if self._pending else set())

    def save(self) -> bytes:
        return _STATE.dump_json(_State(VERSION, self._attempts.memory, self._pending, self._last_time))

    def restore(self, saved: bytes) -> None:
        try:
            state = _STATE.validate_json(saved)
        except ValidationError as error:
            raise ValueError(f"not a saved state of a KAI log: {error.error_count()} errors") from None
        if state.version != VERSION:
            raise ValueError(f"the saved state has version {state.version}, this program reads {VERSION}")
        self._attempts.memory, self._pending, self._last_time = state.attempts, state.pending, state.last_time

    def _read_without_head(self, text: bytes, lines: Lines, index: int) -> None:
        if text.startswith(tags.FIRST_BYTES):
            self._flush()
            number = lines.position.number + index
            self._read_tagged(text.decode(errors="replace"), "", self._find_time(lines, index), number)
        else:
            self._read_continuation(text)

    def _read_console(self, patterns: list[MessagePattern], head: re.Match[bytes], text: bytes) -> None:
        """Parse a console line without making a ``LogMessage`` of it: half of all lines come here."""
        hit = find_match(patterns, text[head.start("word") :].decode(errors="replace"))
        if hit is None:
            self.counts.lines[NOISE] += 1
            return
        pattern, parts = hit
        stamp, session = head.group("stamp", "session")
        if (time := parse_time(stamp)) is None:
            self.counts.count_unknown(text)
            return
        self._last_time = time
        if pattern.is_long:
            self.counts.lines[EVENT] += 1
            self._pending = parse_message(text, head)
        else:
            self._apply(ParsedMessage(pattern, time, session.decode() if session else "", parts))

    def _read_plain_json(self, patterns: list[MessagePattern], head: re.Match[bytes], text: bytes) -> bool:
        """Parse a JSON line without escapes; False for JSON that must be decoded."""
        stamp, tail = head["stamp"], PLAIN_REST.fullmatch(text, head.end("word"))
        # Python accepts any character between date and time, even one that JSON forbids: only T is taken here.
        if tail is None or stamp[10:11] != b"T" or (time := parse_time(stamp)) is None:
            return False
        self._last_time = time
        if hit := find_match(patterns, text[head.start("word") : tail.start("end")].decode()):
            session = tail["session"]
            self._apply(ParsedMessage(hit[0], time, session.decode() if session else "", hit[1]))
        else:
            self.counts.lines[NOISE] += 1
        return True

    def _read_carefully(self, head: re.Match[bytes], text: bytes, number: int) -> None:
        message = parse_message(text, head)
        if message is None or (time := parse_time(message.stamp)) is None:
            self.counts.count_unknown(text)
            return
        self._last_time = time
        if message.line.startswith(tags.FIRST_BYTES, message.start):
            self._read_tagged(message.text.decode(errors="replace"), message.session, time, number)
        else:
            self._read_message(message, is_whole=head.re is JSON)

    def _read_continuation(self, text: bytes) -> None:
        pending = self._pending
        if pending is None:
            # Lines of a node dump about a pod, or an empty line of a long text.
            if text.startswith((b"\t", b" ")) or not text:
                self.counts.lines[NOISE] += 1
            else:
                self.counts.count_unknown(text)
            return
        # A log that lost its line ends must not grow one message without a limit.
        if len(pending.line) < MAX_LONG_TEXT:
            self._pending = pending._replace(line=pending.line + b"\n" + text[:MAX_LONG_TEXT])
        self.counts.lines[EVENT] += 1

    def _read_message(self, message: LogMessage, *, is_whole: bool) -> None:
        parsed = parse(message)
        if parsed is None:
            self.counts.lines[NOISE] += 1
        elif parsed.pattern.is_long and not is_whole:
            self.counts.lines[EVENT] += 1
            self._pending = message
        else:
            self._apply(parsed)

    def _flush(self) -> None:
        """Apply the pending message: another line has begun, so its text is complete."""
        pending, self._pending = self._pending, None
        if pending and (parsed := parse(pending)):
            # Its first line was counted when it was read; ``_apply`` counts it again.
            self.counts.lines[EVENT] -= 1
            self._apply(parsed)

    def _apply(self, message: ParsedMessage) -> None:
        self.counts.lines[EVENT if self._attempts.apply(message) else NOISE] += 1

    def _read_tagged(self, text: str, session: str, time: datetime, number: int) -> None:
        line = tags.parse_tagged(text)
        if line is None:
            self.counts.count_unknown(text.encode(errors="replace"))
            return
        is_applied = self._attempts.apply_tagged(line, session, time, number)
        self.counts.lines[EVENT if is_applied else NOISE] += 1

    def _find_time(self, lines: Lines, index: int) -> datetime:
        """Find the time of a line without one: the container runtime's, else the line before's, else the log's."""
        time = lines.times[index] if lines.times else None
        return time or self._last_time or lines.origin.reference
