"""What is written about an attempt, and what a late record adds to what was written before: pure but for a memory."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence

from pipeline.sinks.bulk import Document, source
from pipeline.sinks.kafka import Outgoing
from schemas.documents import attempt_document, devices_document
from schemas.events import AttemptSummarized, DevicesJudged, Message
from schemas.indices import ATTEMPTS, DEVICES
from schemas.records import encode
from schemas.runs import split
from schemas.topics import ATTEMPTS as ATTEMPTS_TOPIC
from schemas.topics import MESSAGES as MESSAGES_TOPIC
from summaries.messages import messages, search_text


def document(summary: AttemptSummarized, lines: Sequence[Message], origin: object = None) -> Document:
    """The attempt's document: of two tellings the one that knows more stays. ``lines`` are its messages."""
    written = source(attempt_document(summary, search_text(summary, lines)))
    return Document(ATTEMPTS.name(summary.started), summary.attempt_id, written, summary.version, origin)


def devices(event: DevicesJudged, value: bytes, origin: object) -> Document:
    """The document of one record of device verdicts: there is only one telling of it."""
    return Document(DEVICES.name(event.started), event.id, source(devices_document(event, value)), None, origin)


def records(summary: AttemptSummarized, new_lines: Sequence[Message]) -> Iterator[Outgoing]:
    """The summary in its parts, then what people are told now."""
    for part in split(summary):
        yield Outgoing(ATTEMPTS_TOPIC.name, encode(part))
    for message in new_lines:
        yield Outgoing(MESSAGES_TOPIC.name, encode(message))


def unsaid(lines: Sequence[Message], known: AttemptSummarized | None) -> list[Message]:
    """The lines that were not said when ``known`` was told. One that says something else now is said again."""
    said = {(each.id, each.message) for each in messages(known)} if known else set()
    return [each for each in lines if (each.id, each.message) not in said]


def may_get_more(summary: AttemptSummarized) -> bool:
    """Is another record about the attempt to be expected? Of a pod that fits nowhere none is."""
    return not summary.complete or summary.status == "pending"


class Remembered:
    """The latest summaries that may get more, within ``most_bytes``."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._summaries: OrderedDict[str, AttemptSummarized] = OrderedDict()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._summaries)

    def get(self, attempt_id: str) -> AttemptSummarized | None:
        return self._summaries.get(attempt_id)

    def put(self, summary: AttemptSummarized) -> None:
        self._forget(summary.attempt_id)
        if not may_get_more(summary):
            return
        self._summaries[summary.attempt_id] = summary
        self.bytes += size_of(summary)
        while self.bytes > self._most:
            self._forget(next(iter(self._summaries)))

    def clear(self) -> None:
        self._summaries.clear()
        self.bytes = 0

    def _forget(self, attempt_id: str) -> None:
        if (summary := self._summaries.pop(attempt_id, None)) is not None:
            self.bytes -= size_of(summary)


def size_of(summary: AttemptSummarized) -> int:
    """Bytes in memory, about: a node is a name and a few numbers."""
    return 2_000 + 120 * len(summary.nodes) + 400 * len(summary.refusals)
