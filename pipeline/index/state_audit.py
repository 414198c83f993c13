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

from pipeline.sinks.msearch import Searchable, select_indices
from runtime.kafka.consumer import TopicPartition
from runtime.kafka.errors import UNAVAILABLE
from runtime.kafka.record import identify_attempt
from schemas.codec.records import EncodedRecord, encode
from schemas.documents.devices import DevicesJudgedHead
from schemas.events import NO_STATE, FindingReported
from schemas.events.node_states import build_state_id
from schemas.indices import NODE_STATES
from schemas.topics import FINDINGS
from schemas.topics import NODE_STATES as NODE_STATES_TOPIC

logger = logging.getLogger(__name__)

STATE_MISSING: Final = "StateMissing"
AUDIT_SECONDS: Final = 5.0
"""Pause between two looks, several times as long as a refresh of the index takes."""
_MAX_WAITING: Final = 200_000
"""Limit of references that are not checked yet: with 5,000 nodes the references of forty first attempts. The audit
skips new ones above it."""
_MAX_KNOWN: Final = 50_000
"""Limit of nodes whose latest revision is remembered."""
_IDS_A_SEARCH: Final = 1_000
_DAYS: Final = (-1, 0, 1)
"""Days from that of a verdict on which the states were written to which it refers."""
_EVIDENCE: Final = 5
_CHECKED: Final = NODE_STATES_TOPIC.compacted_after or timedelta(0)

Ends: TypeAlias = Mapping[TopicPartition, int]


class _Life(NamedTuple):
    """One life of a scheduler, which counts revisions of its own."""

    cluster: str
    scheduler: str
    epoch: int


class StatePositions(Protocol):
    """End of the topic of node states, and the offsets that the index writers have committed. Both raise
    ``runtime.kafka.errors.UNAVAILABLE``."""

    def fetch_ends(self) -> Awaitable[Ends]: ...
    def fetch_committed(self, partitions: Sequence[TopicPartition]) -> Awaitable[Ends]: ...


class FindingsTopic(Protocol):
    async def send(self, outgoing: Sequence[EncodedRecord]) -> object: ...


