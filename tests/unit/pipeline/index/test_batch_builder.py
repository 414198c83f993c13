"""Records of all topics become documents, once each, wherever batches are cut and whenever the process is killed."""

from datetime import timedelta
from random import Random
from typing import Any

import pytest

from pipeline.index.batch_builder import Batch, DocumentBatchBuilder
from pipeline.index.index_writer import IndexWriter
from pipeline.index.summary_parts import SummaryParts
from pipeline.metrics import IndexWriterMetrics
from pipeline.sinks.bulk import Document
from schemas.codec.records import encode, encode_value
from schemas.documents.attempts import read_summary
from schemas.events import AttemptSummarized, Event, FindingReported, MessageLine, MessagesEmitted
from schemas.indices import POD_STATES
from schemas.topics import ATTEMPTS, DEAD_LETTERS
from tests.support.builders.events import (
    ATTEMPT,
    STARTED,
    a_repetition,
    a_summary,
    build_devices_judged,
    build_nodes_judged,
    build_trends,
)
from tests.support.builders.node_states import OBSERVED, a_node_state
from tests.support.builders.summary_parts import build_parts, name_nodes
from tests.support.fakes.documents_and_records import DocumentsByVersion, TopicLog
from tests.support.fakes.index_and_topics import FakeTopics

FINDING = FindingReported(**ATTEMPT, finding="Imbalance", found_at=STARTED, node="")


def a_builder(max_documents: int = 1_000, max_bytes: int = 1_000_000) -> DocumentBatchBuilder:
    return DocumentBatchBuilder(SummaryParts(), max_documents, max_bytes)


def build_batch(*events: Event) -> Batch:
    log, builder = TopicLog(), a_builder()
    log.append(*events)
    for record in log.records:
        builder.add(record)
    return builder.take()


def without_pod_states(batch: Batch) -> list[Document]:
    return [document for document in batch.documents if document.id not in batch.pod_states]


