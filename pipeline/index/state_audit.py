"""Verdicts on devices that refer to a lost node state: the first attempt that does is a finding, ``StateMissing``.

A scheduler publishes a state before the first verdict that refers to it. So when a verdict has been read, its states
lie before the ends that the topic of node states has then; and once the group of index writers has committed up to
these ends, the index has them, or never will.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple, Protocol, TypeAlias

from pipeline.sinks.msearch import Searchable, in_indices
from runtime.kafka.consumer import TopicPartition
from runtime.kafka.errors import UNAVAILABLE
from runtime.kafka.record import Outgoing, about_attempt
from schemas.codec.records import encode
from schemas.documents.devices import JudgedNodes
from schemas.events import NO_STATE, FindingReported
from schemas.events.node_states import state_id
from schemas.indices import NODE_STATES
from schemas.topics import FINDINGS
from schemas.topics import NODE_STATES as NODE_STATES_TOPIC

logger = logging.getLogger(__name__)

STATE_MISSING: Final = "StateMissing"
AUDIT_SECONDS: Final = 5.0
"""Pause between two looks, several times as long as a refresh of the index takes."""
_MAX_WAITING: Final = 200_000
"""References that are not checked yet: with 5,000 nodes those of forty first attempts. Above it new ones are not
checked."""
_MAX_KNOWN: Final = 50_000
"""Nodes of which the latest revision is remembered."""
_IDS_A_SEARCH: Final = 1_000
_DAYS: Final = 3
"""A state is written into the index of at most so many days while verdicts of one day refer to it."""
_EVIDENCE: Final = 5
_CHECKED: Final = NODE_STATES_TOPIC.compacted_after or timedelta(0)

Ends: TypeAlias = Mapping[TopicPartition, int]


class _Life(NamedTuple):
    """One life of a scheduler, which counts revisions of its own."""

    cluster: str
    scheduler: str
    epoch: int


class StatePositions(Protocol):
    """Where the topic of node states ends, and how far the index writers have committed it. Both raise
    ``runtime.kafka.errors.UNAVAILABLE``."""

    def ends(self) -> Awaitable[Ends]: ...
    def committed(self, partitions: Sequence[TopicPartition]) -> Awaitable[Ends]: ...


class FindingsTopic(Protocol):
    async def send(self, outgoing: Sequence[Outgoing]) -> object: ...


class StateAudit:
    """``refer`` takes verdicts as they are read; ``check``, called again and again, publishes findings."""

    def __init__(
        self, index: Searchable, topics: FindingsTopic, positions: StatePositions, now: Callable[[], datetime]
    ) -> None:
        self._index, self._topics, self._positions, self._now = index, topics, positions, now
        self._known: dict[_Life, dict[str, int]] = {}
        """Node to the latest revision that was referred to."""
        self._waiting: dict[str, JudgedNodes] = {}
        """By the id of a state: the first verdict that refers to it."""
        self._checked: dict[str, JudgedNodes] = {}
        """The same, of those whose states lie before ``_ends``."""
        self._ends: Ends = {}
        self._missed: set[str] = set()
        """States that the last look did not find: a refresh of the index may have been due."""

    def refer(self, event: JudgedNodes) -> None:
        """Note the states that the verdict refers to, unless the index is known to have them."""
        # The topic keeps every state for a day: of an older verdict that is read again, some may be gone by right.
        if event.started_at < self._now() - _CHECKED:
            return
        known = self._known.setdefault(_Life(event.cluster, event.scheduler, event.epoch), {})
        # Most of thousands of nodes have not changed since the attempt before.
        pairs = zip(event.nodes, event.revision, strict=False)
        changed = [(node, revision) for node, revision in pairs if known.get(node) != revision]
        for node, revision in changed:
            if revision != NO_STATE and len(self._waiting) < _MAX_WAITING:
                known[node] = revision
                self._waiting.setdefault(state_id(event.cluster, event.scheduler, node, event.epoch, revision), event)
        # Forgotten, they are only looked for once more.
        if changed and sum(map(len, self._known.values())) > _MAX_KNOWN:
            self._known.clear()

    def clear(self) -> None:
        """Partitions have moved: what was read and not written is read again, by this process or another."""
        self._known.clear()
        self._waiting, self._checked, self._missed = {}, {}, set()

    async def check(self) -> None:
        """Take one step: note where the topic ends, or look for states once the group has read so far. Raises
        ``runtime.kafka.errors.UNAVAILABLE``."""
        if not self._checked and self._waiting:
            taken, self._waiting = self._waiting, {}
            try:
                # Behind the verdicts that were taken: their states lie before these ends.
                self._ends = await self._positions.ends()
            except BaseException:
                self._waiting = taken | self._waiting
                raise
            self._checked = taken
        elif self._checked and await self._is_read():
            await self._look()

    async def _is_read(self) -> bool:
        committed = await self._positions.committed(list(self._ends))
        return all(committed[partition] >= end for partition, end in self._ends.items())

    async def _look(self) -> None:
        checked = self._checked
        missing = set(checked) - await self._found(sorted(checked))
        # Twice in a row: a search sees what was written before the latest refresh.
        lost = missing & self._missed
        findings = _findings({name: checked[name] for name in sorted(lost)})
        await self._topics.send([Outgoing(FINDINGS.name, encode(finding)) for finding in findings])
        # `clear` may have replaced it meanwhile.
        if checked is self._checked:
            self._checked = {name: checked[name] for name in missing - lost}
            self._missed = missing - lost

    async def _found(self, ids: Sequence[str]) -> set[str]:
        cuts = [ids[start : start + _IDS_A_SEARCH] for start in range(0, len(ids), _IDS_A_SEARCH)]
        answers = await self._index.search([(in_indices(NODE_STATES.alias), _by_ids(cut)) for cut in cuts])
        return {str(hit["_id"]) for hits in answers for hit in hits}


def _by_ids(ids: Sequence[str]) -> dict[str, object]:
    return {
        "query": {"ids": {"values": list(ids)}},
        "size": _DAYS * len(ids),
        "_source": False,
        "track_total_hits": False,
    }


def _findings(lost: Mapping[str, JudgedNodes]) -> list[FindingReported]:
    """A finding for each attempt; ``lost`` has the verdicts by the id of the state, in the order of the ids."""
    by_attempt: dict[str, list[str]] = {}
    events = {event.attempt_id: event for event in lost.values()}
    for name, event in lost.items():
        by_attempt.setdefault(event.attempt_id, []).append(name)
    for attempt_id, names in by_attempt.items():
        logger.warning(
            "attempt %s refers to %d node states that were lost: %s", attempt_id, len(names), names[0],
            extra=about_attempt(events[attempt_id]),
        )  # fmt: skip
    return [_finding(events[attempt_id], names) for attempt_id, names in by_attempt.items()]


def _finding(event: JudgedNodes, names: Sequence[str]) -> FindingReported:
    return FindingReported(
        cluster=event.cluster,
        attempt_id=event.attempt_id,
        pod=event.pod,
        scheduler=event.scheduler,
        started_at=event.started_at,
        finding=STATE_MISSING,
        # Never the clock: found again after a restart, it is the same finding.
        found_at=event.started_at,
        node="",
        numbers={"missing_states": len(names)},
        evidence=[f"the verdicts refer to {name}, which is not in the index" for name in names[:_EVIDENCE]],
        evidence_pods=[str(event.pod)] * len(names[:_EVIDENCE]),
    )


async def auditing(audit: StateAudit) -> None:
    """Check until cancelled; while Kafka does not answer, later."""
    while True:
        await asyncio.sleep(AUDIT_SECONDS)
        try:
            async with asyncio.timeout(10 * AUDIT_SECONDS):
                await audit.check()
        except UNAVAILABLE as error:
            logger.info("node states are checked later: %s: %s", type(error).__name__, error)
