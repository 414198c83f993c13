"""Records of node states become documents of their day; what contradicts, or can't be read, is dead-lettered."""

from datetime import UTC, datetime, timedelta

from pipeline.index.batch_builder import DocumentBatchBuilder
from pipeline.index.index_writer import IndexWriter
from pipeline.index.summary_parts import SummaryParts
from pipeline.metrics import IndexWriterMetrics
from schemas.codec.records import encode
from schemas.documents.devices import read_node_state
from schemas.events import Condition, NodeStateChanged, PodObserved, PodRef
from schemas.ids import count_microseconds
from schemas.topics import DEAD_LETTERS, NODE_STATES
from tests.support.builders.node_states import EPOCH, a_node_state
from tests.support.fakes.documents_and_records import DocumentsByVersion, TopicLog
from tests.support.fakes.index_and_topics import FakeTopics

TODAY, TOMORROW = datetime(2026, 11, 21, 23, 59, tzinfo=UTC), datetime(2026, 11, 22, 0, 1, tzinfo=UTC)
ID = f"default/hami-scheduler/node1/state/{EPOCH}/7"


async def write_log(log: TopicLog, index: DocumentsByVersion | None = None) -> tuple[DocumentsByVersion, list[str]]:
    """Write the records, and return the index and the causes of the dead letters."""
    index, topics = index or DocumentsByVersion(), FakeTopics()
    builder = DocumentBatchBuilder(SummaryParts(), 1_000, 1_000_000)
    for record in log.records:
        builder.add(record)
    await IndexWriter(index, topics, IndexWriterMetrics()).write(builder.take())
    causes = [dict(letter.headers)["dead_letter_cause"].decode() for letter in topics.list_sent(DEAD_LETTERS.name)]
    return index, causes


def log_of(*states: NodeStateChanged) -> TopicLog:
    log = TopicLog(NODE_STATES.name)
    for state in states:
        log.now_ms = round(state.observed_at.timestamp() * 1000)
        log.append(state)
    return log


async def test_a_state_is_a_document_of_the_day_on_which_it_was_written_under_its_own_id() -> None:
    state = a_node_state(observed_at=TODAY, memory_used_mib=list(range(8)))
    index, causes = await write_log(log_of(state))
    ((key, document),) = index.documents.items()
    assert key == ("schedulerlog-node-states-2026.11.21", ID)
    assert (document["@timestamp"], document["node"]) == ("2026-11-21T23:59:00.000000Z", "node1")
    read = read_node_state(document)
    assert isinstance(read, NodeStateChanged)
    assert encode(read) == encode(state)
    assert causes == []


async def test_a_state_of_a_clock_that_was_ahead_has_the_time_and_the_epoch_at_which_kafka_took_it() -> None:
    log = TopicLog(NODE_STATES.name)
    log.now_ms = round(TODAY.timestamp() * 1000)
    log.append(a_node_state(epoch=count_microseconds(TODAY) + 1, observed_at=TODAY + timedelta(hours=3)))
    index, causes = await write_log(log)
    ((key, document),) = index.documents.items()
    assert (document["@timestamp"], document["epoch"]) == ("2026-11-21T23:59:00.000000Z", count_microseconds(TODAY))
    # Under its own id, by which verdicts refer to it.
    assert document["state"]["epoch"] == count_microseconds(TODAY) + 1
    assert key[1].endswith(f"/state/{count_microseconds(TODAY) + 1}/7")
    assert causes == []


async def test_a_state_that_is_written_again_the_next_day_is_in_both_indices() -> None:
    index, causes = await write_log(log_of(a_node_state(observed_at=TODAY), a_node_state(observed_at=TOMORROW)))
    days = ["2026.11.21", "2026.11.22"]
    assert sorted(index.documents) == [(f"schedulerlog-node-states-{day}", ID) for day in days]
    assert causes == []


async def test_records_that_are_read_again_change_nothing() -> None:
    log = log_of(a_node_state(observed_at=TODAY), a_node_state("node2", observed_at=TODAY, revision=2))
    index, _ = await write_log(log)
    before = dict(index.documents)
    _, causes = await write_log(log, index)
    assert (index.documents, causes) == (before, [])


async def test_the_same_state_observed_later_on_the_same_day_is_stored_already() -> None:
    later = TODAY.replace(second=30)
    index, causes = await write_log(log_of(a_node_state(observed_at=TODAY), a_node_state(observed_at=later)))
    assert (len(index.documents), causes) == (1, [])


async def test_a_revision_that_is_used_twice_is_dead_lettered_and_the_first_state_remains() -> None:
    states = [a_node_state(observed_at=TODAY, slots_used=[slots] * 8) for slots in (1, 2)]
    index, causes = await write_log(log_of(*states))
    assert index.documents["schedulerlog-node-states-2026.11.21", ID]["state"]["slots_used"] == [1] * 8
    (cause,) = causes
    assert cause.startswith(f"{ID}: another state of the node has this epoch and revision")


async def test_a_record_that_cant_be_read_and_a_refused_document_are_dead_lettered_and_the_others_are_written() -> None:
    log = TopicLog(NODE_STATES.name)
    log.append_bytes(b"node3", b"\xff{", [("ce_type", NodeStateChanged.TYPE.encode())])
    log.append(a_node_state(), a_node_state("node2"))
    index, causes = await write_log(log, DocumentsByVersion(ID))
    assert [name for _, name in index.documents] == [f"default/hami-scheduler/node2/state/{EPOCH}/7"]
    assert causes[0].startswith("value: not JSON")
    assert causes[1] == f"OpenSearch refuses the document {ID}: 400 because"


async def test_a_deleted_key_and_an_event_of_another_type_are_passed_over() -> None:
    log = TopicLog(NODE_STATES.name)
    log.append_bytes(b"node1", None)
    refused = Condition(type="PodScheduled", status="False", reason="Unschedulable")
    log.append(
        PodObserved(
            cluster="default",
            pod=PodRef(namespace="a", name="b"),
            observed_at=TODAY,
            phase="Pending",
            conditions=[refused],
        )
    )
    index, causes = await write_log(log)
    assert (index.documents, causes) == ({}, [])
