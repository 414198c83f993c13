"""The present devices of every cluster, from the topic of node states, in the columns that the fit judges."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from api.memory.lru import Lru
from api.memory.topic_replay import replay
from engine.fit.device_config import follow_release
from engine.fit.devices.as_of import put
from engine.fit.devices.cluster_state import ClusterColumns
from engine.hami.releases import LATEST, HamiRelease, choose_rules
from engine.hami.vendors import ONLY_NVIDIA, Vendors
from runtime.kafka.record import record_time
from runtime.log_once import LoggedProblem
from runtime.settings.kafka_connection import KafkaConnection
from runtime.signals import end
from schemas.codec.records import Rejected, decode, decode_value
from schemas.events import NodeStateChanged
from schemas.events.node_states import StateRank, rank_state
from schemas.topics import NODE_STATES

MAX_BYTES: Final = 32 * 1024**2
"""Size of the latest states of some 20,000 nodes with eight devices."""
_ENTRY_BYTES: Final = 500
"""Size of an entry without its record."""


class RecentStates:
    """States written or requested last, at most ``max_bytes`` in all."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._values: Lru[str, bytes] = Lru(max_bytes // _ENTRY_BYTES, max_bytes)

    def put(self, state: NodeStateChanged, value: bytes) -> None:
        """Store a state. ``value``: the JSON of its record."""
        self._values.put(state.id, value, len(value) + _ENTRY_BYTES, state.observed_at.timestamp())

    def find(self, ids: Iterable[str]) -> dict[str, NodeStateChanged]:
        """Find states by their ids; without the missing ones."""
        now = time.time()
        values = {name: self._values.get(name, now) for name in ids}
        decoded = {name: decode_value(NodeStateChanged, value) for name, value in values.items() if value is not None}
        return {name: state for name, state in decoded.items() if isinstance(state, NodeStateChanged)}


log = logging.getLogger(__name__)

OBSERVE_SECONDS: Final = 60.0
"""Interval at which releases are observed: HAMi is upgraded rarely."""
ReadReleases = Callable[[], Awaitable[Mapping[str, HamiRelease]]]
"""Reads the release of HAMi of each cluster; those that nobody reports are left out."""
WRITTEN_AGAIN: Final = timedelta(hours=25)
"""Time within which a valid state is written again: once a day, and an hour more for a slow writer."""


