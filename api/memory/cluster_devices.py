"""The devices of every cluster as they are now, from the topic of node states, in the columns that the fit judges."""

import asyncio
import logging
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from api.memory.recent_states import RecentStates
from engine.fit.devices.as_of import put
from engine.fit.devices.cluster_state import ClusterColumns
from engine.hami.vendors import ONLY_NVIDIA, Vendors
from runtime.errors import NotProvisionedError
from runtime.kafka.consumer import Connection, connected, new_consumer, reconnecting
from runtime.kafka.topics import require
from runtime.log_once import LoggedProblem
from runtime.settings.kafka_connection import KafkaConnection
from schemas.codec.records import Rejected, decode
from schemas.events import NodeStateChanged
from schemas.topics import NODE_STATES

log = logging.getLogger(__name__)

WRITTEN_AGAIN: Final = timedelta(hours=25)
"""A state that still holds is written once a day; an hour more for a writer that is behind."""
POLL_MS: Final = 1_000
MAX_POLL_RECORDS: Final = 200
PAUSE_SECONDS: Final = 30.0

_Rank = tuple[int, datetime, int]


@dataclass(slots=True)
class ClusterDevices:
    """lock: held by those who judge, which takes a while in another thread, and by the consumer while it writes."""

    vendors: Vendors = ONLY_NVIDIA
    columns: dict[str, ClusterColumns] = field(default_factory=dict)
    """By cluster."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    is_caught_up: bool = False
    """Everything that was on the topic at the start has been read."""
    revisions: Counter[str] = field(default_factory=Counter)
    """By cluster: another number whenever its devices are other ones than before."""
    lost: dict[str, set[str]] = field(default_factory=dict)
    """By cluster: nodes that registered devices and register none now, or are gone themselves."""
    _ranks: dict[tuple[str, str], _Rank] = field(default_factory=dict)

    def known(self, cluster: str) -> ClusterColumns | None:
        """The devices of a cluster as they are now; None where they are not known, or not yet."""
        # While the topic is read at the start, nodes that are missing yet would count as full.
        return self.columns.get(cluster) if self.is_caught_up else None

    def take(self, state: NodeStateChanged) -> None:
        """Put the state in place of the one that is known of its node, unless that is newer."""
        # A state without a node has devices of which a log does not say the node.
        if not state.node:
            return
        key, rank = (state.cluster, state.node), (state.epoch, state.observed_at, state.revision)
        known = self._ranks.get(key)
        # The scheduler itself before readers of logs, whose epoch is 0, as long as it writes.
        if known and rank < known and state.observed_at - known[1] < WRITTEN_AGAIN:
            return
        self._ranks[key] = rank
        self.revisions[state.cluster] += 1
        lost = self.lost.setdefault(state.cluster, set())
        (lost.discard if state.uuid else lost.add)(state.node)
        put(self.columns.setdefault(state.cluster, ClusterColumns(self.vendors)), state)


class NodeStatesTopic:
    """Fills ``devices`` and ``recent`` from the topic, which is compacted: from its beginning, at every start."""

    def __init__(self, kafka: KafkaConnection, devices: ClusterDevices, recent: RecentStates) -> None:
        self._kafka, self._devices, self._recent = kafka, devices, recent
        self._rejects = LoggedProblem(partial(log.warning, "node states: %s; the first: %s"))

    async def follow(self) -> None:
        """Read until cancelled, again from the beginning after a failure."""
        connection = Connection()
        while True:
            try:
                await reconnecting(partial(self._session, connection), connection)
            except NotProvisionedError as error:
                log.warning("node states: %s; trying again", error)
                await asyncio.sleep(PAUSE_SECONDS)

    async def _session(self, connection: Connection) -> None:
        # As for the attempts: a request for the metadata of one topic may create it.
        async with connected(new_consumer(self._kafka)) as consumer:
            require([NODE_STATES.name], await consumer.topics())
        async with connected(new_consumer(self._kafka, NODE_STATES.name)) as consumer:
            await consumer.seek_to_beginning()
            ends = await consumer.end_offsets(consumer.assignment())
            connection.established()
            while True:
                polled = await consumer.getmany(timeout_ms=POLL_MS, max_records=MAX_POLL_RECORDS)
                async with self._devices.lock:
                    for records in polled.values():
                        for record in records:
                            self._take(record)
                if not self._devices.is_caught_up:
                    behind = [await consumer.position(partition) < end for partition, end in ends.items()]
                    self._devices.is_caught_up = not any(behind)

    def _take(self, record: Any) -> None:
        # A tombstone has no value: compaction alone writes it, for a node that is gone.
        event = decode(record.value, record.headers) if record.value is not None else None
        if isinstance(event, NodeStateChanged):
            self._devices.take(event)
            self._recent.put(event, record.value)
        elif isinstance(event, Rejected):
            self._rejects.note("records that are not node states are left out", event)
