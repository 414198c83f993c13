"""What is written about an attempt, and what a late record adds to what was written before: pure but for a memory."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, Final

from pipeline.sinks.bulk import Document, source
from pipeline.sinks.kafka import Outgoing
from pipeline.sinks.msearch import Search, by_time, in_indices
from schemas.codec.chunking import split
from schemas.codec.records import encode, rfc3339
from schemas.documents.attempts import Digests, EpisodeRef, MinuteContribution, attempt_document, repeated_document
from schemas.events import AttemptRepeated, AttemptSummarized, MessageEmitted
from schemas.indices import ATTEMPTS
from schemas.topics import ATTEMPTS as ATTEMPTS_TOPIC
from schemas.topics import MESSAGES as MESSAGES_TOPIC
from summaries.episodes import PreviousAttempt
from summaries.messages import filter_summary, messages, search_text

_REPEATED_TEXT: Final = 240
"""Characters of text that a repetition can be found by; the attempt that it repeats has all of it."""
_LOOKED_BACK: Final = timedelta(0), timedelta(days=1)
"""An attempt's day and the day before are looked at for the one before it."""


def summary_document(
    summary: AttemptSummarized,
    lines: Sequence[MessageEmitted],
    episode: EpisodeRef | None = None,
    digests: Digests | None = None,
    counted: MinuteContribution | None = None,
    origin: object = None,
) -> Document:
    """The attempt's document: of two tellings the one that knows more stays. ``lines`` are its messages."""
    written = source(attempt_document(summary, search_text(summary, lines), episode, digests, counted))
    return Document(ATTEMPTS.name(summary.started_at), summary.attempt_id, written, summary.version, origin)


def repetition_document(
    summary: AttemptSummarized,
    told: PreviousAttempt,
    event: AttemptRepeated,
    counted: MinuteContribution | None,
    origin: object,
) -> Document:
    """The document of an attempt that repeats another."""
    text = filter_summary(summary)[:_REPEATED_TEXT]
    written = source(repeated_document(summary, text, told.episode, told.digests, event, counted))
    return Document(ATTEMPTS.name(summary.started_at), summary.attempt_id, written, summary.version, origin)


def known_pods_search(summaries: Sequence[AttemptSummarized]) -> Search:
    """Which of their pods have an attempt at all, of the days that ``one_before`` looks at: a hit for each UID."""
    days = {ATTEMPTS.name(each.started_at - back) for each in summaries for back in _LOOKED_BACK}
    uids = sorted({each.pod.uid for each in summaries})
    body = {
        "query": {"bool": {"filter": [{"terms": {"pod_uid": uids}}]}},
        "collapse": {"field": "pod_uid"},
        "size": len(uids),
        "_source": False,
        "track_total_hits": False,
    }
    return in_indices(*sorted(days)), body


def previous_attempt_search(summary: AttemptSummarized) -> Search:
    """The pod's latest attempt before this one, of the same day or the one before."""
    days = [ATTEMPTS.name(summary.started_at - back) for back in _LOOKED_BACK]
    about = {
        "namespace": summary.pod.namespace,
        "pod": summary.pod.name,
        "pod_uid": summary.pod.uid,
        "scheduler": summary.scheduler,
    }
    terms: list[dict[str, Any]] = [{"term": {name: value}} for name, value in about.items()]
    earlier = {"range": {"@timestamp": {"lt": rfc3339(summary.started_at)}}}
    body = {
        "query": {"bool": {"filter": [*terms, earlier]}},
        "sort": [by_time("desc")],
        "size": 1,
        "_source": {"excludes": ["summary", "nodes", "text", "changes"]},
        "track_total_hits": False,
    }
    return in_indices(*days), body


def with_changes(summary: AttemptSummarized, episode: EpisodeRef) -> AttemptSummarized:
    """The summary as the topic carries it. The attempt's document has the changes in a field of its own."""
    return summary.model_copy(update={"changes": list(episode.changes)}) if episode.changes else summary


def attempt_records(
    summary: AttemptSummarized, new_lines: Sequence[MessageEmitted], event: AttemptRepeated | None = None
) -> Iterator[Outgoing]:
    """The summary in its parts, or what of it is its own, then what people are told now."""
    for part in [event] if event else split(summary):
        yield Outgoing(ATTEMPTS_TOPIC.name, encode(part))
    for message in new_lines:
        yield Outgoing(MESSAGES_TOPIC.name, encode(message))


def new_messages(lines: Sequence[MessageEmitted], known: AttemptSummarized | None) -> list[MessageEmitted]:
    """The lines that were not said when ``known`` was told. One that says something else now is said again."""
    said = {(each.id, each.message) for each in messages(known)} if known else set()
    return [each for each in lines if (each.id, each.message) not in said]


def may_get_more(summary: AttemptSummarized) -> bool:
    """Is another record about the attempt to be expected? Of a pod that fits nowhere none is."""
    return not summary.complete or summary.status == "pending"


class SummaryCache:
    """The latest summaries that are worth it, within ``most_bytes``."""

    def __init__(self, most_bytes: int, is_worth_it: Callable[[AttemptSummarized], bool] = may_get_more) -> None:
        self._most = most_bytes
        self._is_worth_it = is_worth_it
        self._summaries: OrderedDict[str, AttemptSummarized] = OrderedDict()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._summaries)

    def get(self, attempt_id: str) -> AttemptSummarized | None:
        return self._summaries.get(attempt_id)

    def put(self, summary: AttemptSummarized) -> None:
        self._forget(summary.attempt_id)
        if not self._is_worth_it(summary):
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
