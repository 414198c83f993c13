"""Reads the log of any known scheduler to its end: the scheduler is recognised by its first lines."""

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, tzinfo
from itertools import chain
from pathlib import Path
from typing import Final

from engine.diagnosis.logged_facts import LoggedFact
from ingest.cases.foreign_texts import SCHEDULERS_LOG, find_advice
from ingest.cases.log_pods import LogPods
from ingest.errors import MistakeError, UnknownLogError
from ingest.lines import klog
from ingest.lines.blocks import Lines, Origin
from ingest.lines.copies import restore_order
from ingest.lines.framing import Framing, read_time
from ingest.readers.registry import LOG_SOURCES, NO_FACTS, LogFacts, LogSource, ShowProgress, WaitingReader
from ingest.reading.protocol import EVENT, Counts, collect_garbage_seldom
from ingest.sources.follow import STANDARD_INPUT, Reached, read_file
from ingest.sources.pieces import BLOCK_BYTES, HEAD_BYTES, UnreadableFileError, is_packed
from runtime.settings.names import DEFAULT_CLUSTER
from schemas.events import Event

NAME_OF_STANDARD_INPUT: Final = "standard input"
MAX_UNDECIDED_BLOCKS: Final = 64
"""Blocks that are read to recognise the scheduler: a log has lines that show it near its beginning."""
MAX_ADVISED: Final = 200
"""First lines that show what a text is that is no log."""
_TAIL: Final = re.compile(rb'[^"]+" (?:\w+=")')
"""End of a structured line whose beginning was not copied: the rest of its message, and its fields."""
MAX_WITHOUT_TIME: Final = 200
"""Last lines of a block among which one with a time is looked for."""


def read_log(
    file: Path, take: Callable[[Iterable[Event]], None], facts: LogFacts = NO_FACTS, *, head: bytes = b""
) -> Counts:
    """Give ``take`` the events of the log in a file, and count its lines; ``-`` is standard input.

    ``head``: what was read of standard input already.

    Raises ``MistakeError`` for a log of an unknown scheduler, and ``UnreadableFileError``: ``take`` then has the events
    before the unreadable part.
    """
    collect_garbage_seldom()
    if str(file) == STANDARD_INPUT:
        return _read(NAME_OF_STANDARD_INPUT, _read_standard_input(head, facts.show_progress), take, facts)
    if file.is_dir():
        raise MistakeError(f"{file} is a directory: name a log in it, or an archive of it (tar)")
    return _read(str(file), _read_file(file, facts.show_progress), take, facts)


def read_log_text(text: str, take: Callable[[Iterable[Event]], None], facts: LogFacts = NO_FACTS) -> None:
    """Give ``take`` the events of a log's text. Raises ``MistakeError`` for a log of an unknown scheduler."""
    _read("the text", _split_text(text), take, facts)


def _read(name: str, blocks: Iterator[Lines], take: Callable[[Iterable[Event]], None], facts: LogFacts) -> Counts:
    reading = _Reading(name, take, facts)
    try:
        for lines in restore_order(blocks):
            reading.feed(lines)
    except UnreadableFileError:
        reading.end_readers()
        raise
    return reading.close()


class _Reading:
    """Reads one log by each reader that recognises some of its lines: a log may be of several containers."""

    def __init__(self, name: str, take: Callable[[Iterable[Event]], None], facts: LogFacts) -> None:
        self._name, self._take, self._facts = name, take, facts
        self._undecided: list[Lines] = []
        """The first blocks, while no reader has recognised a line."""
        self._head: Sequence[bytes] = ()
        """The first lines, which show what a text is that is no log of a scheduler."""
        self._readers: dict[str, WaitingReader] = {}
        """By the name of the source, in the order in which they recognised lines."""
        self._has_lines = False
        self._ended_at: datetime | None = None
        self._reference = datetime.now(UTC)
        """The last change of the log: its end, where no line has a time."""

    def feed(self, lines: Lines) -> None:
        if not self._has_lines:
            lines = _restore_head(lines)
        self._has_lines |= bool(lines.texts)
        self._head = self._head or lines.texts[:MAX_ADVISED]
        self._ended_at = find_end(lines, self._facts.zone) or self._ended_at
        self._reference = lines.origin.reference
        if len(self._readers) < len(LOG_SOURCES):
            self._start_recognising(lines.texts)
        if not self._readers and len(self._undecided) < MAX_UNDECIDED_BLOCKS:
            self._undecided.append(lines)
        for reader in self._readers.values():
            self._take(reader.feed(lines))

    def _start_recognising(self, texts: Sequence[bytes]) -> None:
        """Start the readers that recognise a line; most logs have no line with klog's header, or only such lines."""
        headed = [text for text in texts if klog.has_header(text)]
        for source in LOG_SOURCES:
            candidates = headed if source.has_headers else texts
            if source.name not in self._readers and any(map(source.recognises, candidates)):
                self._start(source)

    def _start(self, source: LogSource) -> None:
        try:
            reader = source.create(DEFAULT_CLUSTER, self._facts)
        except ValueError as error:
            raise MistakeError(f"--nodes: {error}") from None
        self._readers[source.name] = reader
        for lines in self._undecided:
            self._take(reader.feed(lines))
        self._undecided.clear()

    def close(self) -> Counts:
        """End the log, and return the counts of the reader that used most lines. Raises ``MistakeError``."""
        if not self._has_lines:
            hint = ": the command before the pipe wrote nothing" if self._name == NAME_OF_STANDARD_INPUT else ""
            raise MistakeError(f"{self._name} is empty{hint}")
        if not self._readers:
            raise UnknownLogError(f"{self._name}: {find_advice(self._head) or self._describe_unknown()}")
        self.end_readers()
        # Other programs of a cluster write lines that look like a scheduler's.
        if not any(reader.counts.events for reader in self._readers.values()) and (advice := find_advice(self._head)):
            raise UnknownLogError(f"{self._name}: {advice}")
        if self._facts.note:
            self._facts.note(LoggedFact("log ended", self._ended_at or self._reference))
        return max((reader.counts for reader in self._readers.values()), key=lambda counts: counts.lines[EVENT])

    def end_readers(self) -> None:
        """Take the events that the readers hold back until the end of the log."""
        for reader in self._readers.values():
            self._take(reader.close())

    def _describe_unknown(self) -> str:
        schedulers = ", ".join(source.name.removesuffix("-log") for source in LOG_SOURCES)
        return f"no line is from a scheduler that is known ({schedulers}). {SCHEDULERS_LOG}"


