"""The documents and the records of an attempt, and the searches for what was written before. Pure."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any, Final

from broker.record import Outgoing
from pipeline.sinks.bulk import Document, source
from pipeline.sinks.msearch import Search, by_time, in_indices
from pipeline.worker.open_attempts import DeviceRecord
from schemas.codec.chunking import split
from schemas.codec.records import encode, rfc3339
from schemas.documents.attempts import (
    Digests,
    EpisodeRef,
    MinuteContribution,
    attempt_document,
    repeated_document,
)
from schemas.documents.devices import devices_document
from schemas.events import AttemptRepeated, AttemptSummarized, MessageEmitted
from schemas.indices import ATTEMPTS, DEVICES
from schemas.topics import ATTEMPTS as ATTEMPTS_TOPIC
from schemas.topics import MESSAGES as MESSAGES_TOPIC
from summaries.episodes import PreviousAttempt
from summaries.messages import filter_summary, messages, search_text

_REPEATED_TEXT: Final = 240
"""Characters of search text in the document of a repetition; the attempt that it repeats has all of it."""
_SEARCHED_DAYS: Final = timedelta(0), timedelta(days=1)
"""The previous attempt of a pod is searched for on the attempt's own day and the day before."""


def summary_document(
    summary: AttemptSummarized,
    lines: Sequence[MessageEmitted],
    episode: EpisodeRef | None = None,
    digests: Digests | None = None,
    counted: MinuteContribution | None = None,
    origin: object = None,
) -> Document:
    """The document of an attempt; ``lines`` are its messages. The index keeps the version that knows most."""
    json = source(attempt_document(summary, search_text(summary, lines), episode, digests, counted))
    # The index of the day on which the attempt began, whenever it is written: the same id is always in the same index.
    # A rollover alias or a data stream would keep a second, visible document.
    return Document(ATTEMPTS.name(summary.started_at), summary.attempt_id, json, summary.version, origin)


def device_document(record: DeviceRecord) -> Document:
    """The document of a record of device verdicts. It has no version: the record is written once and never changes."""
    event = record.event
    json = source(devices_document(event, record.value))
    return Document(DEVICES.name(event.started_at), event.id, json, origin=record.origin)


def repetition_document(
    summary: AttemptSummarized,
    attempt: PreviousAttempt,
    event: AttemptRepeated,
    counted: MinuteContribution | None,
    origin: object,
) -> Document:
    """The document of an attempt that repeats another: what is its own, and which attempt has the rest."""
    text = filter_summary(summary)[:_REPEATED_TEXT]
    json = source(repeated_document(summary, text, attempt.episode, attempt.digests, event, counted))
    return Document(ATTEMPTS.name(summary.started_at), summary.attempt_id, json, summary.version, origin)


def known_pods_search(summaries: Sequence[AttemptSummarized]) -> Search:
    """Which of their pods have any attempt on the days that ``previous_attempt_search`` covers: a hit for each UID."""
    days = {ATTEMPTS.name(summary.started_at - back) for summary in summaries for back in _SEARCHED_DAYS}
    uids = sorted({summary.pod.uid for summary in summaries})
    body = {
        "query": {"bool": {"filter": [{"terms": {"pod_uid": uids}}]}},
        # One hit for each UID, however many attempts the pod has.
        "collapse": {"field": "pod_uid"},
        "size": len(uids),
        "_source": False,
        "track_total_hits": False,
    }
    return in_indices(*sorted(days)), body


def previous_attempt_search(summary: AttemptSummarized) -> Search:
    """The pod's latest attempt before this one, of the same day or the day before."""
    days = [ATTEMPTS.name(summary.started_at - back) for back in _SEARCHED_DAYS]
    identity = {
        "namespace": summary.pod.namespace,
        "pod": summary.pod.name,
        "pod_uid": summary.pod.uid,
        "scheduler": summary.scheduler,
    }
    terms: list[dict[str, Any]] = [{"term": {name: value}} for name, value in identity.items()]
    # Earlier than this one, since the index may have this attempt already: it is read again after a restart.
    earlier = {"range": {"@timestamp": {"lt": rfc3339(summary.started_at)}}}
    body = {
        "query": {"bool": {"filter": [*terms, earlier]}},
        "sort": [by_time("desc")],
        "size": 1,
        # What grows with the number of nodes is left out: digests and episode are enough to compare.
        "_source": {"excludes": ["summary", "nodes", "text", "changes"]},
        "track_total_hits": False,
    }
    return in_indices(*days), body


def with_changes(summary: AttemptSummarized, episode: EpisodeRef) -> AttemptSummarized:
    """The summary as the topic carries it. In the index the changes are a field of the document instead."""
    return summary.model_copy(update={"changes": list(episode.changes)}) if episode.changes else summary


def attempt_records(
    summary: AttemptSummarized, new_lines: Sequence[MessageEmitted], event: AttemptRepeated | None = None
) -> Iterator[Outgoing]:
    """The summary in its parts, or the repetition, then the messages that are new."""
    for part in [event] if event else split(summary):
        yield Outgoing(ATTEMPTS_TOPIC.name, encode(part))
    for message in new_lines:
        yield Outgoing(MESSAGES_TOPIC.name, encode(message))


def new_messages(lines: Sequence[MessageEmitted], written: AttemptSummarized | None) -> list[MessageEmitted]:
    """The lines that were not published with ``written``. A line whose text has changed is published again."""
    published = {(line.id, line.message) for line in messages(written)} if written else set()
    return [line for line in lines if (line.id, line.message) not in published]


def may_get_more(summary: AttemptSummarized) -> bool:
    """Can another record about the attempt come? None can about a pod that fits nowhere: it is never bound."""
    return not summary.complete or summary.status == "pending"


def size_of(summary: AttemptSummarized) -> int:
    """Bytes in memory, approximately: a node is a name and a few numbers."""
    return 2_000 + 120 * len(summary.nodes) + 400 * len(summary.refusals)
