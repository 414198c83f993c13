"""The index writer on a real broker and index: shared by processes, killed at any time, each document once."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import httpx
import orjson
import pytest
from aiokafka import AIOKafkaProducer
from prometheus_client import CollectorRegistry

from api.index.attempts.attempt_reader import read_devices
from api.index.reading.client import OpenSearch
from pipeline.metrics import IndexMetrics
from pipeline.sinks.bulk import Document, encode_source
from pipeline.sinks.index_watch import IndexWatch
from pipeline.sinks.opensearch import OpenSearchSink
from runtime.opensearch.client import create_client
from runtime.settings.opensearch_connection import build_opensearch_connection
from schemas import indices as index_families
from schemas.codec.chunking import join
from schemas.codec.records import EncodedRecord, encode, encode_value
from schemas.documents.devices import read_node_state
from schemas.events import Event, FindingReported, NodeStateChanged, PodRef
from schemas.index_family import MAPPING_VERSION
from schemas.json_types import Json
from schemas.topics import ATTEMPTS, DEAD_LETTERS, DEVICE_VERDICTS, FINDINGS, NODE_STATES, TRENDS, Topic
from tests.support.builders.events import (
    ATTEMPT,
    STARTED,
    a_repetition,
    a_report,
    a_summary,
    build_devices_judged,
    build_trends,
)
from tests.support.builders.node_states import OBSERVED, a_node_state, a_random_state
from tests.support.builders.summary_parts import build_parts
from tests.support.harness.pipeline_process import INDEX_WRITERS, INDEXED, Pipeline
from tests.support.waiting import until

Records = Sequence[tuple[Topic, Event]]
NODES = [f"node-{number}" for number in range(8)]


@pytest.fixture
def running(provisioned: Pipeline) -> Iterator[Pipeline]:
    yield provisioned
    for server in provisioned.servers.servers:
        if not server.is_alive:
            server.start()
    provisioned.stop_all()


def send(running: Pipeline, records: Sequence[tuple[Topic, EncodedRecord]]) -> None:
    async def send_all() -> None:
        async with AIOKafkaProducer(bootstrap_servers=running.servers.bootstrap_servers) as producer:
            for topic, record in records:
                await producer.send(topic.name, record.value, key=record.key, headers=record.headers)
            await producer.flush()

    asyncio.run(send_all())


def publish(running: Pipeline, events: Records) -> None:
    send(running, [(topic, encode(event)) for topic, event in events])


def settle(running: Pipeline) -> None:
    running.settle_group(INDEX_WRITERS, INDEXED)


def build_head(number: int) -> Json:
    """Build the head of a pod of its own, so that all partitions have records."""
    return {"pod": PodRef(namespace="index", name=f"pod-{number}", uid=str(number)), "attempt_id": f"{number:032}"}


def build_changing_states(revisions: int) -> list[NodeStateChanged]:
    """Build states of nodes that change so often, a second apart."""
    return [
        a_random_state(node, 2, seed=revision, revision=revision, observed_at=OBSERVED + timedelta(seconds=revision))
        for revision in range(revisions)
        for node in NODES
    ]


def build_minute(version: int) -> Event:
    names = {name: ["index"] for name in ("namespace", "dimension", "value")}
    counts = {name: [version] for name in ("attempts", "pods", "nodes", "devices")}
    return build_trends(**names, result=["failed"], **counts, version=version)


def build_everything(numbers: range) -> Records:
    """Build of each attempt a pending and a final version, of several records, then a repetition; and what belongs to
    it.
    """
    records: list[tuple[Topic, Event]] = []
    for number in numbers:
        head = build_head(number)
        for version, parts in ((1, 1), (2, 3)):
            records += [(ATTEMPTS, part) for part in build_parts(parts, **head, version=version)]
        again = head | {"attempt_id": f"{number:031}r", "repeats": head["attempt_id"]}
        records += [
            (ATTEMPTS, a_repetition(**again)),
            (DEVICE_VERDICTS, build_devices_judged(**head)),
            (FINDINGS, FindingReported(**ATTEMPT | head, finding="Imbalance", found_at=STARTED, node="")),
            (TRENDS, build_minute(number + 1)),
        ]
    return records


def read_documents(running: Pipeline) -> dict[str, dict[str, Json]]:
    names = ("attempts", "devices", "findings", "trends", "node-states")
    return {name: running.get_documents(alias=f"schedulerlog-{name}") for name in names}


def test_each_document_is_there_once_whatever_is_killed_and_while_the_index_stands_still(running: Pipeline) -> None:
    opensearch = running.servers.opensearch
    running.start_index()
    running.wait_index_ready()
    running.processes.start("second", "pipeline", "index")
    publish(running, [*build_everything(range(60)), *((NODE_STATES, state) for state in build_changing_states(10))])
    running.processes.kill("index")
    opensearch.pause()
    publish(running, build_everything(range(60, 120)))
    running.processes.kill("second")
    running.start_index()
    running.processes.start("second", "pipeline", "index")
    opensearch.resume()
    publish(running, build_everything(range(120, 180)))
    opensearch.kill()
    publish(running, build_everything(range(180, 240)))
    opensearch.start()
    settle(running)

    documents = read_documents(running)
    attempts = {name: document for name, document in documents["attempts"].items() if document["namespace"] == "index"}
    assert attempts.keys() == {f"{n:032}" for n in range(240)} | {f"{n:031}r" for n in range(240)}
    summary = join(build_parts(3, **build_head(7), version=2))
    assert encode_value(summary) == orjson.dumps(attempts[summary.attempt_id]["summary"])
    assert {len(document["nodes"]) for name, document in attempts.items() if not name.endswith("r")} == {3}
    assert {document["repeats"] for name, document in attempts.items() if name.endswith("r")} == {
        f"{number:032}" for number in range(240)
    }
    devices = {name: document["record"] for name, document in documents["devices"].items()}
    judged = [build_devices_judged(**build_head(number)) for number in range(240)]
    assert devices == {event.id: orjson.loads(encode(event).value) for event in judged}
    assert sorted(finding["attempt_id"] for finding in documents["findings"].values()) == [
        f"{n:032}" for n in range(240)
    ]
    assert [trend["attempts"] for trend in documents["trends"].values()] == [240]
    assert read_states(running) == {state.id: encode_value(state) for state in build_changing_states(10)}
    assert not running.read_topic(DEAD_LETTERS.name)


def read_states(running: Pipeline) -> dict[str, bytes]:
    """Read every state in the index: id to event, encoded."""
    documents = running.get_documents(alias="schedulerlog-node-states")
    return {name: encode_value(read_node_state(document)) for name, document in documents.items()}


async def read_device_rows(url: str, attempt_id: str, began: datetime, nodes: Sequence[str]) -> tuple[int, str]:
    """Count the rows that the API reads of the attempt's devices; and what it notes of missing ones."""
    client = create_client(build_opensearch_connection(url))
    try:
        index = OpenSearch(client, lambda *_: None, 10)
        rows, note = await read_devices(index, "default", attempt_id, began, nodes)
    finally:
        await client.close()
    return len(rows), note