def _restore_head(lines: Lines) -> Lines:
    """Restore the header of the line with which a copy begins in its middle: that of the line behind it."""
    first = next((index for index, text in enumerate(lines.texts[:MAX_ADVISED]) if klog.has_header(text)), 0)
    before = lines.texts[first - 1] if first else b""
    if not _TAIL.match(before) or before.count(b'"') % 2 == 0:
        return lines
    texts = list(lines.texts)
    headed = texts[first]
    texts[first - 1] = headed[: klog.find_message(headed)] + b'"' + before
    return lines._replace(texts=texts)


def find_end(lines: Lines, zone: tzinfo) -> datetime | None:
    """Find the time of the last of the lines that has one."""
    for index in range(len(lines.texts) - 1, max(len(lines.texts) - MAX_WITHOUT_TIME, 0) - 1, -1):
        text, time = lines.texts[index], lines.times[index] if lines.times else None
        end = klog.parse_time(text, time or lines.origin.reference, zone)
        if end := end or read_time(text[:40].partition(b"\t")[0]):
            return end
    return None


def _read_file(path: Path, show_progress: ShowProgress | None = None) -> Iterator[Lines]:
    for lines, _, position in read_file(path, Reached()):
        yield lines
        if show_progress:
            show_progress(path, position)


def _read_standard_input(head: bytes, show_progress: ShowProgress | None) -> Iterator[Lines]:
    head = head or read_standard_input(HEAD_BYTES)
    if is_packed(head):
        yield from _unpack(head)
        return
    framing = Framing(Origin(STANDARD_INPUT))
    position = 0
    for data in chain([head] if head else [], iter(_read_bytes, b"")):
        position += len(data)
        if show_progress:
            show_progress(Path(STANDARD_INPUT), position)
        framing.origin = Origin(STANDARD_INPUT, datetime.now(UTC))
        if lines := framing.feed(data):
            yield lines
    if lines := framing.close():
        yield lines


def _unpack(head: bytes) -> Iterator[Lines]:
    """Unpack standard input by way of a file: the kind of an archive shows only after a part of it was unpacked."""
    # Imported late: plain text needs no file, and the import takes its time.
    from tempfile import NamedTemporaryFile

    with NamedTemporaryFile() as file:
        for data in chain([head], iter(_read_bytes, b"")):
            file.write(data)
        file.flush()
        try:
            yield from _read_file(Path(file.name))
        except UnreadableFileError as error:
            raise UnreadableFileError(str(error).replace(file.name, NAME_OF_STANDARD_INPUT)) from None


def read_standard_input(size: int) -> bytes:
    """Read at least that many bytes, fewer only at the end of the input: a pipe may pass them one by one."""
    parts: list[bytes] = []
    while size > 0 and (data := _read_bytes()):
        parts.append(data)
        size -= len(data)
    return b"".join(parts)


def _read_bytes() -> bytes:
    return os.read(sys.stdin.fileno(), BLOCK_BYTES)


def has_log(text: str) -> bool:
    """Tell whether a line of the text is one of a known scheduler's log."""
    return any(source.recognises(line) for lines in _split_text(text) for line in lines.texts for source in LOG_SOURCES)


def find_logged_pod(text: str) -> str:
    """Find the only pod (``namespace/name``) that the log in a text names; empty if it names none or several."""
    pods = LogPods()
    try:
        read_log_text(text, pods.add, NO_FACTS._replace(note=pods.note))
    except MistakeError:
        return ""
    names = list(pods.pods)
    return names[0] if len(names) == 1 else ""


def _split_text(text: str) -> Iterator[Lines]:
    framing = Framing(Origin("text", datetime.now(UTC)))
    for lines in (framing.feed(text.encode("utf-8", "replace")), framing.close()):
        if lines:
            yield lines
