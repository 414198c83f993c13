"""Node states on a real broker and index: shared between processes, killed at any time, each stored once a day."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import timedelta

import pytest
from aiokafka import AIOKafkaProducer

from schemas.codec.records import EncodedRecord, encode, encode_value
from schemas.documents.node_states import node_state_of
from schemas.events import NodeStateChanged
from schemas.topics import DEAD_LETTERS, NODE_STATES
from tests.support.builders.node_states import OBSERVED, a_node_state, a_random_state
from tests.support.harness.pipeline_process import Pipeline
from tests.support.waiting import until

GROUP = "schedulerlog-node-states"
NODES = [f"node-{number}" for number in range(24)]


@pytest.fixture
def running(provisioned: Pipeline) -> Iterator[Pipeline]:
    yield provisioned
    provisioned.stop_all()


def changes(revisions: int) -> list[NodeStateChanged]:
    """Each node changes so often, a second apart."""
    return [
        a_random_state(node, 2, seed=revision, revision=revision, observed_at=OBSERVED + timedelta(seconds=revision))
        for revision in range(revisions)
        for node in NODES
    ]


def send(running: Pipeline, records: Sequence[EncodedRecord]) -> None:
    async def sent() -> None:
        async with AIOKafkaProducer(bootstrap_servers=running.servers.bootstrap_servers) as producer:
            for record in records:
                await producer.send(NODE_STATES.name, record.value, key=record.key, headers=record.headers)
            await producer.flush()

    asyncio.run(sent())


def stored(running: Pipeline) -> dict[str, bytes]:
    """Id to event, encoded, of every state in the index."""
    documents = running.documents(alias="schedulerlog-node-states")
    events = {name: node_state_of(document) for name, document in documents.items()}
    return {name: encode_value(event) for name, event in events.items()}


def test_two_processes_share_the_states_and_a_kill_loses_and_repeats_nothing(running: Pipeline) -> None:
    expected = {state.id: encode_value(state) for state in changes(20)}
    running.start_node_states("--metrics-address", str(running.port))
    running.wait_ready("node-states")
    running.processes.start("second", "pipeline", "node-states")
    records = [encode(state) for state in changes(20)]
    send(running, records[:200])
    running.processes.kill("node-states")
    send(running, records[200:])
    assert until(lambda: stored(running), lambda found: found == expected, seconds=60) == expected
    running.settle(GROUP, (NODE_STATES,))
    assert not [each for each in running.topic(DEAD_LETTERS.name) if each.key == b"node-0"]


def test_a_revision_that_is_used_twice_and_what_cant_be_read_are_dead_letters(running: Pipeline) -> None:
    first, second = (a_node_state("twice", 1, slots_used=[slots]) for slots in (1, 2))
    broken = EncodedRecord(b"twice", b"{", encode(first).headers)
    running.start_node_states("--metrics-address", str(running.port))
    running.wait_ready("node-states")
    send(running, [encode(first), encode(second), broken])
    running.settle(GROUP, (NODE_STATES,))
    dead = {each.value: dict(each.headers) for each in running.topic(DEAD_LETTERS.name) if each.key == b"twice"}
    assert dead.keys() == {encode(second).value, b"{"}
    cause = dead[encode(second).value]["dead_letter_cause"]
    assert b"another state of the node has this epoch and revision" in cause
    assert stored(running)[first.id] == encode_value(first)
