"""Answers why a pod waits: collects the facts and walks the decision tree."""

import asyncio
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Annotated

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from api.answers.attempt_lookup import AttemptLookup, StoredAttempt
from api.answers.exclusion import Exclusion
from api.answers.fact_collector import FactCollector, may_be_refused
from api.authority.access import get_access
from api.authority.rights import get_pod, list_pods
from api.handlers.attempt_rights import readable_attempt_of
from api.handlers.not_found import pod_never_observed
from api.handlers.redaction import attempt_shown
from api.http.cluster import Cluster
from api.http.errors import to_json_response
from api.http.param_types import ATTEMPT_ID, NamespaceInPath, PodInPath
from api.http.query_params import Query, refuse_repeated
from api.index.attempts.attempt_queries import PodName
from api.index.reading.client import IndexDownError
from engine.diagnosis.facts import DiagnosisFacts
from engine.diagnosis.tree import diagnose
from engine.summaries.named_pods import hide_other_pods


class DiagnosisQuery(Query):
    attempt: Annotated[str, Field(pattern=ATTEMPT_ID)] | None = Field(
        None, description="Of this attempt of the pod; without it, of the pod as it is now."
    )
    exclusion: bool = Field(
        True, description="false: without `excluded_by`, which takes most of the time at thousands of nodes."
    )


@dataclass(frozen=True, slots=True)
class DiagnosisHandlers:
    attempts: AttemptLookup
    facts: FactCollector
    exclusion: Exclusion

    async def diagnosis(
        self,
        request: Request,
        cluster: Cluster,
        namespace: NamespaceInPath,
        name: PodInPath,
        query: DiagnosisQuery,
    ) -> Response:
        """Why the pod waits: one main obstacle with its numbers and what to do, and the questions that led to it.

        Also of a pod that no scheduler has judged: from the state of the cluster. What could not be known is named.
        """
        refuse_repeated(request)
        await get_access(request).require(cluster, get_pod(namespace, name))
        facts = await self._facts(request, cluster, PodName(cluster.name, namespace, name), query)
        hidden = _without_others(facts)
        if hidden is not facts and not await get_access(request).allows(cluster, list_pods()):
            facts = hidden
        path = cluster.link_attempt(facts.attempt.attempt_id) if facts.attempt else None
        found = diagnose(facts, path)
        if query.exclusion and found.state == "refused" and facts.attempt and facts.is_latest:
            found = found.model_copy(update={"excluded_by": await self.exclusion.of(facts.attempt)})
        return to_json_response(200, found, {"Cache-Control": "no-store"})

    async def _facts(self, request: Request, cluster: Cluster, pod: PodName, query: DiagnosisQuery) -> DiagnosisFacts:
        now = datetime.now(UTC)
        if query.attempt is None:
            return await self._facts_now(request, cluster, pod, now, query)
        asked = await readable_attempt_of(self.attempts, request, cluster, pod, query.attempt)
        try:
            latest = await self.attempts.latest(pod)
        except IndexDownError:
            latest = None
        if latest and latest.attempt_id == asked.attempt_id:
            return await self._facts_now(request, cluster, pod, now, query)
        attempt = await attempt_shown(get_access(request), cluster, asked.read_summary())
        return await self.facts.of_attempt(pod, attempt, asked.original_id, now)

    async def _facts_now(
        self, request: Request, cluster: Cluster, pod: PodName, now: datetime, query: DiagnosisQuery
    ) -> DiagnosisFacts:
        is_index_down = False
        latest: StoredAttempt | None = None
        try:
            latest = await self.attempts.latest(pod)
        except IndexDownError:
            is_index_down = True
        attempt = await attempt_shown(get_access(request), cluster, latest.read_summary()) if latest else None
        original_id = latest.original_id if latest else ""
        facts, _ = await asyncio.gather(
            self.facts.of_pod(pod, attempt, original_id, now, is_index_down=is_index_down),
            # Computed while the facts are waited for, and kept: the answer takes it from there.
            self.exclusion.of(attempt) if query.exclusion and may_be_refused(attempt) else _nothing(),
        )
        # Where every source answers and none knows the pod, its name is most probably wrong.
        has_answers = not facts.select_unknown("attempt") and not any(
            unknown.cause in ("index-down", "api-server-down", "not-allowed") for unknown in facts.unknown
        )
        if facts.pod is None and facts.attempt is None and has_answers:
            raise pod_never_observed(pod.namespace, pod.name)
        return facts


async def _nothing() -> None:
    return None


def _without_others(facts: DiagnosisFacts) -> DiagnosisFacts:
    """The facts, in which what was reported of the pod names no pod of another namespace; the same where none is."""
    hide = partial(hide_other_pods, namespace=facts.namespace)
    recorded, conditions = list(facts.events or ()), list(facts.pod.conditions if facts.pod else ())
    events = [event._replace(words=hide(event.words)) for event in recorded]
    changed = [condition.model_copy(update={"message": hide(condition.message)}) for condition in conditions]
    if (events, changed) == (recorded, conditions):
        return facts
    pod = facts.pod._replace(conditions=changed) if facts.pod else None
    return replace(facts, events=facts.events and events, pod=pod)
