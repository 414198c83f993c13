"""Records that one round of the writer publishes, and the pod histories that name their positions. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from engine.summaries.messages import build_messages
from engine.summaries.reports import find_filter_giver
from runtime.kafka.record import DecodedRecord, RecordPosition
from schemas.codec.chunking import encode_parts
from schemas.codec.records import EncodedRecord, encode
from schemas.codec.trace_context import NO_TRACE, Trace, with_trace
from schemas.events import (
    AttemptCounted,
    AttemptRepeated,
    AttemptSummarized,
    Contribution,
    DevicesJudged,
    FindingReported,
    MessagesEmitted,
    PodHistoryChanged,
    PublishedAttempt,
    SummaryLocation,
)
from schemas.topics import ATTEMPT_COUNTS, ATTEMPTS, DEVICE_VERDICTS, FINDINGS, MESSAGES


def encode_attempt(event: AttemptSummarized | AttemptRepeated, trace: Trace = NO_TRACE) -> list[EncodedRecord]:
    """Encode a summary in its parts, or a repetition."""
    records = (
        encode_parts(event, ATTEMPTS.name) if isinstance(event, AttemptSummarized) else [encode(event, ATTEMPTS.name)]
    )
    return [with_trace(record, trace) for record in records]


def encode_messages(messages: Sequence[MessagesEmitted], trace: Trace = NO_TRACE) -> Iterator[EncodedRecord]:
    for lines in messages:
        yield with_trace(encode(lines, MESSAGES.name), trace)


def forward_devices(record: DecodedRecord[DevicesJudged]) -> EncodedRecord:
    """Return the record of device verdicts as it was read, byte for byte."""
    # Any producer may leave out the key.
    key, headers = record.record.key, list(record.record.headers)
    return EncodedRecord(key, record.value, headers, DEVICE_VERDICTS.name)  # type: ignore[arg-type]


def gives_devices(report_id: str, summary: AttemptSummarized, written: AttemptSummarized | None) -> bool:
    """Tell whether this report's device verdicts represent the attempt, of which ``written`` is published. Only one
    report's do."""
    giver, before = find_filter_giver(summary), find_filter_giver(written) if written else None
    is_first = before is None or before.attempt_id == report_id or not (written and written.judged_devices)
    return giver is not None and giver.attempt_id == report_id and is_first


def rename_devices(
    records: Sequence[DecodedRecord[DevicesJudged]], summary: AttemptSummarized
) -> Iterator[DevicesJudged]:
    """Yield a report's device verdicts with the id of its attempt, under which readers look for them."""
    identity = {"attempt_id": summary.attempt_id, "started_at": summary.started_at}
    return (record.event.model_copy(update=identity) for record in records)


def encode_count(
    summary: AttemptSummarized,
    recorded_at: datetime,
    adds: Contribution,
    replaces: Contribution | None,
    partition: int,
) -> EncodedRecord:
    """Encode the attempt's contribution to the counts of its minute, for the ``partition`` of its decisions."""
    event = AttemptCounted.model_construct(
        cluster=summary.cluster,
        attempt_id=summary.attempt_id,
        pod=summary.pod,
        scheduler=summary.scheduler,
        started_at=summary.started_at,
        recorded_at=recorded_at,
        adds=adds,
        replaces=replaces,
    )
    return encode(event, ATTEMPT_COUNTS.name, partition)


def select_new_messages(
    messages: Sequence[MessagesEmitted], written: AttemptSummarized | None
) -> list[MessagesEmitted]:
    """Select the lines that were not published with ``written``. A line whose text has changed is published again."""
    if not written:
        return list(messages)
    published = {(event.reason, line) for event in build_messages(written) for line in event.lines}
    new_lines = [[line for line in event.lines if (event.reason, line) not in published] for event in messages]
    return [
        event.model_copy(update={"lines": lines}) for event, lines in zip(messages, new_lines, strict=True) if lines
    ]


def may_get_more(summary: AttemptSummarized) -> bool:
    """Tell whether another record about the attempt may come. A pod that fits nowhere is never bound."""
    return not summary.complete or summary.status == "pending"


def estimate_size(summary: AttemptSummarized) -> int:
    """Estimate the bytes of a summary in memory: a node is a name and a few numbers."""
    return 2_000 + 120 * len(summary.nodes) + 400 * len(summary.refusals)


class HistoryKey(NamedTuple):
    partition: int
    """The partition of the pod's decisions."""
    key: str
    """The key of the history's record."""


@dataclass(slots=True)
class WriteBatch:
    """Records that are published together."""

    outgoing: list[EncodedRecord] = field(default_factory=list)
    summaries: dict[str, AttemptSummarized] = field(default_factory=dict)
    """Full summaries by attempt id; the last one of an attempt that is published several times."""
    histories: dict[HistoryKey, PodHistoryChanged] = field(default_factory=dict)
    """Changed histories. The positions of this batch's summaries are missing until it is sent."""
    _parts: dict[str, range] = field(default_factory=dict)
    """Indices into ``outgoing`` of the parts of a summary, by attempt id."""

    def add_attempt(
        self, event: AttemptSummarized | AttemptRepeated, messages: Sequence[MessagesEmitted], trace: Trace = NO_TRACE
    ) -> None:
        """Add the record of the attempt, and of its messages that are new."""
        records = encode_attempt(event, trace)
        if isinstance(event, AttemptSummarized):
            self._parts[event.attempt_id] = range(len(self.outgoing), len(self.outgoing) + len(records))
        self.outgoing += records
        self.outgoing += encode_messages(messages, trace)

    def add_devices(self, records: Sequence[DecodedRecord[DevicesJudged]]) -> None:
        self.outgoing += map(forward_devices, records)

    def add_rows(self, events: Iterable[DevicesJudged]) -> None:
        """Add device verdicts that are published under another id than they were read."""
        self.outgoing += [encode(event, DEVICE_VERDICTS.name) for event in events]

    def add_finding(self, event: FindingReported) -> None:
        self.outgoing.append(encode(event, FINDINGS.name))

    def list_full_summaries(self) -> list[AttemptSummarized]:
        """List the summaries that this batch publishes in full, not as repetitions."""
        return [self.summaries[name] for name in self._parts]

    def locate_summaries(self, places: Sequence[RecordPosition]) -> Iterator[tuple[HistoryKey, PodHistoryChanged]]:
        """Yield the histories with the positions of their summaries; ``places`` are the positions of ``outgoing``."""
        positions = {name: [places[index] for index in parts] for name, parts in self._parts.items()}
        for key, history in self.histories.items():
            attempts = [_locate(attempt, positions) for attempt in history.attempts]
            yield key, history.model_copy(update={"attempts": attempts})


def _locate(attempt: PublishedAttempt, positions: dict[str, list[RecordPosition]]) -> PublishedAttempt:
    # Also of an attempt that repeats one of this batch.
    if not (places := positions.get(attempt.whole.attempt_id)):
        return attempt
    location = {"partition": places[0].partition, "offsets": [position.offset for position in places]}
    return attempt.model_copy(update={"whole": attempt.whole.model_copy(update=location)})


def reserve_location(summary: AttemptSummarized) -> SummaryLocation:
    """Return a placeholder for the location of a summary that is not published yet."""
    return SummaryLocation.model_construct(
        attempt_id=summary.attempt_id, started_at=summary.started_at, partition=0, offsets=[0]
    )
