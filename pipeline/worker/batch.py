"""What one round of the writer publishes, and the histories that follow from where it lies then. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pipeline.worker import attempt_records
from pipeline.worker.open_attempts import DeviceRecord
from runtime.kafka.record import Outgoing, Place
from schemas.codec.records import encode
from schemas.codec.trace_context import NO_TRACE, Trace
from schemas.events import (
    AttemptRepeated,
    AttemptSummarized,
    DevicesJudged,
    FindingReported,
    MessageEmitted,
    PodHistoryChanged,
    PublishedAttempt,
    SummaryLocation,
)
from schemas.topics import DEVICE_VERDICTS, FINDINGS


class HistoryKey(NamedTuple):
    partition: int
    """The partition of the pod's decisions."""
    key: str
    """The key of the history's record."""


@dataclass(slots=True)
class WriteBatch:
    """Records that are published together."""

    outgoing: list[Outgoing] = field(default_factory=list)
    summaries: dict[str, AttemptSummarized] = field(default_factory=dict)
    """By attempt id, whole; the last of an attempt that is published several times."""
    histories: dict[HistoryKey, PodHistoryChanged] = field(default_factory=dict)
    """Where the summaries of this batch will lie is not known yet."""
    _parts: dict[str, range] = field(default_factory=dict)
    """By attempt id: which of ``outgoing`` are the parts of its summary."""

    def add_attempt(
        self, event: AttemptSummarized | AttemptRepeated, lines: Sequence[MessageEmitted], trace: Trace = NO_TRACE
    ) -> None:
        """Add the record of the attempt, and of the messages that are new."""
        records = attempt_records.attempt_records(event, trace)
        if isinstance(event, AttemptSummarized):
            self._parts[event.attempt_id] = range(len(self.outgoing), len(self.outgoing) + len(records))
        self.outgoing += records
        self.outgoing += attempt_records.message_records(lines, trace)

    def add_devices(self, records: Sequence[DeviceRecord]) -> None:
        self.outgoing += map(attempt_records.device_record, records)

    def add_rows(self, events: Iterable[DevicesJudged]) -> None:
        """Add device verdicts that are published under another id than they were read."""
        self.outgoing += [Outgoing(DEVICE_VERDICTS.name, encode(event)) for event in events]

    def add_finding(self, event: FindingReported) -> None:
        self.outgoing.append(Outgoing(FINDINGS.name, encode(event)))

    def whole_summaries(self) -> list[AttemptSummarized]:
        """Without those of repetitions."""
        return [self.summaries[name] for name in self._parts]

    def placed(self, places: Sequence[Place]) -> Iterator[tuple[HistoryKey, PodHistoryChanged]]:
        """The histories, with where the summaries lie; ``places`` are those of ``outgoing``."""
        found = {name: [places[at] for at in parts] for name, parts in self._parts.items()}
        for key, history in self.histories.items():
            attempts = [_placed(attempt, found) for attempt in history.attempts]
            yield key, history.model_copy(update={"attempts": attempts})


def _placed(attempt: PublishedAttempt, found: dict[str, list[Place]]) -> PublishedAttempt:
    # Also of an attempt that repeats one of this batch.
    if not (places := found.get(attempt.whole.attempt_id)):
        return attempt
    where = {"partition": places[0].partition, "offsets": [place.offset for place in places]}
    return attempt.model_copy(update={"whole": attempt.whole.model_copy(update=where)})


def not_placed(summary: AttemptSummarized) -> SummaryLocation:
    """Where a summary lies that is to be published, until that is known."""
    return SummaryLocation.model_construct(
        attempt_id=summary.attempt_id, started_at=summary.started_at, partition=0, offsets=[0]
    )
