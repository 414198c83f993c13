"""Names of pods in a text that does not name them: rows of events, and sentences, from one description or from several.

People paste the events of a pod in parts, and those of several pods one below the other. Parts are of different pods
if words of the author or a heading stand between them, and a scheduler reports different things in them.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from engine.snapshot import kinds
from ingest.cases.stated_sentences import PastedEvent
from schemas.json_types import Json

DEFAULT_NAME: Final = "pod"
"""Name of a pod that the text does not name."""
_HEADING: Final = re.compile(r"^\s*(?:Events:|Type\s+Reason\b)")
_GAP: Final = re.compile(r"^\s*(?:```.*|~~~.*|[-=_*]*)$")
_WORDS: Final = re.compile(r"[A-Za-z]{2}|[^\x00-\x7f]")
_LATER: Final = re.compile(r"\b(?:later|then|now|after|again|meanwhile|finally|still|since)\b", re.IGNORECASE)
_OTHER: Final = re.compile(
    r"\b(?:the other(?! \w+s\b)|another|second|third|2nd|3rd|next|both|and the|pod [b2])\b", re.IGNORECASE
)


class UnnamedPods:
    """Subject of the rows of a text, which changes from part to part."""

    def __init__(self, name: str = "") -> None:
        """Start with the pod that another source of the text names, ``namespace/name``; empty if none does."""
        namespace, _, pod = name.partition("/")
        self.subject = namespace, pod or DEFAULT_NAME
        self._unnamed = 0
        self._is_commanded = False
        self._reported: dict[tuple[str, str], set[str]] = {}
        """Words that were reported of the subject, by reason and reporter."""
        self._between: list[str] = []
        """Lines since the last event."""

    def name(self, namespace: str, name: str, *, is_commanded: bool = False) -> None:
        """Begin a subject that the text names; a command names it for all rows below."""
        self.subject = namespace, name
        self._is_commanded = is_commanded
        self._reported.clear()

    def note_line(self, line: str) -> bool:
        """Note a line without an event; tell whether it ends a table by being a heading."""
        self._between.append(line)
        return _HEADING.match(line) is not None

    def add(self, events: Sequence[PastedEvent], between: Sequence[str]) -> None:
        """Add the events of a table without a name, behind these lines; begin another pod if they are of one."""
        if not self._is_commanded and _separates(between) and self._contradicts(events):
            self.name("", f"{DEFAULT_NAME}-{self._unnamed + 1}" if self._unnamed else DEFAULT_NAME)
        if events and self.subject[1].startswith(DEFAULT_NAME):
            self._unnamed += not self._reported
        for event in events:
            self._reported.setdefault((event.reason, event.reporter), set()).add(event.note)

    def take_between(self) -> list[str]:
        """Take the lines since the last event."""
        between, self._between = self._between, []
        return between

    def _contradicts(self, events: Sequence[PastedEvent]) -> bool:
        """Tell whether events report the subject's refusal in other words, or a refusal of a pod that has a node."""
        if any(reason == "Scheduled" for reason, _ in self._reported):
            return any(event.reason in ("Scheduled", "FailedScheduling") for event in events)
        return any(
            event.note not in self._reported.get((event.reason, event.reporter), {event.note}) for event in events
        )


def _separates(between: Sequence[str]) -> bool:
    """Tell whether lines between two parts begin another description: not a later moment of the same pod."""
    words = " ".join(line for line in between if _WORDS.search(line) and not _GAP.match(line))
    is_later = _LATER.search(words) is not None and not _OTHER.search(words)
    return bool(words) and not is_later


def rename_unnamed(objects: Sequence[Any]) -> Iterator[Json]:
    """Yield the objects, those of pods without a name under different names."""
    count = 0
    for entry in objects:
        metadata = entry.get("metadata") if isinstance(entry, dict) else None
        if isinstance(metadata, dict) and entry.get("kind") == kinds.POD and metadata.get("name") == DEFAULT_NAME:
            count += 1
            if count > 1:
                entry = {**entry, "metadata": {**metadata, "name": f"{DEFAULT_NAME}-{count}"}}
        yield entry