@pytest.mark.parametrize("position", [0, 1], ids=["day", "month"])
def test_the_api_reads_devices_and_states_from_indices_of_days_and_of_months(running: Pipeline, position: int) -> None:
    url, nodes = running.servers.opensearch_url, NODES[:2]
    # Months about which no other test writes.
    began = STARTED - timedelta(days=365 + 31 * position)
    families = (index_families.ATTEMPTS, index_families.DEVICES, index_families.NODE_STATES)
    names = {family.list_places(began)[position][0] for family in families}
    for name in names:
        httpx.put(f"{url}/{name}", timeout=30).raise_for_status()
    attempt_id = f"{position:032}"
    head = build_head(2_000) | {"attempt_id": attempt_id, "started_at": began}
    # Written again each day, under the same id.
    days = (began - timedelta(days=1), began)
    events: list[tuple[Topic, Event]] = [
        (NODE_STATES, a_node_state(node, revision=9, observed_at=day)) for day in days for node in nodes
    ]
    events += [(ATTEMPTS, a_summary(**head)), (DEVICE_VERDICTS, build_devices_judged(nodes, revision=[9, 9], **head))]
    for _ in range(2):
        running.start_index()
        running.wait_index_ready()
        publish(running, events)
        settle(running)
        running.processes.kill("index")
    assert asyncio.run(read_device_rows(url, attempt_id, began, nodes)) == (16, "")
    httpx.post(f"{url}/_refresh", timeout=30)
    rows = httpx.get(f"{url}/_cat/indices/schedulerlog-*-{began:%Y.%m}*", params={"format": "json"}, timeout=30).json()
    counts = {row["index"]: int(row["docs.count"]) for row in rows}
    assert counts == dict.fromkeys(names, 1) | (
        {f"schedulerlog-node-states-{began:%Y.%m}.00": 4}
        if position
        else {index_families.NODE_STATES.name(day): 2 for day in days}
    )


def test_a_revision_that_is_used_twice_and_what_cant_be_read_or_stored_are_dead_letters(running: Pipeline) -> None:
    first, second = (a_node_state("twice", 1, slots_used=[slots]) for slots in (1, 2))
    broken = EncodedRecord(b"twice", b"{", encode(first).headers)
    # OpenSearch takes ids of at most 512 bytes.
    endless = FindingReported(**ATTEMPT | build_head(1_000), finding="Imbalance", found_at=STARTED, node="n" * 600)
    running.start_index()
    running.wait_index_ready()
    wrong = [(NODE_STATES, encode(first)), (NODE_STATES, encode(second)), (NODE_STATES, broken)]
    send(running, [*wrong, (FINDINGS, encode(endless)), (ATTEMPTS, encode(a_summary(**build_head(1_000))))])
    settle(running)
    dead = {letter.value: dict(letter.headers) for letter in running.read_topic(DEAD_LETTERS.name)}
    causes = {value: headers["dead_letter_cause"] for value, headers in dead.items()}
    assert causes.keys() == {encode(second).value, b"{", encode(endless).value}
    assert b"another state of the node has this epoch and revision" in causes[encode(second).value]
    assert b"too long" in causes[encode(endless).value]
    assert read_states(running)[first.id] == encode_value(first)
    assert f"{1_000:032}" in running.get_attempts("index")


