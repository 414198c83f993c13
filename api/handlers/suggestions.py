"""Handler of changes after which a pod fits, each proved by the scheduler's own fit."""

import asyncio
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from api.answers.attempt_lookup import AttemptLookup
from api.answers.change_search import ChangeSearch
from api.answers.fact_collector import FactCollector
from api.authority.access import get_access
from api.authority.rights import list_pods
from api.handlers.attempt_rights import find_readable_attempt_or_latest
from api.http.cluster import Cluster
from api.http.errors import to_json_response
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
        """List the smallest changes after which the pod fits, cheapest first, and what keeps it from every node."""
        refuse_repeated(request)
        pod = PodName(cluster.name, namespace, name)
        attempt = await find_readable_attempt_or_latest(self.attempts, request, cluster, pod, query.attempt)
        summary, now, unknown = attempt.read_summary(), datetime.now(UTC), list[str]()
        if query.as_of == "now" and summary.status != "succeeded":
            judged = await self.facts.suggest_on_objects(pod, summary, now)
            if judged is not None:
                return await self._answer_on_objects(request, cluster, judged, summary)
        changes, names = ProvedSuggestions([], [], fits=False), dict[str, str]()
        if summary.constraints is None:
            unknown.append("constraints")
        if summary.status != "succeeded":
            columns, lock = await self._get_columns(summary, attempt.original_id, query.as_of, unknown)
            if columns is None:
                unknown.append("devices")
            else:
                moment = now if query.as_of == "now" else None
                changes, names = await self.changes.find_changes(
                    request, cluster, summary, columns, lock, moment, unknown
                )
        as_of = summary.started_at if query.as_of == "attempt" else now
        body = build_suggestions(summary, cluster.link_attempt(summary.attempt_id), as_of, changes, names, unknown)
        return to_json_response(200, body, {"Cache-Control": "no-store"})

    async def _answer_on_objects(
        self, request: Request, cluster: Cluster, suggestions: Suggestions, summary: AttemptSummarized
    ) -> Response:
        """Answer with changes that were proved on the cluster's objects, as the caller may see them."""
        hidden = hide_pods(suggestions.items, summary.pod.namespace)
        is_hidden = hidden is not suggestions.items and not await get_access(request).allows(cluster, list_pods())
        body = suggestions.model_copy(
            update={
                "attempt": cluster.link_attempt(summary.attempt_id),
                "items": hidden if is_hidden else suggestions.items,
            }
        )
        return to_json_response(200, body, {"Cache-Control": "no-store"})

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
