"""Writer of batches: loads what is not in memory, writes the documents that follow, publishes findings.

The offsets of a batch may be committed when ``take`` has returned. A batch that is taken again changes nothing.
"""

import logging
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final

from engine.summaries.node_history import NodeKey
from pipeline.dead_letter import DeadLetterLog, to_dead_letter
from pipeline.metrics import PlacementsMetrics
from pipeline.placements import occupancy_queries
from pipeline.placements.audits import PlacementAudits
from pipeline.placements.device_holdings import KEPT_AFTER_END
from pipeline.placements.input_decoder import BoundAttempt, PlacementInput, RefusedAgain, decode_input
from pipeline.placements.occupancy_queries import StoredPlacement
from pipeline.placements.occupancy_state import OccupancyState
from pipeline.placements.start_forecasts import MAX_FORECASTS, make_forecasts
from pipeline.placements.subjects import (
    ObservedKey,
    PodKey,
    SchedulerKey,
    Subject,
    WorkloadKey,
    get_subject,
)
from pipeline.sinks.bulk import Document
from pipeline.sinks.msearch import Search, iterate_pages
from pipeline.sinks.opensearch import OpenSearchSink
from runtime.kafka.producer import TopicsSink
from runtime.kafka.record import DecodedRecord, Record, identify_attempt, to_record
from schemas.codec.records import Rejected, encode
from schemas.events import FindingReported
from schemas.topics import FINDINGS

logger = logging.getLogger(__name__)

_MAX_LOADED: Final = 500
"""Subjects per request to the index: a pod and a node take three searches each."""
_MAX_REPORTED: Final = 100_000
"""Limit of finding ids that are remembered as reported; the index answers for others."""


