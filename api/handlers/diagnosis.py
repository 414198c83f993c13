"""Handler of diagnoses: collects the facts and walks the decision tree."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from api.answers.attempt_lookup import AttemptLookup, StoredAttempt
from api.answers.exclusion import Exclusion
from api.answers.fact_collector import CollectedFacts, FactCollector, may_be_refused
from api.authority.access import get_access
from api.authority.rights import get_pod, list_pods
from api.handlers.attempt_rights import find_readable_attempt_of_pod
from api.handlers.fact_redaction import hide_others
from api.handlers.not_found import to_unobserved_pod_error
from api.handlers.redaction import redact_attempt
from api.handlers.suggestions import SuggestionHandlers
from api.http.cluster import Cluster
from api.http.errors import to_json_response
from api.http.param_types import ATTEMPT_ID, NamespaceInPath, PodInPath
from api.http.query_params import Query, refuse_repeated
from api.index.attempts.attempt_queries import PodName
from api.index.reading.client import IndexDownError, IndexRefusedError
from api.index.start_outlook import read_outlook
from engine.diagnosis.facts import DiagnosisFacts
from engine.diagnosis.headline import add_changes, add_choice, is_changeable
from engine.diagnosis.tree import diagnose
from engine.summaries.comparison import build_scores
from engine.summaries.named_pods import hide_pods
from schemas.answers.diagnosis import Diagnosis, StartOutlook
from schemas.events import AttemptSummarized


class DiagnosisQuery(Query):
    attempt: Annotated[str, Field(pattern=ATTEMPT_ID)] | None = Field(
        None, description="Id of one of the pod's attempts; without it, the diagnosis is about the present."
    )
    exclusion: bool = Field(
        True, description="`false` omits `excluded_by`, which takes most of the time with thousands of nodes."
    )
    changes: bool = Field(
        True, description="`false` looks for no changes: `headline` then says what the latest attempt shows."
    )
    outlook: bool = Field(
        True, description="`false` omits `start`, which takes two searches of the index, or three with a forecast."
    )


@dataclass(frozen=True, slots=True)
class DiagnosisHandlers:
    attempts: AttemptLookup
    facts: FactCollector
    exclusion: Exclusion
    suggestions: SuggestionHandlers

    async def get_diagnosis(
        self,
        request: Request,
        cluster: Cluster,
        namespace: NamespaceInPath,
        name: PodInPath,
        query: DiagnosisQuery,
    ) -> Response:
        """Diagnose why the pod waits: one main obstacle with its numbers and a remedy, and the questions leading to it.

        A pod that no scheduler has judged is diagnosed from the state of the cluster. The answer lists the facts that
        could not be read.
        """
        refuse_repeated(request)
        await get_access(request).require(cluster, get_pod(namespace, name))
        pod = PodName(cluster.name, namespace, name)
        collected, latest = await self._collect_facts(request, cluster, pod, query)
        hidden = await asyncio.to_thread(hide_others, collected)
        if hidden is not collected and not await get_access(request).allows(cluster, list_pods()):
            collected = hidden
        facts = collected.facts
        path = cluster.link_attempt(facts.attempt.attempt_id) if facts.attempt else None
        diagnosis = await asyncio.to_thread(diagnose, facts, path, collected.judged)
        if collected.notes:
            diagnosis = diagnosis.model_copy(update={"notes": list(collected.notes)})
        if query.exclusion and diagnosis.state == "refused" and facts.attempt and facts.is_latest:
            diagnosis = diagnosis.model_copy(
                update={"excluded_by": await self.exclusion.find_constraints(facts.attempt)}
            )
        is_refused = facts.is_latest and diagnosis.state == "refused" and diagnosis.layer == "nodes"
        # Searched while the changes are tried.
        outlook, diagnosis = await asyncio.gather(
            self._read_outlook(request, cluster, facts.attempt, facts.now)
            if query.outlook and is_refused and facts.attempt
            else _skip(),
            self._extend_headline(request, cluster, pod, diagnosis, facts, latest if facts.attempt else None)
            if query.changes and facts.is_latest
            else _pass_on(diagnosis),
        )
        if outlook:
            diagnosis = diagnosis.model_copy(update={"start": outlook})
        return to_json_response(200, diagnosis, {"Cache-Control": "no-store"})

    async def _read_outlook(
        self, request: Request, cluster: Cluster, attempt: AttemptSummarized, now: datetime
    ) -> StartOutlook | None:
        """Read when the pod starts, as the caller, who may read the pod, may see it; None if the index is away."""
        try:
            outlook = await read_outlook(self.facts.index, attempt, now)
        except (IndexDownError, IndexRefusedError):
            return None
        hidden = hide_pods(outlook, attempt.pod.namespace)
        if hidden is outlook or await get_access(request).allows(cluster, list_pods()):
            return outlook
        return hidden

    async def _extend_headline(
        self,
        request: Request,
        cluster: Cluster,
        pod: PodName,
        diagnosis: Diagnosis,
        facts: DiagnosisFacts,
        latest: StoredAttempt | None,
    ) -> Diagnosis:
        """Extend the headline by what would let a waiting pod in, or by the node that came next."""
        if is_changeable(diagnosis):
            if latest:
                changes = await self.suggestions.find_suggestions(
                    request, cluster, pod, latest, finds_constraints=False
                )
                return add_changes(diagnosis, changes)
            return add_changes(diagnosis, await self.suggestions.find_on_objects(request, cluster, pod, facts.now))
        attempt = facts.attempt
        if attempt is None or attempt.chosen is None or (facts.pod and facts.pod.node not in ("", attempt.chosen)):
            return diagnosis
        return add_choice(diagnosis, await asyncio.to_thread(build_scores, attempt))

    async def _collect_facts(
        self, request: Request, cluster: Cluster, pod: PodName, query: DiagnosisQuery
    ) -> tuple[CollectedFacts, StoredAttempt | None]:
        """Collect the facts, and the pod's latest attempt; None for a question about an earlier one."""
        now = datetime.now(UTC)
        if query.attempt is None:
            return await self._collect_facts_now(request, cluster, pod, now, query)
        requested = await find_readable_attempt_of_pod(self.attempts, request, cluster, pod, query.attempt)
        try:
            latest = await self.attempts.find_latest(pod)
        except IndexDownError:
            latest = None
        if latest and latest.attempt_id == requested.attempt_id:
            return await self._collect_facts_now(request, cluster, pod, now, query)
        attempt = await redact_attempt(get_access(request), cluster, requested.read_summary())
        return CollectedFacts(await self.facts.collect_of_attempt(pod, attempt, requested.original_id, now)), None

    async def _collect_facts_now(
        self, request: Request, cluster: Cluster, pod: PodName, now: datetime, query: DiagnosisQuery
    ) -> tuple[CollectedFacts, StoredAttempt | None]:
        is_index_down = False
        latest: StoredAttempt | None = None
        try:
            latest = await self.attempts.find_latest(pod)
        except IndexDownError:
            is_index_down = True
        attempt = await redact_attempt(get_access(request), cluster, latest.read_summary()) if latest else None
        original_id = latest.original_id if latest else ""
        collected, _ = await asyncio.gather(
            self.facts.collect_of_pod(pod, attempt, original_id, now, is_index_down=is_index_down),
            # Computed while the facts arrive, and cached for the answer.
            self.exclusion.find_constraints(attempt) if query.exclusion and may_be_refused(attempt) else _skip(),
        )
        facts = collected.facts
        # If every source answers and none knows the pod, its name is probably wrong.
        has_answers = not facts.select_unknown("attempt") and not any(
            unknown.cause in ("index-down", "api-server-down", "not-allowed") for unknown in facts.unknown
        )
        if facts.pod is None and facts.attempt is None and has_answers:
            raise to_unobserved_pod_error(*pod)
        return collected, latest


async def _skip() -> None:
    return None


async def _pass_on(diagnosis: Diagnosis) -> Diagnosis:
    return diagnosis
