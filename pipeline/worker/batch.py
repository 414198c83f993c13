"""What one round of a writer writes: documents for the index, records for the topics. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from broker.record import Outgoing
from pipeline.sinks.bulk import Document
from pipeline.sinks.findings import finding_write
from pipeline.worker import attempt_documents
from pipeline.worker.open_attempts import DeviceRecord
from pipeline.worker.writes import AttemptWrite
from schemas.documents.attempts import MinuteContribution
from schemas.events import AttemptSummarized, FindingReported, MessageEmitted
from summaries.attempt_audit import findings
from summaries.episodes import PreviousAttempt, repetition
from summaries.messages import messages


class Comparison(NamedTuple):
    """An attempt compared with the previous one of its pod."""

    attempt: PreviousAttempt
    """The attempt itself, as the next one is compared with it."""
    previous: PreviousAttempt | None
    is_repetition: bool


@dataclass(slots=True)
class WriteBatch:
    """Documents and records that are written together."""

    device_records: list[DeviceRecord] = field(default_factory=list)
    attempts: dict[str, Document] = field(default_factory=dict)
    """By attempt id: where one batch has two versions of an attempt, the index gets the last one, the topic both."""
    findings: dict[str, Document] = field(default_factory=dict)
    outgoing: list[Outgoing] = field(default_factory=list)
    summaries: dict[str, AttemptSummarized] = field(default_factory=dict)
    """By attempt id, as they are written."""
    partitions: dict[str, int] = field(default_factory=dict)
    """By attempt id: the partition that it was read from."""

    @property
    def is_empty(self) -> bool:
        return not (self.device_records or self.attempts or self.findings or self.outgoing)

    def add_attempt(
        self,
        summary: AttemptSummarized,
        written: AttemptSummarized | None,
        comparison: Comparison,
        write: AttemptWrite,
        contribution: MinuteContribution,
    ) -> list[MessageEmitted]:
        """Add what is written of the attempt, of which ``written`` is there already. The messages that are new."""
        lines = messages(summary)
        new_lines, origin = attempt_documents.new_messages(lines, written), write.origin
        episode, digests = comparison.attempt.episode, comparison.attempt.digests
        if comparison.is_repetition and comparison.previous:
            event = repetition(comparison.previous, summary)
            self.attempts[summary.attempt_id] = attempt_documents.repetition_document(
                summary, comparison.attempt, event, contribution, origin
            )
            self.outgoing += attempt_documents.attempt_records(summary, new_lines, event)
        else:
            self.attempts[summary.attempt_id] = attempt_documents.summary_document(
                summary, lines, episode, digests, contribution, origin
            )
            with_changes = attempt_documents.with_changes(summary, episode)
            self.outgoing += attempt_documents.attempt_records(with_changes, new_lines)
            # A repetition stores no device records: those of the attempt that it repeats say the same.
            self.device_records += write.device_records
        # A later write of the same attempt in this batch is merged with it: the index does not have it yet.
        self.summaries[summary.attempt_id] = summary
        self.partitions[summary.attempt_id] = write.partition
        for finding in findings(summary):
            self.add_finding(finding, summary.version, origin)
        return new_lines

    def add_finding(self, event: FindingReported, version: int | None, origin: object) -> None:
        document, outgoing = finding_write(event, version, origin)
        self.findings[document.id] = document
        self.outgoing.append(outgoing)

    def documents(self) -> Iterator[Document]:
        """All documents of the batch."""
        yield from map(attempt_documents.device_document, self.device_records)
        yield from self.attempts.values()
        yield from self.findings.values()

    def again(self, document: Document) -> AttemptWrite | None:
        """The write of an attempt whose document is in conflict; None for a document that is not an attempt's."""
        if (summary := self.summaries.get(document.id)) is None:
            return None
        # The record is acknowledged with the first write, which waits for this one.
        return AttemptWrite(summary, document.origin, _nothing, (), self.partitions[document.id])


def _nothing() -> None:
    """Callback of a summary that is written again after a conflict."""
