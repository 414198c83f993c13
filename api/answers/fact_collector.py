"""Collector of the facts of a diagnosis: from memory, the index and the API server, as far as each answers."""

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple, TypeGuard, TypeVar

from cachetools import TTLCache

from api.answers.case_judges import CaseJudges
from api.answers.circumstances import ObjectFacts, read_circumstances, read_nodes
from api.answers.object_api import Objects
from api.answers.object_lists import ObjectLists
from api.answers.pod_case import read_pod_case, to_unknown
from api.authority.remembered import BusyError, Remembered, TimedAnswer
from api.http.param_types import NO_NAMESPACE
from api.index import pod_circumstances as indexed
from api.index.attempts.attempt_queries import PodName
from api.index.attempts.attempt_reader import read_devices
from api.index.clusters import build_schedulers_query
from api.index.reading.client import IndexDownError, OpenSearch
from engine.diagnosis.facts import Cause, DiagnosisFacts, Evidence, NodeFacts, PodOnCluster, SchedulerState, Unknown
from engine.diagnosis.judged_steps import counts_only
from engine.diagnosis.layers.evictions import find_winner_uid
from engine.diagnosis.outcome import JudgedPod
from engine.diagnosis.refused_nodes import group_refused_nodes
from engine.hami.reason_codes import ReasonCode
from runtime.kubernetes.errors import NO_ANSWER, KubeApiError
from schemas.answers.attempts import DeviceLog
from schemas.answers.diagnosis import InBothLanguages
from schemas.answers.suggestions import Suggestions
from schemas.events import AttemptSummarized
from schemas.indices import ATTEMPTS, FINDINGS, OBSERVATIONS

T = TypeVar("T")

MAX_NODES: Final = 200
"""Maximum number of nodes whose devices are read, those with the most important reasons."""
NODES_SECONDS: Final = 10.0
"""Time for which nodes are remembered: people ask about several pods when a cluster has a problem."""
MAX_ROWS: Final = 20_000
"""Number of remembered devices, some 1.5 kB each: to read those of 200 nodes takes most of a diagnosis."""
ROWS_SECONDS: Final = 60.0
"""Time for which devices are remembered: records do not change, but another source may add some later."""
_OF_OBJECTS: Final = ("pod", "claims", "quotas", "events", "nodes")


class CollectedFacts(NamedTuple):
    """Facts of a diagnosis, and what was worked out about the pod on the cluster's objects."""

    facts: DiagnosisFacts
    judged: JudgedPod | None = None
    notes: Sequence[InBothLanguages] = ()


Nodes = tuple[list[NodeFacts], list[Unknown]]
_RowsKey = tuple[str | int, ...]


def create_remembered_nodes() -> Remembered[str, Nodes]:
    return Remembered(max_answers=1, max_questions=1)


def _create_remembered_rows() -> "TTLCache[_RowsKey, list[DeviceLog]]":
    return TTLCache(MAX_ROWS, ttl=ROWS_SECONDS, getsizeof=len)


def may_be_refused(attempt: AttemptSummarized | None) -> TypeGuard[AttemptSummarized]:
    """Tell whether there is an attempt that judged nodes without an error and placed the pod nowhere."""
    return attempt is not None and not (attempt.chosen or attempt.error)


def _combine(live: PodOnCluster | None, observed: PodOnCluster | None) -> PodOnCluster | None:
    """Combine the pod on the API server with its last observation, which outlives it."""
    if live is None or not live.is_gone or observed is None:
        return live or observed
    return live._replace(
        uid=observed.uid, node=observed.node, scheduler=observed.scheduler, conditions=observed.conditions
    )


