"""The documents of each event, in the index of its day. Pure.

A record's own JSON goes into its document as it is, wherever one record has all of it.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from engine.summaries.messages import build_search_text
from pipeline.dead_letter import Source
from pipeline.sinks.bulk import Document, source
from schemas.documents.attempts import attempt_document, repeated_document
from schemas.documents.devices import JudgedNodes, devices_document
from schemas.documents.findings import finding_document
from schemas.documents.node_states import node_state_document
from schemas.documents.pod_states import PodStateDocument, state_after_attempt, state_after_observation
from schemas.documents.trends import trend_documents
from schemas.events import (
    AttemptRepeated,
    AttemptSummarized,
    Event,
    FindingReported,
    NodeStateChanged,
    PodObserved,
    TrendsCounted,
)
from schemas.indices import ATTEMPTS, DEVICES, FINDINGS, NODE_STATES, POD_STATES, TRENDS


class ReadEvent(NamedTuple):
    """An event, and the record that it was decoded from."""

    event: Event
    record: Source

    @property
    def value(self) -> bytes:
        """Its JSON."""
        # A record without a value is no event.
        return self.record.value or b""


def summary_document(summary: AttemptSummarized, records: Sequence[Source]) -> Document:
    """The document of an attempt, of which ``records`` are all the parts. The index keeps the version that knows most.

    It belongs to the day on which the attempt began, whenever it is written: the same id is always in the same index.
    A rollover alias or a data stream would keep a second, visible document.
    """
    value = records[0].value if len(records) == 1 else None
    json = source(attempt_document(summary, build_search_text(summary), value))
    return _of_attempt(summary, json, records)


def _of_attempt(event: AttemptSummarized | AttemptRepeated, json: bytes, records: Sequence[Source]) -> Document:
    # An attempt that is read again when its pod's history has dropped it is published again, compared with what the
    # history has then. What it was compared with at first is right.
    name = ATTEMPTS.name(event.started_at)
    return Document(name, event.attempt_id, json, event.version, tuple(records), keeps_first=True)


def pod_state_document(state: PodStateDocument, at: datetime, records: Sequence[Source]) -> Document:
    """The document of a pod's latest state; ``at`` is the time of the fact. The index keeps the latest."""
    return Document(POD_STATES.name(at), state.id, source(state.fields), state.version, tuple(records))


def state_document_after(read: ReadEvent) -> Document | None:
    """The document of the pod's state that one record alone says; None where it says none."""
    event = read.event
    if isinstance(event, AttemptRepeated):
        return pod_state_document(state_after_attempt(event), event.started_at, (read.record,))
    left = state_after_observation(event) if isinstance(event, PodObserved) else None
    return pod_state_document(left, event.time, (read.record,)) if left else None


def documents_of(read: ReadEvent) -> Iterator[Document] | None:
    """The documents of an event that needs no other record; None for one that the index does not hold."""
    event = read.event
    if isinstance(event, JudgedNodes):
        return iter((device_document(event, read),))
    if isinstance(event, AttemptRepeated):
        return iter((repetition_document(event, read),))
    if isinstance(event, NodeStateChanged):
        return iter((state_document(event, read),))
    if isinstance(event, FindingReported):
        return iter((finding_document_of(event, read),))
    return row_documents(event, read) if isinstance(event, TrendsCounted) else None


def device_document(event: JudgedNodes, read: ReadEvent) -> Document:
    """It has no version: the record is published once and never changes."""
    return Document(
        DEVICES.name(event.started_at), event.id, source(devices_document(event, read.value)), None, (read.record,)
    )


def repetition_document(event: AttemptRepeated, read: ReadEvent) -> Document:
    return _of_attempt(event, source(repeated_document(event, read.value)), (read.record,))


def state_document(event: NodeStateChanged, read: ReadEvent) -> Document:
    """The document of a state, in the index of the day on which it was written."""
    # By the record's own time and not by the clock: read again, it is the same document. Without a version: a revision
    # never changes, so the index keeps the first document of an id.
    json = source(node_state_document(event, event.observed_at, read.value))
    return Document(NODE_STATES.name(event.observed_at), event.id, json, None, (read.record,))


def finding_document_of(event: FindingReported, read: ReadEvent) -> Document:
    """The document of a finding, of the day of the attempt: reported again, it replaces itself in the same index."""
    # A finding may be reported again with other numbers: of one key, so in one partition, where later offsets are
    # greater.
    return Document(
        FINDINGS.name(event.started_at), event.id, source(finding_document(event)), read.record.offset, (read.record,)
    )


def row_documents(event: TrendsCounted, read: ReadEvent) -> Iterator[Document]:
    """A document per row of a minute; the index keeps the greatest version of each."""
    index = TRENDS.name(event.started_at)
    for name, fields in trend_documents(event):
        yield Document(index, name, source(fields), event.version, (read.record,))