class BatchWriter:
    def __init__(
        self,
        state: OccupancyState,
        audits: PlacementAudits,
        index: OpenSearchSink,
        topics: TopicsSink,
        metrics: PlacementsMetrics,
    ) -> None:
        self._state, self._audits = state, audits
        self._index, self._topics, self._metrics = index, topics, metrics
        self._dead_letter_log = DeadLetterLog(logger)
        self._reported: OrderedDict[str, None] = OrderedDict()

    async def open(self, now: datetime, reported: Iterable[str] = ()) -> None:
        """Load from the index which pods hold devices. All are audited again: an earlier run may have been killed.

        ``reported`` are ids of findings that are on their topic, and in the index perhaps later.
        """
        self._reported.update(dict.fromkeys(reported))
        holdings: list[StoredPlacement] = []
        since = now - KEPT_AFTER_END
        async for hits in iterate_pages(
            self._index, occupancy_queries.PAGE, lambda after: occupancy_queries.search_holdings(since, after)
        ):
            holdings += occupancy_queries.decode_stored(hits)
        self._state.load_holdings(holdings)
        await self._audits.load(now)
        logger.info("%d placements hold devices", len(self._state.holdings))

    async def take(self, records: Iterable[Any]) -> None:
        """Return when the index and the topics have everything that follows from these aiokafka records."""
        now = datetime.now(UTC)
        inputs = [decoded for record in map(to_record, records) if (decoded := await self._read(record, now))]
        inputs = await self._with_reasons(inputs)
        # Outside the loop: an input that is applied again after a conflict must not be audited twice.
        for decoded in inputs:
            self._audits.observe(decoded.event)
        # Ends when no document of this round is in conflict: what another process wrote is loaded, then applied to
        # again.
        while inputs:
            await self._load({get_subject(decoded.event) for decoded in inputs})
            inputs = await self._with_forecasts(inputs, now)
            documents: dict[tuple[str, str], Document] = {}
            for item, record in inputs:
                for document in self._state.apply(item, now, record):
                    # Of several versions in one batch the index needs the last.
                    documents[document.index, document.id] = document
            conflicting = await self._write(list(documents.values()))
            inputs = [decoded for decoded in inputs if get_subject(decoded.event) in conflicting]
        # At the end: within a batch a pod that was loaded has to be there when its inputs are applied.
        self._state.trim()
        for wait in self._state.waits.take():
            self._metrics.waits[wait.kind].labels(wait.cluster, wait.namespace).observe(wait.seconds)

    async def _read(self, record: Record, now: datetime) -> DecodedRecord[PlacementInput] | None:
        item = decode_input(record.value, record.headers, now)
        outcome = "rejected" if isinstance(item, Rejected) else "taken" if item else "passed_over"
        self._metrics.records.labels(record.topic, outcome).inc()
        if isinstance(item, Rejected):
            await self._reject(record, str(item))
            return None
        return DecodedRecord(item, record) if item else None

    async def _with_reasons(
        self, inputs: Sequence[DecodedRecord[PlacementInput]]
    ) -> list[DecodedRecord[PlacementInput]]:
        """Add to binds what the pod had waited for, if the index has its attempts by now."""
        attempts = (decoded.event for decoded in inputs if isinstance(decoded.event, BoundAttempt))
        # A pod that was bound at its first attempt has waited for nothing: most pods cost no search.
        binds = [
            attempt
            for attempt in attempts
            if attempt.bind.bound and attempt.pod.uid and attempt.first_judged_at != attempt.started_at
        ]
        searches = [occupancy_queries.search_refusals(bind) for bind in binds]
        answers = await self._index.search(searches) if searches else []
        refusals = {bind.attempt_id: hits for bind, hits in zip(binds, answers, strict=True)}
        return [DecodedRecord(_with_reasons_of(decoded.event, refusals), decoded.record) for decoded in inputs]

    async def _with_forecasts(
        self, inputs: Sequence[DecodedRecord[PlacementInput]], now: datetime
    ) -> list[DecodedRecord[PlacementInput]]:
        """Add forecasts of the starts of some refused pods; the others have their turn at their next refusal."""
        refusals = (decoded.event for decoded in inputs if isinstance(decoded.event, RefusedAgain))
        due = islice((refusal for refusal in refusals if self._state.take_forecast_turn(refusal, now)), MAX_FORECASTS)
        forecasts = await make_forecasts(list(due), self._index, self._state.holdings, now)
        return [
            DecodedRecord(decoded.event.model_copy(update={"forecast": forecast}), decoded.record)
            if isinstance(decoded.event, RefusedAgain) and (forecast := forecasts.get(decoded.event.attempt_id))
            else decoded
            for decoded in inputs
        ]

    async def _reject(self, record: Record, cause: str) -> None:
        self._dead_letter_log.note(record, cause)
        await self._topics.send([to_dead_letter(record, cause, datetime.now(UTC))])

    async def _load(self, subjects: set[Subject]) -> None:
        lacking = iter([subject for subject in subjects if self._state.is_missing(subject)])
        while some := list(islice(lacking, _MAX_LOADED)):
            await self._load_pods([subject for subject in some if isinstance(subject, PodKey)])
            await self._load_nodes([subject for subject in some if isinstance(subject, NodeKey)])
            await self._load_observed([subject for subject in some if isinstance(subject, WorkloadKey | SchedulerKey)])

    async def _load_pods(self, pods: Sequence[PodKey]) -> None:
        searches: list[Search] = []
        for pod in pods:
            searches += [
                occupancy_queries.search_placements_of_pod(pod),
                occupancy_queries.search_observations_of_pod(pod),
                occupancy_queries.search_forecasts_of_pod(pod),
            ]
        answers = await self._index.search(searches) if searches else []
        for pod, placements, observations, forecasts in zip(
            pods, answers[::3], answers[1::3], answers[2::3], strict=True
        ):
            self._state.load_pod(
                pod,
                occupancy_queries.decode_stored(placements),
                occupancy_queries.decode_observed(observations),
                occupancy_queries.decode_forecasts(forecasts),
            )
        self._metrics.loaded.labels("pod").inc(len(pods))

    async def _load_nodes(self, nodes: Sequence[NodeKey]) -> None:
        searches = [(node, search) for node in nodes for search in occupancy_queries.search_observations_of_node(node)]
        answers = await self._index.search([search for _, search in searches]) if searches else []
        hits_of: dict[NodeKey, list[dict[str, Any]]] = {node: [] for node in nodes}
        for (node, _), hits in zip(searches, answers, strict=True):
            hits_of[node] += hits
        for node, hits in hits_of.items():
            self._state.load_node(node, occupancy_queries.decode_observed(hits))
        self._metrics.loaded.labels("node").inc(len(nodes))

    async def _load_observed(self, keys: Sequence[ObservedKey]) -> None:
        answers = (
            await self._index.search([occupancy_queries.search_observations_of(key) for key in keys]) if keys else []
        )
        for key, hits in zip(keys, answers, strict=True):
            self._state.load_observed(key, occupancy_queries.decode_observed(hits))
            self._metrics.loaded.labels("workload" if isinstance(key, WorkloadKey) else "scheduler").inc()

    async def _write(self, documents: Sequence[Document]) -> set[Subject]:
        """Write; returns the pods that another process has written about, whose inputs must be applied again."""
        conflicting: set[Subject] = set()
        # Deletions in a second request: a fact must be in another document before the one that has it is deleted.
        for is_deletion in (False, True):
            result = await self._index.write([action for action in documents if action.is_deletion is is_deletion])
            for document, cause in result.refused:
                record: Any = document.origin.record
                await self._reject(record, f"the index refuses document {document.id}: {cause}")
            # Without a version it is an observation: the same id means the same content, so a conflict says that it is
            # stored.
            conflicting |= {conflict.origin.subject for conflict in result.conflicts if conflict.version is not None}
        if conflicting:
            # One of the two has lost the lease and does not know it yet. What the other one wrote is loaded, not
            # overwritten.
            logger.warning("another process has written the documents of %d pods: loading them again", len(conflicting))
            self._state.forget(conflicting)
            # Searches see what was written before a refresh only; without one the conflicting document would be missed
            # again.
            self._index.forget()
        return conflicting

    async def audit(self, until: datetime) -> None:
        """Report new findings, each once. All inputs before ``until`` have been taken."""
        await self._load(set(self._state.list_nodes_to_load()))
        findings = [*self._state.find_overcommitments(until), *await self._audits.find(until)]
        if new := {finding.id: finding for finding in findings if finding.id not in self._reported}:
            await self._report(new)

    async def _report(self, findings: dict[str, FindingReported]) -> None:
        (hits,) = await self._index.search([occupancy_queries.search_findings(list(findings))])
        indexed = {hit["_id"] for hit in hits}
        new = [finding for id_, finding in findings.items() if id_ not in indexed]
        # The index writer makes documents of them. Nothing of a finding depends on when it is noticed: published a
        # second time, after a kill before the acknowledgement, it has the same id.
        await self._topics.send([encode(finding, FINDINGS.name) for finding in new])
        for finding in new:
            self._metrics.findings.labels(finding.finding).inc()
            evidence = "; ".join(finding.evidence)[:500]
            logger.info(
                "%s on node %s, device %s: %s", finding.finding, finding.node, finding.device or "-", evidence,
                extra=identify_attempt(finding),
            )  # fmt: skip
        self._reported.update(dict.fromkeys(findings))
        while len(self._reported) > _MAX_REPORTED:
            self._reported.popitem(last=False)


def _with_reasons_of(item: PlacementInput, refusals: Mapping[str, Sequence[dict[str, Any]]]) -> PlacementInput:
    if isinstance(item, BoundAttempt) and (hits := refusals.get(item.attempt_id)):
        made_at = item.description.created_at if item.description else None
        obstacle = occupancy_queries.choose_obstacle(hits, item.started_at, made_at)
        return item.model_copy(update={"waited_for": occupancy_queries.list_reasons(hits), "obstacle": obstacle})
    return item