@dataclass(frozen=True, slots=True)
class FactCollector:
    index: OpenSearch
    objects: Objects
    home_cluster: str
    """Cluster whose objects the API server has."""
    lists: ObjectLists
    judges: CaseJudges = field(default_factory=CaseJudges)
    nodes: Remembered[str, Nodes] = field(default_factory=create_remembered_nodes)
    judged: TTLCache[_RowsKey, list[DeviceLog]] = field(default_factory=_create_remembered_rows)

    async def suggest_on_objects(
        self, pod: PodName, attempt: AttemptSummarized | None, now: datetime
    ) -> Suggestions | None:
        """Suggest changes for a pod without an attempt that names verdicts of its scheduler, on the cluster's objects.

        None for another attempt, for a cluster whose objects can't be read, and for a pod that is not refused now.
        """
        has_verdicts = attempt is not None and not (counts_only(attempt) or attempt.reconstruction)
        if has_verdicts or self._explain_missing_objects(pod):
            return None
        try:
            case = await read_pod_case(self.objects, self.lists, pod.namespace, pod.name, lambda _: True)
        except KubeApiError:
            return None
        return await self.judges.suggest(case, pod.cluster, now)

    async def collect_of_attempt(
        self, pod: PodName, attempt: AttemptSummarized, original_id: str, now: datetime
    ) -> DiagnosisFacts:
        """Collect the facts of an attempt with later ones: only its records."""
        unknown: list[Unknown] = []
        devices = await self._read_devices(attempt, original_id, unknown)
        return DiagnosisFacts(*pod, now, attempt, is_latest=False, devices=devices, unknown=unknown)

    async def collect_of_pod(
        self, pod: PodName, attempt: AttemptSummarized | None, original_id: str, now: datetime, *, is_index_down: bool
    ) -> CollectedFacts:
        """Collect the present facts of the pod. ``attempt``: its latest attempt, None without a record."""
        unknown = [Unknown("attempt", "index-down")] if is_index_down and attempt is None else []
        unknown_devices: list[Unknown] = []
        live, observed, schedulers, findings, devices = await asyncio.gather(
            self._read_live(pod, attempt, now),
            self._read_or_note("observations", self._read_observed(pod), unknown),
            self._read_or_note("schedulers", self._read_schedulers(pod.cluster), unknown),
            self._read_or_note("findings", self._read_findings(pod), unknown),
            self._read_devices(attempt, original_id, unknown_devices),
        )
        unknown += live.unknown
        nodes = live.nodes or await self._read_live_nodes(pod, now, unknown)
        state = _combine(live.pod, observed)
        if attempt and state and state.uid and attempt.pod.uid not in ("", state.uid):
            # Two pods had this name, one after the other: the question is about the later one.
            if live.pod is None and state.source.time and state.source.time < attempt.started_at:
                state = None
            else:
                attempt = None
        if schedulers is not None and not schedulers:
            unknown.append(Unknown("schedulers", "not-recorded"))
        if attempt and not attempt.complete:
            unknown.append(Unknown("records", "not-recorded", attempt.missing))
        if nodes is None and not (attempt and attempt.chosen):
            nodes = await self._read_or_note(
                "registrations", self._read_registrations(pod.cluster, attempt, now), unknown
            )
        # Without the attempt of an earlier pod of this name.
        if attempt:
            unknown += unknown_devices
        facts = DiagnosisFacts(
            *pod,
            now,
            attempt,
            devices=devices if attempt else None,
            pod=state,
            winner=await self._read_or_note("observations", self._read_winner(pod.cluster, state), unknown),
            claims=live.claims,
            quotas=live.quotas,
            events=live.events,
            nodes=nodes,
            schedulers=schedulers,
            owner_problem=live.owner_problem,
            objects=live.objects,
            gang=live.gang,
            findings=findings or (),
            unknown=_drop_repeated(unknown),
        )
        return CollectedFacts(facts, live.judged, live.notes)

    async def _read_live(self, pod: PodName, attempt: AttemptSummarized | None, now: datetime) -> ObjectFacts:
        if cause := self._explain_missing_objects(pod):
            return ObjectFacts(unknown=[Unknown(subject, cause) for subject in _OF_OBJECTS])
        return await read_circumstances(self.objects, pod.namespace, pod.name, now, self.lists, self.judges, attempt)

    def _explain_missing_objects(self, pod: PodName) -> Cause | None:
        """Find why the objects of the pod's cluster can't be read; None if they can."""
        if pod.cluster != self.home_cluster:
            return "another-cluster"
        # No API server has a namespace of this name.
        if pod.namespace == NO_NAMESPACE:
            return "not-recorded"
        return None if self.objects.is_connected else "outside-cluster"

    async def _read_live_nodes(self, pod: PodName, now: datetime, unknown: list[Unknown]) -> list[NodeFacts] | None:
        if self._explain_missing_objects(pod):
            return None

        async def ask() -> TimedAnswer[Nodes]:
            return TimedAnswer(await read_nodes(self.objects, now), NODES_SECONDS)

        try:
            nodes, more = await self.nodes.get(pod.cluster, ask)
        except KubeApiError as error:
            unknown.append(to_unknown("nodes", error))
            return None
        except BusyError as error:
            unknown.append(to_unknown("nodes", KubeApiError(NO_ANSWER, str(error))))
            return None
        unknown += more
        return nodes

    async def _read_observed(self, pod: PodName) -> PodOnCluster | None:
        return indexed.parse_pod_state(await self.index.search(OBSERVATIONS.alias, indexed.build_pod_query(pod)))

    async def _read_winner(self, cluster: str, state: PodOnCluster | None) -> tuple[str, int | None] | None:
        """Read the pod that took the place of one that is gone; None where no record names its UID."""
        uid = find_winner_uid(state) if state else ""
        if not uid:
            return None
        return indexed.parse_winner(
            await self.index.search(OBSERVATIONS.alias, indexed.build_winner_query(cluster, uid))
        )

    async def _read_schedulers(self, cluster: str) -> list[SchedulerState]:
        observed, deciding = await asyncio.gather(
            self.index.search(OBSERVATIONS.alias, build_schedulers_query(cluster)),
            self.index.search(ATTEMPTS.alias, indexed.build_decisions_query(cluster)),
        )
        return indexed.parse_scheduler_states(observed, deciding)

    async def _read_findings(self, pod: PodName) -> list[Evidence]:
        return indexed.parse_findings(await self.index.search(FINDINGS.alias, indexed.build_findings_query(pod)))

    async def _read_registrations(
        self, cluster: str, attempt: AttemptSummarized | None, now: datetime
    ) -> list[NodeFacts]:
        """Read facts about the nodes that the attempt found unregistered; without an attempt, about all nodes."""
        groups = group_refused_nodes(attempt) if attempt else []
        names = [name for group in groups if group.code == ReasonCode.NODE_UNREGISTERED for name in group.names]
        if attempt and not names:
            return []
        body = indexed.build_registrations_query(cluster, names)
        return indexed.parse_node_states(await self.index.search(OBSERVATIONS.alias, body), now)

    async def _read_devices(
        self, attempt: AttemptSummarized | None, original_id: str, unknown: list[Unknown]
    ) -> list[DeviceLog] | None:
        if not may_be_refused(attempt):
            return None
        names = [name for group in group_refused_nodes(attempt) if group.has_devices for name in group.names]
        if not names:
            return None
        if len(names) > MAX_NODES:
            unknown.append(Unknown("devices", "not-read", f"{MAX_NODES} of {len(names)} nodes were read"))
        answer = await self._read_or_note(
            "devices", self._read_judged(attempt, original_id, names[:MAX_NODES]), unknown
        )
        if answer is None:
            return None
        rows, note = answer
        if note:
            unknown.append(Unknown("devices", "not-recorded", note))
        return rows

    async def _read_judged(
        self, attempt: AttemptSummarized, original_id: str, names: list[str]
    ) -> tuple[list[DeviceLog], str]:
        key: _RowsKey = (attempt.cluster, original_id, attempt.version, *names)
        if rows := self.judged.get(key):
            return rows, ""
        rows, note = await read_devices(self.index, attempt.cluster, original_id, attempt.started_at, names)
        # Only complete rows that fit: missing ones may be written by the next time.
        if not note and len(rows) <= self.judged.maxsize:
            self.judged[key] = rows
        return rows, note

    async def _read_or_note(self, subject: str, reading: Awaitable[T], unknown: list[Unknown]) -> T | None:
        try:
            return await reading
        except IndexDownError as error:
            unknown.append(Unknown(subject, "index-down", str(error)))
            return None


def _drop_repeated(unknown: Sequence[Unknown]) -> list[Unknown]:
    """Keep the first entry of each subject: two readings of nodes are refused for one reason."""
    return list({entry.subject: entry for entry in reversed(unknown)}.values())[::-1]