class StateAudit:
    """``refer`` takes verdicts as they are read; ``check``, called again and again, publishes findings."""

    def __init__(
        self, index: Searchable, topics: FindingsTopic, positions: StatePositions, now: Callable[[], datetime]
    ) -> None:
        self._index, self._topics, self._positions, self._now = index, topics, positions, now
        self._revisions: dict[_Life, dict[str, int]] = {}
        """The latest revision that a verdict referred to, by node."""
        self._waiting: dict[str, DevicesJudgedHead] = {}
        """The first verdict that refers to a state, by the id of the state."""
        self._checked: dict[str, DevicesJudgedHead] = {}
        """Like ``_waiting``, for states that the topic has already passed (``_ends``)."""
        self._ends: Ends = {}
        self._missed: set[str] = set()
        """States that the last search did not find: a refresh of the index may have been due."""

    def refer(self, event: DevicesJudgedHead) -> None:
        """Note the states that the verdict refers to, unless the index is certain to have them."""
        # The topic keeps every state for a day: of an older verdict that is read again, some may be gone by right.
        if event.started_at < self._now() - _CHECKED:
            return
        revisions = self._revisions.setdefault(_Life(event.cluster, event.scheduler, event.epoch), {})
        # Most of thousands of nodes have not changed since the attempt before.
        pairs = zip(event.nodes, event.revision, strict=False)
        changed = [(node, revision) for node, revision in pairs if revisions.get(node) != revision]
        for node, revision in changed:
            if revision != NO_STATE and len(self._waiting) < _MAX_WAITING:
                revisions[node] = revision
                self._waiting.setdefault(
                    build_state_id(event.cluster, event.scheduler, node, event.epoch, revision), event
                )
        # Forgotten, they are only looked for once more.
        if changed and sum(map(len, self._revisions.values())) > _MAX_KNOWN:
            self._revisions.clear()

    def clear(self) -> None:
        """Forget everything, because partitions have moved: this process or another reads the unwritten records
        again."""
        self._revisions.clear()
        self._waiting, self._checked, self._missed = {}, {}, set()

    async def check(self) -> None:
        """Take one step: note where the topic ends, or look for states once the group has read so far. Raises
        ``runtime.kafka.errors.UNAVAILABLE``."""
        if not self._checked and self._waiting:
            taken, self._waiting = self._waiting, {}
            try:
                # Behind the verdicts that were taken: their states lie before these ends.
                self._ends = await self._positions.fetch_ends()
            except BaseException:
                self._waiting = taken | self._waiting
                raise
            self._checked = taken
        elif self._checked and await self._is_read():
            await self._look()

    async def _is_read(self) -> bool:
        committed = await self._positions.fetch_committed(list(self._ends))
        return all(committed[partition] >= end for partition, end in self._ends.items())

    async def _look(self) -> None:
        checked = self._checked
        missing = set(checked) - await self._find_states(checked)
        # Twice in a row: a search sees what was written before the latest refresh.
        lost = missing & self._missed
        findings = _make_findings({name: checked[name] for name in sorted(lost)})
        await self._topics.send([encode(finding, FINDINGS.name) for finding in findings])
        # `clear` may have replaced it meanwhile.
        if checked is self._checked:
            self._checked = {name: checked[name] for name in missing - lost}
            self._missed = missing - lost

    async def _find_states(self, checked: Mapping[str, DevicesJudgedHead]) -> set[str]:
        states = {document: state for state in sorted(checked) for document in _list_ids(state, checked[state])}
        ids = list(states)
        cuts = [ids[start : start + _IDS_A_SEARCH] for start in range(0, len(ids), _IDS_A_SEARCH)]
        answers = await self._index.search([(select_indices(NODE_STATES.alias), _search_ids(cut)) for cut in cuts])
        return {states[str(hit["_id"])] for hits in answers for hit in hits}


def _list_ids(state: str, verdict: DevicesJudgedHead) -> list[str]:
    """List the ids that the state may have in the index."""
    days = [verdict.started_at + timedelta(days=day) for day in _DAYS]
    return list(dict.fromkeys(state + end for day in days for _, end in NODE_STATES.list_places(day)))


def _search_ids(ids: Sequence[str]) -> dict[str, object]:
    return {
        "query": {"ids": {"values": list(ids)}},
        # In an index a day, a state has the same id in each.
        "size": len(_DAYS) * len(ids),
        "_source": False,
        "track_total_hits": False,
    }


def _make_findings(lost: Mapping[str, DevicesJudgedHead]) -> list[FindingReported]:
    """Make a finding for each attempt; ``lost`` has the verdicts by the id of the state, in the order of the ids."""
    by_attempt: dict[str, list[str]] = {}
    events = {event.attempt_id: event for event in lost.values()}
    for name, event in lost.items():
        by_attempt.setdefault(event.attempt_id, []).append(name)
    for attempt_id, names in by_attempt.items():
        logger.warning(
            "attempt %s refers to %d node states that were lost: %s", attempt_id, len(names), names[0],
            extra=identify_attempt(events[attempt_id]),
        )  # fmt: skip
    return [_make_finding(events[attempt_id], names) for attempt_id, names in by_attempt.items()]


def _make_finding(event: DevicesJudgedHead, names: Sequence[str]) -> FindingReported:
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


async def audit_until_cancelled(audit: StateAudit) -> None:
    """Check until cancelled; while Kafka does not answer, later."""
    while True:
        await asyncio.sleep(AUDIT_SECONDS)
        try:
            async with asyncio.timeout(10 * AUDIT_SECONDS):
                await audit.check()
        except UNAVAILABLE as error:
            logger.info("node states are checked later: %s: %s", type(error).__name__, error)