@dataclass(slots=True)
class ClusterDevices:
    """Devices by cluster. lock: held by readers that judge in another thread, and by the consumer while it writes."""

    vendors: Vendors = ONLY_NVIDIA
    columns: dict[str, ClusterColumns] = field(default_factory=dict)
    """Columns by cluster."""
    releases: dict[str, HamiRelease] = field(default_factory=dict)
    """Releases of HAMi by cluster, whose rules decide there; v2.10 in all others."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    is_caught_up: bool = False
    """True once all records that the topic had at the start have been read."""
    revisions: Counter[str] = field(default_factory=Counter)
    """Cluster to the number of its devices' changes."""
    lost: dict[str, set[str]] = field(default_factory=dict)
    """Cluster to nodes that registered devices and now register none, or that are deleted."""
    _ranks: dict[tuple[str, str], StateRank] = field(default_factory=dict)
    _withheld: dict[str, dict[str, tuple[str, str]]] = field(default_factory=dict)
    """Cluster to nodes that a scheduler leaves to another one, with its name and the cause."""

    def find_columns(self, cluster: str) -> ClusterColumns | None:
        """Find the present devices of a cluster; None if they are not known yet."""
        # During the replay, nodes that are still missing would count as full.
        return self.columns.get(cluster) if self.is_caught_up else None

    def get_withheld(self, cluster: str) -> dict[str, dict[str, str]]:
        """Get the nodes that schedulers leave to others: by scheduler and node, the cause."""
        schedulers: dict[str, dict[str, str]] = {}
        for node, (scheduler, cause) in self._withheld.get(cluster, {}).items():
            schedulers.setdefault(scheduler, {})[node] = cause
        return schedulers

    def get_vendors(self, cluster: str) -> Vendors:
        """Get the table of vendors with the rules of the cluster's release."""
        return follow_release(self.vendors, self.releases.get(cluster, LATEST))

    def follow(self, releases: Mapping[str, HamiRelease]) -> bool:
        """Follow these releases. Returns true if rules changed: then all states have to be taken again."""
        clusters = {*releases, *self.releases}
        before, after = (
            {cluster: choose_rules(chosen.get(cluster, LATEST)) for cluster in clusters}
            for chosen in (self.releases, releases)
        )
        self.releases = dict(releases)
        return before != after

    def forget(self) -> None:
        """Forget all states, which are read again."""
        self.is_caught_up = False
        self.revisions.update(self.columns.keys())
        for states in (self.columns, self.lost, self._ranks, self._withheld):
            states.clear()

    def take(self, state: NodeStateChanged, recorded_at: datetime) -> None:
        """Replace the state of its node, unless that is newer. ``recorded_at``: the broker's time of the record."""
        # A state without a node has devices whose node a log does not name.
        if not state.node:
            return
        key, rank = (state.cluster, state.node), rank_state(state, recorded_at)
        previous = self._ranks.get(key)
        # A scheduler that has not written for long is gone, and what a reader of logs says counts again.
        if previous and rank < previous and rank.written_at - previous.written_at < WRITTEN_AGAIN:
            return
        self._ranks[key] = rank
        self.revisions[state.cluster] += 1
        lost = self.lost.setdefault(state.cluster, set())
        (lost.discard if state.uuid else lost.add)(state.node)
        withheld = self._withheld.setdefault(state.cluster, {})
        withheld.pop(state.node, None)
        if state.withheld_cause:
            withheld[state.node] = state.scheduler, state.withheld_cause
        put(self.columns.setdefault(state.cluster, ClusterColumns(self.get_vendors(state.cluster))), state)


class NodeStatesTopic:
    """Consumer that fills ``devices`` and ``recent`` from the compacted topic, at every start from its beginning."""

    def __init__(
        self,
        kafka: KafkaConnection,
        devices: ClusterDevices,
        recent: RecentStates,
        read_releases: ReadReleases,
        unavailable: tuple[type[Exception], ...],
    ) -> None:
        """Fill ``devices`` and ``recent``. ``unavailable``: errors of ``read_releases`` that change nothing."""
        self._kafka, self._devices, self._recent = kafka, devices, recent
        self._read_releases, self._unavailable = read_releases, unavailable
        self._rejects = LoggedProblem(partial(log.warning, "node states: %s; the first: %s"))

    async def follow(self) -> None:
        """Read until cancelled; after a failure, or when HAMi's rules have changed, again from the beginning."""
        await self._observe()
        while True:
            replaying = asyncio.create_task(replay(self._kafka, NODE_STATES, self._take_all, self._note_caught_up))
            try:
                while not await self._observe():
                    await asyncio.wait({replaying}, timeout=OBSERVE_SECONDS)
                    if replaying.done():
                        replaying.result()
            finally:
                await end([replaying])
            async with self._devices.lock:
                self._devices.forget()

    async def _observe(self) -> bool:
        """Observe the releases, and tell whether their rules are others than before."""
        try:
            releases = await self._read_releases()
        except self._unavailable:
            return False
        has_changed = self._devices.follow(releases)
        if has_changed:
            log.info("devices are judged by the rules of HAMi %s", ", ".join(sorted({*map(str, releases.values())})))
        return has_changed

    def _note_caught_up(self) -> None:
        self._devices.is_caught_up = True

    async def _take_all(self, records: Sequence[Any]) -> None:
        async with self._devices.lock:
            for record in records:
                self._take(record)

    def _take(self, record: Any) -> None:
        # A tombstone has no value: only compaction writes it, for a deleted node.
        event = decode(record.value, record.headers) if record.value is not None else None
        if isinstance(event, NodeStateChanged):
            self._devices.take(event, record_time(record))
            self._recent.put(event, record.value)
        elif isinstance(event, Rejected):
            self._rejects.note("records that are not node states are left out", event)