@pytest.mark.parametrize(
    ("event", "location"),
    [
        (a_summary(), ("schedulerlog-attempts-2026.11.21", "0f" * 16, 1)),
        (a_repetition(version=7), ("schedulerlog-attempts-2026.11.21", "0f" * 16, 7)),
        (build_devices_judged(), ("schedulerlog-devices-2026.11.21", f"{'0f' * 16}/devices/0", None)),
        (FINDING, ("schedulerlog-findings-2026.11.01", FINDING.id, 0)),
        (
            a_node_state(observed_at=OBSERVED),
            (f"schedulerlog-node-states-{OBSERVED:%Y.%m.%d}", a_node_state().id, None),
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_event_is_a_document_in_the_index_of_its_day_or_month(
    event: Event, location: tuple[str, str, int | None]
) -> None:
    (document,) = without_pod_states(build_batch(event))
    assert (document.index, document.id, document.version) == location
    if not isinstance(event, FindingReported):
        assert encode(event).value in document.source, "the record's own bytes"


def test_every_row_of_a_minute_is_a_document_of_its_version() -> None:
    rows = {name: ["a", "b"] for name in ("namespace", "dimension", "value")} | {"result": ["failed", "failed"]}
    counts = {name: [1, 2] for name in ("attempts", "pods", "nodes", "devices")}
    documents = build_batch(
        build_trends(**rows, **counts, version=3), build_trends(**rows, **counts, version=2)
    ).documents
    assert [(document.index, document.version) for document in documents] == [("schedulerlog-trends-2026.11.01", 3)] * 2


def test_a_summary_of_several_records_is_one_document_of_all_nodes() -> None:
    (document,) = without_pod_states(build_batch(*build_parts(3)))
    assert b'"nodes":["node0","node1","node2"]' in document.source
    assert [record.offset for record in document.origin] == [0, 1, 2]


def test_of_two_versions_in_one_batch_the_greater_one_is_written() -> None:
    batch = build_batch(a_summary(version=2), a_summary(version=1), a_repetition(version=1))
    (document,) = without_pod_states(batch)
    assert document.version == 2
    (state,) = batch.pod_states.values()
    assert batch.size == document.size + state.size


def test_a_finding_that_is_reported_again_replaces_itself() -> None:
    again = FINDING.model_copy(update={"numbers": {"judged_nodes": 2}})
    (document,) = build_batch(FINDING, again).documents
    assert document.version == 1
    assert b'"judged_nodes":2' in document.source


@pytest.mark.parametrize("event", [a_summary(version=7), a_repetition(version=7)])
def test_of_two_of_the_same_version_the_attempt_that_was_published_first_is_kept(event: AttemptSummarized) -> None:
    again = event.model_copy(update={"attempts": 30, "episode": "0e" * 16})
    batch = build_batch(event, again)
    (document,) = without_pod_states(batch)
    assert document.keeps_first
    assert document.source == without_pod_states(build_batch(event))[0].source


def test_events_that_the_index_does_not_hold_are_passed_over() -> None:
    messages = MessagesEmitted(
        **ATTEMPT, reported_at=STARTED, severity="Normal", reason="FilteringSucceed", lines=[MessageLine(message="m")]
    )
    batch = build_batch(messages, build_nodes_judged())
    assert (batch.documents, batch.rejected) == ([], [])
    assert batch.outcomes == {(ATTEMPTS.name, "passed_over"): 2}
    assert batch.committable == {(ATTEMPTS.name, 0): 2}


def test_parts_that_cant_be_joined_are_rejected_each() -> None:
    first, second = build_parts(2)
    batch = build_batch(first, second.model_copy(update={"verdicts": ["fits", "refused", "picked"]}))
    assert batch.documents == []
    assert [(rejection.record.offset, rejection.cause) for rejection in batch.rejected] == [
        (0, "parts of different summaries can't be joined"),
        (1, "parts of different summaries can't be joined"),
    ]


@pytest.mark.parametrize(("documents", "size"), [(2, 1_000_000), (1_000, 4_000)])
def test_a_batch_is_full_by_documents_or_by_bytes(documents: int, size: int) -> None:
    builder, log = a_builder(documents, size), TopicLog()
    log.append(*(a_summary(attempt_id=f"{number:032}") for number in range(2)))
    builder.add(log.records[0])
    assert not builder.is_full
    builder.add(log.records[1])
    assert builder.is_full
    assert builder.take().documents
    assert (builder.is_full, builder.is_empty) == (False, True)


def test_the_offset_of_the_first_part_is_committed_until_the_summary_is_whole() -> None:
    builder, log = a_builder(), TopicLog()
    parts, other = build_parts(2), a_summary(attempt_id="1e" * 16)
    log.append(other, parts[0], other, parts[1])
    committable = []
    for record in log.records:
        builder.add(record)
        committable.append(builder.take().committable[ATTEMPTS.name, 0])
    assert committable == [1, 1, 1, 4]


ATTEMPTS_OF_THREE_PODS = [
    (f"{number:032}", version, parts) for number in range(3) for version, parts in ((1, 1), (2, 3), (3, 2))
]


def an_attempt(attempt_id: str, version: int, parts: int) -> list[AttemptSummarized]:
    return build_parts(parts, attempt_id=attempt_id, version=version, ended_at=STARTED + timedelta(seconds=version))


@pytest.mark.parametrize("seed", range(50))
async def test_wherever_batches_are_cut_and_whenever_it_is_killed_each_attempt_is_there_as_its_greatest_version(
    seed: int,
) -> None:
    random, log = Random(seed), TopicLog()
    for attempt in random.sample(ATTEMPTS_OF_THREE_PODS, len(ATTEMPTS_OF_THREE_PODS)):
        parts = an_attempt(*attempt)
        # A worker that is killed while it publishes them publishes all again.
        log.append(*parts[: random.randint(0, len(parts))], *parts)
    index, topics, metrics = DocumentsByVersion(), FakeTopics(), IndexWriterMetrics()
    committed = 0
    while committed < len(log.records):
        # A process reads from what is committed until it is killed, at the latest after the last record.
        builder, position = a_builder(), committed
        for _ in range(random.randint(1, 6)):
            until = random.randint(position, len(log.records))
            for record in log.records[position:until]:
                builder.add(record)
            position = until
            batch = builder.take()
            await IndexWriter(index, topics, metrics).write(batch)
            # Killed before the commit, it writes the batch again in its next life.
            if random.random() < 0.7:
                committed = batch.committable.get((ATTEMPTS.name, 0), committed)
    assert read_contents(index) == {
        f"{number:032}": (3, name_nodes(2), "2026-11-21T03:06:26.217054Z") for number in range(3)
    }
    assert topics.list_sent(DEAD_LETTERS.name) == []


def read_contents(index: DocumentsByVersion) -> dict[str, Any]:
    """Read by attempt: version, nodes and end of its document, which holds the summary as its records have it."""
    contents = {}
    for (family, name), document in index.documents.items():
        if family.startswith(POD_STATES.alias):
            continue
        summary = read_summary(document)
        assert isinstance(summary, AttemptSummarized)
        assert (summary.part, summary.parts) == (0, 1)
        assert encode_value(summary.nodes) == encode_value(document["nodes"])
        contents[name] = summary.version, summary.nodes, document["ended_at"]
    return contents


async def test_the_delay_of_each_attempt_is_counted_once_from_kafkas_time_of_its_last_record() -> None:
    log, builder, metrics = TopicLog(), a_builder(), IndexWriterMetrics()
    first, second, last = build_parts(3)
    began = log.now_ms
    for seconds, event in enumerate((first, second, last, a_repetition(), FINDING)):
        log.now_ms = began + 1000 * seconds
        log.append(event)
    for record in log.records:
        builder.add(record)
    await IndexWriter(DocumentsByVersion(), FakeTopics(), metrics, lambda: began / 1000 + 10).write(builder.take())
    (family,) = [item for item in metrics.registry.collect() if item.name == "schedulerlog_index_attempt_delay_seconds"]
    numbers = {(sample.name.rpartition("_")[2], sample.labels.get("le")): sample.value for sample in family.samples}
    assert numbers["count", None] == 2
    # The last part came 8 s before, and the repetition 7 s.
    assert numbers["sum", None] == pytest.approx(15)