def test_the_process_says_that_it_waits_while_the_index_is_down(running: Pipeline) -> None:
    running.start_index()
    running.wait_index_ready()
    running.servers.opensearch.kill()
    publish(running, [(ATTEMPTS, a_summary(**build_head(2_000)))])
    assert not until(running.is_index_ready, lambda ready: not ready)
    running.servers.opensearch.start()
    assert until(running.is_index_ready)
    settle(running)
    assert f"{2_000:032}" in running.get_attempts("index")


def test_h5_an_index_that_cant_be_made_is_waited_for_and_no_attempt_is_lost(running: Pipeline) -> None:
    url = running.servers.opensearch_url
    before = len(running.read_topic(DEAD_LETTERS.name))
    running.start_index()
    running.wait_index_ready()
    # A limit of no shards is not allowed.
    httpx.put(f"{url}/filler", timeout=30)
    health = httpx.get(f"{url}/_cluster/health", timeout=30).json()
    limit = {"cluster.max_shards_per_node": health["active_shards"] + health["unassigned_shards"]}
    # A day of its own, whose index is not there yet.
    day = STARTED - timedelta(days=40)
    attempts = [
        a_summary(
            **build_head(1_000 + number), started_at=day, ended_at=day, reports=[a_report(started_at=day, ended_at=day)]
        )
        for number in range(20)
    ]
    try:
        assert httpx.put(f"{url}/_cluster/settings", json={"transient": limit}, timeout=30).is_success
        publish(running, [(ATTEMPTS, attempt) for attempt in attempts])
        waits = until(running.get_index_readiness, lambda text: "can't be made" in text)
        assert "shards open" in waits
        assert "schedulerlog-attempts-2026.10.12" in waits
    finally:
        none = {"transient": {"cluster.max_shards_per_node": None}}
        httpx.put(f"{url}/_cluster/settings", json=none, timeout=30)
        httpx.delete(f"{url}/filler", timeout=30)
    settle(running)
    documents = running.get_documents({"ids": {"values": [attempt.attempt_id for attempt in attempts]}})
    assert len(documents) == 20
    assert len(running.read_topic(DEAD_LETTERS.name)) == before


def test_h5_attempts_of_the_year_9000_make_no_index(running: Pipeline) -> None:
    before = len(running.read_topic(DEAD_LETTERS.name))
    running.start_index()
    running.wait_index_ready()
    days = [STARTED.replace(year=9000) + timedelta(days=number) for number in range(25)]
    attempts = [
        a_summary(
            **build_head(2_000 + number), started_at=day, ended_at=day, reports=[a_report(started_at=day, ended_at=day)]
        )
        for number, day in enumerate(days)
    ]
    publish(running, [(ATTEMPTS, attempt) for attempt in attempts])
    settle(running)
    names = httpx.get(f"{running.servers.opensearch_url}/_cat/indices?h=index", timeout=30).text
    assert "9000" not in names
    # Of each the document of the attempt; that of the pod's state is in an index that is not daily.
    letters = running.read_topic(DEAD_LETTERS.name)[before:]
    assert len(letters) == 25
    assert all(b"more than a day ahead" in dict(letter.headers)["dead_letter_cause"] for letter in letters)


async def test_m7_an_index_that_is_deleted_is_noticed_and_made_with_its_mapping(running: Pipeline) -> None:
    # A day of its own: the other tests' documents are not touched.
    today = datetime.now(UTC) - timedelta(hours=12)
    name = index_families.ATTEMPTS.name(today)
    document = Document(name, "m7", encode_source({"@timestamp": today.isoformat()}), 1)
    client, lost = create_client(build_opensearch_connection(running.servers.opensearch_url)), list[str]()
    sink = OpenSearchSink(client, IndexMetrics("test", CollectorRegistry()))
    watch = IndexWatch(client, lost.extend)
    try:
        await sink.write([document])
        await watch.check()
        await watch.check()
        assert not lost
        await client.indices.delete(index=name)
        await watch.check()
        assert lost == [name]
        sink.forget_indices(lost)
        await sink.write([document])
        mapping = await client.indices.get_mapping(index=name)
        assert mapping[name]["mappings"]["_meta"]["schedulerlog_mapping_version"] == MAPPING_VERSION
        # Between two looks: deleted, and made again.
        await watch.check()
        await client.indices.delete(index=name)
        sink.forget_indices([name])
        await sink.write([document])
        await watch.check()
        assert lost == [name, name]
    finally:
        await sink.close()
