"""Watches of waiting pods over two topics: replicas read them side by side in orders of their own."""

from dataclasses import dataclass, field
from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st

from api.memory.change_log import Offsets
from api.memory.latest_attempts import CachedAttempt, Taken
from api.memory.wait_log import OF_ATTEMPTS, OF_PODS, WaitLog
from api.watch.views import choose_pending_type
from schemas.documents.pod_states import PLACED, WAITING, PodStateDocument
from tests.support.stress import IS_STRESS

PARTITIONS = 2
LANES = 2 * PARTITIONS


@dataclass(frozen=True)
class Fact:
    """A record about a pod, whose partition is its number: at a time, the pod waits or has a node."""

    pod: int
    topic: int
    moment: int
    waits: bool

    @property
    def version(self) -> int:
        return self.moment * 4_000_000 + (3 if self.topic == OF_PODS else 1 if self.waits else 2)


@dataclass
class Replica:
    """Reads the partitions of both topics, each in its own order."""

    lanes: list[list[Fact]]
    log: WaitLog = field(default_factory=lambda: WaitLog(1_000, 10**9))
    read: list[int] = field(default_factory=lambda: [0] * LANES)
    started_at: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for topic in (OF_ATTEMPTS, OF_PODS):
            self.log.begin(dict.fromkeys(range(PARTITIONS), 0), range(PARTITIONS), topic)

    def read_next(self, lane: int) -> None:
        offset = self.read[lane]
        if offset == len(self.lanes[lane]):
            return
        fact, partition = self.lanes[lane][offset], lane // 2
        if fact.topic == OF_PODS:
            fields = {"cluster": "c", "namespace": "n", "pod": str(fact.pod), "pod_uid": None}
            document = PodStateDocument(
                f"c/n/{fact.pod}", fact.version, fields | {"state": WAITING if fact.waits else PLACED}
            )
            self.log.read_observation(partition, offset, document)
        else:
            status = "failed" if fact.waits else "succeeded"
            attempt = CachedAttempt("c", f"{lane}/{offset}", 1, float(fact.moment), (b"{}",), status=status)
            is_latest = fact.moment > self.started_at.get(fact.pod, -1)
            self.started_at[fact.pod] = max(fact.moment, self.started_at.get(fact.pod, -1))
            taken = Taken(attempt, None, is_latest=is_latest, size_bytes=2)
            self.log.read_attempt(partition, offset, taken, f"c/n/{fact.pod}")
        self.read[lane] += 1

    def read_all(self) -> None:
        for lane in range(LANES):
            for _ in self.lanes[lane]:
                self.read_next(lane)


@dataclass
class Client:
    """Watches one replica after the other, from the position of its last event."""

    offsets: Offsets = (0,) * LANES
    waiting: set[str] = field(default_factory=set)
    received: list[tuple[int, int]] = field(default_factory=list)

    def watch(self, log: WaitLog, limit: int | None = None) -> None:
        subscription = log.subscribe(("c",), self.offsets)
        for change in list(log.take(subscription))[:limit]:
            kind = choose_pending_type(change, is_wanted=True)
            self.waiting = self.waiting - {change.pod[-1]} | (
                {change.pod[-1]} if kind in ("ADDED", "MODIFIED") else set()
            )
            self.received.append((change.partition, change.offset))
            assert all(new >= old for new, old in zip(change.offsets, self.offsets, strict=True)), (
                "a position went back"
            )
            self.offsets = change.offsets
        log.unsubscribe(subscription)


def list_waiting(lanes: list[list[Fact]]) -> set[str]:
    """List the pods that wait by their latest facts: the second calculation."""
    latest: dict[int, Fact] = {}
    for fact in (fact for lane in lanes for fact in lane):
        latest[fact.pod] = max(fact, latest.get(fact.pod, fact), key=lambda entry: entry.version)
    return {str(pod) for pod, fact in latest.items() if fact.waits}


@settings(max_examples=10_000 if IS_STRESS else 150)
@given(data=st.data())
def test_who_watches_one_replica_after_the_other_knows_what_waits_and_gets_nothing_twice(data: st.DataObject) -> None:
    lanes: list[list[Fact]] = [[] for _ in range(LANES)]
    replicas, client, clock = [Replica(lanes) for _ in range(2)], Client(), count(100)
    for _ in range(data.draw(st.integers(1, 6))):
        for pod, topic, waits, delay in data.draw(
            st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1), st.booleans(), st.integers(0, 3)), max_size=5)
        ):
            # A record may come some time after what it is about; no two of them are about the same time.
            lanes[2 * pod + topic].append(Fact(pod, topic, 101 * next(clock) - 1_000 * delay, waits))
        for replica in replicas:
            for lane in data.draw(st.lists(st.integers(0, LANES - 1), max_size=8)):
                replica.read_next(lane)
        replica = data.draw(st.sampled_from(replicas))
        if replica.log.has_read(client.offsets):
            client.watch(replica.log, data.draw(st.integers(0, 3)))
    for replica in replicas:
        replica.read_all()
    client.watch(data.draw(st.sampled_from(replicas)).log)
    assert client.waiting == list_waiting(lanes)
    assert len(set(client.received)) == len(client.received), "a change was sent twice"
