"""Handler of changes after which a pod fits, each proved by the scheduler's own fit."""

import asyncio
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from api.answers.attempt_lookup import AttemptLookup, StoredAttempt
from api.answers.change_search import ChangeSearch
from api.answers.fact_collector import FactCollector
from api.authority.access import get_access
from api.authority.rights import list_pods
from api.handlers.attempt_rights import find_readable_attempt_or_latest
from api.http.cluster import Cluster
from api.http.errors import NotFoundError, to_json_response
from api.http.param_types import NamespaceInPath, PodInPath
from api.http.query_params import AttemptQuery, refuse_repeated
from api.index.attempts.attempt_queries import PodName
from api.index.nodes.cluster_states import read_states_of_attempt
from api.memory.cluster_devices import ClusterDevices
from engine.fit.devices.as_of import rebuild_columns
from engine.fit.devices.cluster_state import ClusterColumns
from engine.suggestions.answer import ProvedSuggestions, build_suggestions
from engine.summaries.named_pods import hide_pods
from schemas.answers.suggestions import Suggestions
from schemas.events import AttemptSummarized


class SuggestionsQuery(AttemptQuery):
    as_of: Literal["now", "attempt"] = Field(
        "now", description="State of the cluster: `now`, or as the `attempt` found it."
    )


@dataclass(frozen=True, slots=True)
class SuggestionHandlers:
    attempts: AttemptLookup
    devices: ClusterDevices
    changes: ChangeSearch
    facts: FactCollector

    async def list_suggestions(
        self,
        request: Request,
        cluster: Cluster,
        namespace: NamespaceInPath,
        name: PodInPath,
        query: SuggestionsQuery,
    ) -> Response:
        """List the smallest changes after which the pod fits, cheapest first, and what keeps it from every node.

        A pod that no scheduler has tried is judged on the cluster's objects.
        """
        refuse_repeated(request)
        pod = PodName(cluster.name, namespace, name)
        body: Suggestions | None
        try:
            attempt = await find_readable_attempt_or_latest(self.attempts, request, cluster, pod, query.attempt)
            body = await self.find_suggestions(request, cluster, pod, attempt, query.as_of)
        except NotFoundError:
            if query.attempt or query.as_of != "now":
                raise
            body = await self.find_on_objects(request, cluster, pod, datetime.now(UTC))
            if body is None:
                raise
        return to_json_response(200, body, {"Cache-Control": "no-store"})

    async def find_suggestions(
        self,
        request: Request,
        cluster: Cluster,
        pod: PodName,
        attempt: StoredAttempt,
        as_of: Literal["now", "attempt"] = "now",
        *,
        finds_constraints: bool = True,
    ) -> Suggestions:
        """Find changes after which the pod of an attempt fits, as the caller, who may read the pod, may see them.

        finds_constraints: find also the constraints that exclude every node.
        """
        summary, now, unknown = attempt.read_summary(), datetime.now(UTC), list[str]()
        if as_of == "now" and summary.status != "succeeded":
            judged = await self.find_on_objects(request, cluster, pod, now, summary)
            if judged is not None:
                return judged
        changes, names = ProvedSuggestions([], [], fits=False), dict[str, str]()
        if summary.constraints is None:
            unknown.append("constraints")
        if summary.status != "succeeded":
            columns, lock = await self._get_columns(summary, attempt.original_id, as_of, unknown)
            if columns is None:
                unknown.append("devices")
            else:
                moment = now if as_of == "now" else None
                changes, names = await self.changes.find_changes(
                    request, cluster, summary, columns, lock, moment, unknown, finds_constraints=finds_constraints
                )
        judged_at = summary.started_at if as_of == "attempt" else now
        path = cluster.link_attempt(summary.attempt_id)
        return build_suggestions(summary, path, judged_at, changes, names, unknown)

    async def find_on_objects(
        self,
        request: Request,
        cluster: Cluster,
        pod: PodName,
        now: datetime,
        summary: AttemptSummarized | None = None,
    ) -> Suggestions | None:
        """Find changes that are proved on the cluster's objects, as the caller, who may read the pod, may see them.

        None if they can't be read, or if the attempt has verdicts on devices.
        """
        suggestions = await self.facts.suggest_on_objects(pod, summary, now)
        if suggestions is None:
            return None
        hidden = hide_pods(suggestions.items, pod.namespace)
        is_hidden = hidden is not suggestions.items and not await get_access(request).allows(cluster, list_pods())
        return suggestions.model_copy(
            update={
                "attempt": cluster.link_attempt(summary.attempt_id) if summary else "",
                "items": hidden if is_hidden else suggestions.items,
            }
        )

    async def _get_columns(
        self, summary: AttemptSummarized, original_id: str, as_of: str, unknown: list[str]
    ) -> tuple[ClusterColumns | None, AbstractAsyncContextManager[object]]:
        """Get the columns, and the lock to hold while they are judged. No state has quotas."""
        unknown.append("quotas")
        if as_of == "now":
            return self.devices.find_columns(summary.cluster), self.devices.lock
        states = await read_states_of_attempt(self.changes.index, summary, original_id)
        if states.missing:
            unknown.append("states")
        columns = (
            await asyncio.to_thread(rebuild_columns, states.states, self.devices.vendors) if states.states else None
        )
        return columns, nullcontext()
