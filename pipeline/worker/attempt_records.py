"""The records that are published about an attempt. Pure."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from engine.summaries.messages import messages
from engine.summaries.reports import filter_giver
from pipeline.worker.open_attempts import DeviceRecord
from runtime.kafka.record import Outgoing
from schemas.codec.chunking import records_of
from schemas.codec.records import EncodedRecord, encode
from schemas.codec.trace_context import NO_TRACE, Trace, with_trace
from schemas.events import (
    AttemptCounted,
    AttemptRepeated,
    AttemptSummarized,
    Contribution,
    DevicesJudged,
    MessageEmitted,
)
from schemas.topics import ATTEMPT_COUNTS, ATTEMPTS, DEVICE_VERDICTS, MESSAGES


def attempt_records(event: AttemptSummarized | AttemptRepeated, trace: Trace = NO_TRACE) -> list[Outgoing]:
    """The summary in its parts, or the repetition."""
    records = records_of(event) if isinstance(event, AttemptSummarized) else [encode(event)]
    return [Outgoing(ATTEMPTS.name, with_trace(record, trace)) for record in records]


def message_records(lines: Sequence[MessageEmitted], trace: Trace = NO_TRACE) -> Iterator[Outgoing]:
    for line in lines:
        yield Outgoing(MESSAGES.name, with_trace(encode(line), trace))


def device_record(record: DeviceRecord) -> Outgoing:
    """The record of device verdicts as it was read, byte for byte."""
    read = record.read
    # Decoded before, so it has a value; any producer may leave out the key.
    same = EncodedRecord(read.key, read.value, list(read.headers))  # type: ignore[arg-type]
    return Outgoing(DEVICE_VERDICTS.name, same)


def gives_devices(report_id: str, summary: AttemptSummarized, written: AttemptSummarized | None) -> bool:
    """Are the device verdicts of that report those of the attempt, of which ``written`` is published?"""
    giver, before = filter_giver(summary), filter_giver(written) if written else None
    is_first = before is None or before.attempt_id == report_id or not (written and written.judged_devices)
    return giver is not None and giver.attempt_id == report_id and is_first


def renamed(records: Sequence[DeviceRecord], summary: AttemptSummarized) -> Iterator[DevicesJudged]:
    """Device verdicts of a report with the id of its attempt, under which readers look for them."""
    own = {"attempt_id": summary.attempt_id, "started_at": summary.started_at}
    return (record.event.model_copy(update=own) for record in records)


def count_record(
    summary: AttemptSummarized,
    recorded_at: datetime,
    adds: Contribution,
    replaces: Contribution | None,
    partition: int,
) -> Outgoing:
    """What the attempt adds to the counts of its minute, in the ``partition`` of its decisions."""
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
    return Outgoing(ATTEMPT_COUNTS.name, encode(event), partition)


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
