"""A verdict whose node state was lost is a finding; one whose state is still on its way is not."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from pipeline.index.state_audit import Ends, StateAudit
from runtime.kafka.consumer import TopicPartition
from runtime.kafka.errors import KafkaError
from schemas.codec.records import decode, decode_value, encode
from schemas.documents.devices import DevicesJudgedHead
from schemas.events import FindingReported
from schemas.topics import NODE_STATES
from tests.support.builders.events import ATTEMPT, STARTED, build_devices_judged
from tests.support.builders.node_states import EPOCH
from tests.support.fakes.index_and_topics import FakeTopics

PARTITIONS = [TopicPartition(NODE_STATES.name, number) for number in range(2)]


def derive_state_id(node: str, revision: int = 7) -> str:
    return f"default/hami-scheduler/{node}/state/{EPOCH}/{revision}"


def build_judged_nodes(*nodes: str, revision: int = 7, **fields: Any) -> DevicesJudgedHead:
    event = build_devices_judged(nodes, revision=[revision] * len(nodes), **fields)
    read = decode_value(DevicesJudgedHead, encode(event).value)
    assert isinstance(read, DevicesJudgedHead)
    assert read.id == event.id
    return read


class FakeStates:
    """The index and the topic of node states: which states are where, and how far the group has read."""

    def __init__(self, *indexed: str) -> None:
        self.indexed = set(indexed)
        self.end, self.read = 10, 0
        self.failure: Exception | None = None
        self.searched: list[list[str]] = []

    async def fetch_ends(self) -> Ends:
        if self.failure:
            raise self.failure
        return dict.fromkeys(PARTITIONS, self.end)

    async def fetch_committed(self, partitions: Sequence[TopicPartition]) -> Ends:
        return {partition: self.end if partition.partition == 0 else self.read for partition in partitions}

    async def search(self, searches: Sequence[Any]) -> list[list[dict[str, Any]]]:
        answers = []
        for _, body in searches:
            ids = body["query"]["ids"]["values"]
            self.searched.append(sorted({name.partition("@")[0] for name in ids}))
            answers.append([{"_id": name} for name in ids if name in self.indexed])
        return answers


class Audited:
    def __init__(self, states: FakeStates) -> None:
        self.states, self.topics, self.now = states, FakeTopics(), STARTED
        self.audit = StateAudit(states, self.topics, states, lambda: self.now)

    async def run_checks(self, count: int = 3) -> list[FindingReported]:
        """Run so many checks, and return the findings."""
        for _ in range(count):
            await self.audit.check()
        events = [decode(entry.value, entry.headers) for entry in self.topics.sent]
        return [event for event in events if isinstance(event, FindingReported)]


async def test_a_state_that_the_index_has_is_no_finding() -> None:
    states = FakeStates(derive_state_id("node1"), derive_state_id("node2"))
    states.read = 10
    audited = Audited(states)
    audited.audit.refer(build_judged_nodes("node1", "node2"))
    assert await audited.run_checks() == []
    assert states.searched == [[derive_state_id("node1"), derive_state_id("node2")]]


async def test_a_state_in_the_index_of_a_month_is_there_under_the_day_on_which_it_was_written() -> None:
    for days, is_there in ((-1, True), (0, True), (1, True), (-2, False)):
        day = (STARTED + timedelta(days=days)).day
        states = FakeStates(f"{derive_state_id('node1')}@{day:02}")
        states.read = 10
        audited = Audited(states)
        audited.audit.refer(build_judged_nodes("node1"))
        assert (await audited.run_checks() == []) == is_there


async def test_a_lost_state_is_one_finding_of_the_attempt_with_the_states_named() -> None:
    states = FakeStates(derive_state_id("node2"))
    states.read = 10
    audited = Audited(states)
    audited.audit.refer(build_judged_nodes("node1", "node2", "node3"))
    (finding,) = await audited.run_checks(5)
    assert (finding.finding, finding.attempt_id) == ("StateMissing", ATTEMPT["attempt_id"])
    assert (finding.found_at, finding.numbers) == (STARTED, {"missing_states": 2})
    assert finding.evidence == [
        f"the verdicts refer to {derive_state_id(node)}, which is not in the index" for node in ("node1", "node3")
    ]


async def test_nothing_is_looked_for_before_the_group_has_read_as_far_as_the_topic_went() -> None:
    audited = Audited(FakeStates())
    audited.audit.refer(build_judged_nodes("node1"))
    assert await audited.run_checks(5) == []
    assert audited.states.searched == []
    audited.states.read = 10
    assert len(await audited.run_checks(2)) == 1


async def test_a_state_that_only_the_second_search_finds_is_no_finding() -> None:
    states = FakeStates()
    states.read = 10
    audited = Audited(states)
    audited.audit.refer(build_judged_nodes("node1"))
    assert await audited.run_checks(2) == []
    states.indexed.add(derive_state_id("node1"))
    assert await audited.run_checks(3) == []


async def test_a_revision_is_looked_for_once_and_the_next_one_again() -> None:
    states = FakeStates(derive_state_id("node1", 7), derive_state_id("node1", 8))
    states.read = 10
    audited = Audited(states)
    for revision in (7, 7, 8):
        audited.audit.refer(build_judged_nodes("node1", revision=revision))
        await audited.run_checks()
    assert states.searched == [[derive_state_id("node1", 7)], [derive_state_id("node1", 8)]]


async def test_verdicts_without_a_state_and_those_of_days_before_are_not_checked() -> None:
    audited = Audited(FakeStates())
    audited.states.read = 10
    audited.audit.refer(build_judged_nodes("node1", revision=-1))
    audited.now = STARTED + timedelta(days=1, seconds=1)
    audited.audit.refer(build_judged_nodes("node2"))
    assert await audited.run_checks(5) == []


async def test_while_kafka_does_not_answer_nothing_is_forgotten() -> None:
    audited = Audited(FakeStates())
    audited.states.read, audited.states.failure = 10, KafkaError()
    audited.audit.refer(build_judged_nodes("node1"))
    with pytest.raises(KafkaError):
        await audited.audit.check()
    audited.states.failure = None
    assert len(await audited.run_checks()) == 1


async def test_after_a_rebalance_what_was_not_checked_is_left_to_the_next_owner() -> None:
    audited = Audited(FakeStates())
    audited.audit.refer(build_judged_nodes("node1"))
    await audited.run_checks(1)
    audited.states.read = 10
    audited.audit.clear()
    assert await audited.run_checks(5) == []
