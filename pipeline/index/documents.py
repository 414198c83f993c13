"""Documents of each event, in the index of its day. Pure.

A record's own JSON goes into its document as it is, wherever one record has all of it.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime

from engine.diagnosis.waiting import derive_wait_without_attempt
from engine.summaries.messages import build_search_text
from pipeline.sinks.bulk import Document, encode_source
from runtime.kafka.record import DecodedRecord, Record, record_time
from schemas.documents.attempts import build_attempt_document, build_finding_document, build_repeated_document
from schemas.documents.devices import DevicesJudgedHead, build_devices_document, build_node_state_document
from schemas.documents.pod_states import (
    PodStateDocument,
    derive_state_after_attempt,
    derive_state_after_observation,
    derive_state_of_workload,
)
from schemas.documents.trends import build_trend_documents
from schemas.events import (
    AttemptRepeated,
    AttemptSummarized,
    Event,
    FindingReported,
    NodeStateChanged,
    PodObserved,
    TrendsCounted,
    WorkloadObserved,
)
from schemas.indices import ATTEMPTS, DEVICES, FINDINGS, NODE_STATES, POD_STATES, TRENDS


def make_summary_document(summary: AttemptSummarized, records: Sequence[Record]) -> Document:
    """Make the document of an attempt, of which ``records`` are all the parts. The index keeps the version that knows
    most.

    It belongs to the day on which the attempt began, whenever it is written: the same id is always in the same index.
    A rollover alias or a data stream would keep a second, visible document.
    """
    value = records[0].value if len(records) == 1 else None
    json = encode_source(build_attempt_document(summary, build_search_text(summary), value))
    return _make_attempt_document(summary, json, records)


def _make_attempt_document(
    event: AttemptSummarized | AttemptRepeated, json: bytes, records: Sequence[Record]
) -> Document:
    # An attempt that is read again when its pod's history has dropped it is published again, compared with what the
    # history has then. What it was compared with at first is right.
    name = ATTEMPTS.name(event.started_at)
    return Document(name, event.attempt_id, json, event.version, tuple(records), keeps_first=True)


def make_pod_state_document(state: PodStateDocument, happened_at: datetime, records: Sequence[Record]) -> Document:
    """Make the document of a pod's latest state; ``happened_at`` is the time of the fact. The index keeps the
    latest."""
    return Document(POD_STATES.name(happened_at), state.id, encode_source(state.fields), state.version, tuple(records))


def make_state_document_after(read: DecodedRecord[Event]) -> Document | None:
    """Make the document of the pod's state that a single record gives; None if it gives none."""
    event = read.event
    if isinstance(event, AttemptRepeated):
        return make_pod_state_document(derive_state_after_attempt(event), event.started_at, (read.record,))
    if isinstance(event, WorkloadObserved):
        state = derive_state_of_workload(event)
    elif isinstance(event, PodObserved):
        state = derive_state_after_observation(event, derive_wait_without_attempt(event))
    else:
        return None
    return make_pod_state_document(state, event.time, (read.record,)) if state else None


def make_documents(read: DecodedRecord[Event]) -> Iterator[Document] | None:
    """Make the documents of an event that needs no other record; None for one that the index does not hold."""
    event = read.event
    if isinstance(event, DevicesJudgedHead):
        return iter((make_device_document(event, read),))
    if isinstance(event, AttemptRepeated):
        return iter((make_repetition_document(event, read),))
    if isinstance(event, NodeStateChanged):
        return iter((make_node_state_document(event, read),))
    if isinstance(event, FindingReported):
        return iter((make_finding_document(event, read),))
    return make_row_documents(event, read) if isinstance(event, TrendsCounted) else None


def make_device_document(event: DevicesJudgedHead, read: DecodedRecord[Event]) -> Document:
    """Make the document of a device record. It has no version: the record is published once and never changes."""
    return Document(
        DEVICES.name(event.started_at),
        event.id,
        encode_source(build_devices_document(event, read.value)),
        None,
        (read.record,),
    )


def make_repetition_document(event: AttemptRepeated, read: DecodedRecord[Event]) -> Document:
    return _make_attempt_document(event, encode_source(build_repeated_document(event, read.value)), (read.record,))


def make_node_state_document(event: NodeStateChanged, read: DecodedRecord[Event]) -> Document:
    """Make the document of a state, in the index of the day on which it was written."""
    # By the record's own time and not by the clock: read again, it is the same document. Without a version: a revision
    # never changes, so the index keeps the first document of an id.
    json = encode_source(build_node_state_document(event, record_time(read.record), read.value))
    return Document(NODE_STATES.name(event.observed_at), event.id, json, None, (read.record,))


def make_finding_document(event: FindingReported, read: DecodedRecord[Event]) -> Document:
    """Make the document of a finding, of the day of the attempt: reported again, it replaces itself in the same
    index."""
    # A finding may be reported again with other numbers: of one key, so in one partition, where later offsets are
    # greater.
    return Document(
        FINDINGS.name(event.started_at),
        event.id,
        encode_source(build_finding_document(event)),
        read.record.offset,
        (read.record,),
    )


def make_row_documents(event: TrendsCounted, read: DecodedRecord[Event]) -> Iterator[Document]:
    """Make a document per row of a minute; the index keeps the greatest version of each."""
    index = TRENDS.name(event.started_at)
    for name, fields in build_trend_documents(event):
        yield Document(index, name, encode_source(fields), event.version, (read.record,))
