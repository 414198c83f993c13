"""Answers what would have to change for a pod to fit, each change proved by the scheduler's own fit."""

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from api.attempt_lookup import AttemptLookup
from api.authority.access import access_of
from api.handlers.attempt_rights import readable_of_pod
from api.handlers.others import readable_namespaces
from api.http.cluster import Cluster
from api.http.errors import json_response
from api.http.param_types import NamespaceInPath, PodInPath
from api.http.query_params import AttemptQuery, refuse_repeated
from api.index.attempt_queries import PodName
from api.index.client import IndexDownError, OpenSearch
from api.index.cluster_states import read_states_of_attempt
from api.index.holders import HeldBy, read_holders
from api.memory.cluster_devices import ClusterDevices
from diagnosis.suggestions.acts import nodes_to_empty
from diagnosis.suggestions.answer import Found, suggestions_of
from diagnosis.suggestions.ask import Ask
from diagnosis.suggestions.exclusion import excluding_constraints
from diagnosis.suggestions.suggest import suggest
from diagnosis.suggestions.trial import Trial
from fit.devices.as_of import rebuilt
from fit.devices.cluster_state import ClusterColumns
from fit.judge.decision import SchedulingPolicy
from schemas.events import AttemptSummarized
from summaries.named_pods import OTHERS


class SuggestionsQuery(AttemptQuery):
    as_of: Literal["now", "attempt"] = Field(
        "now", description="On which cluster: as it is now, or as the attempt found it."
    )


@dataclass(frozen=True, slots=True)
class ChangeSearch:
    """Finds the changes after which a pod fits. index: what holds the devices that would have to become free."""

    index: OpenSearch

    async def found(
        self,
        request: Request,
        cluster: Cluster,
        summary: AttemptSummarized,
        columns: ClusterColumns,
        lock: AbstractAsyncContextManager[object],
        at: datetime | None,
        unknown: list[str],
    ) -> tuple[Found, dict[str, str]]:
        """The changes, and by uid the pods in them as the caller may see them.

        ``at``: of when pods hold devices; None where that is not looked up. What can't be known joins ``unknown``.
        """
        held_by = dict[str, HeldBy]()
        ask = Ask.of_attempt(summary.pod, summary.requests, summary.constraints or {}, columns.vendors)
        policy = SchedulingPolicy(summary.node_policy or "binpack", summary.device_policy or "spread")
        trial = Trial(columns, tuple(summary.nodes), policy)
        async with lock:
            nodes = await asyncio.to_thread(_nodes_to_empty, trial, ask)
        if nodes is None:
            return Found([], [], fits=True), {}
        if at is not None:
            try:
                held_by = await read_holders(self.index, cluster.name, nodes, at)
            except IndexDownError:
                unknown.append("holders")
        async with lock:
            found = await asyncio.to_thread(_search, trial, ask, held_by)
        return found, await self._names(request, cluster, held_by)

    async def _names(self, request: Request, cluster: Cluster, held_by: Mapping[str, HeldBy]) -> dict[str, str]:
        """By uid, the pod as the caller may see it."""
        pods = {uid: pod for held in held_by.values() for uid, pod in held.pods.items()}
        namespaces = {pod.namespace for pod in pods.values()}
        readable = await readable_namespaces(access_of(request), cluster, namespaces) if namespaces else frozenset()
        return {uid: str(pod) if pod.namespace in readable else OTHERS for uid, pod in pods.items()}


@dataclass(frozen=True, slots=True)
class SuggestionHandlers:
    attempts: AttemptLookup
    index: OpenSearch
    devices: ClusterDevices

    async def suggestions(
        self,
        request: Request,
        cluster: Cluster,
        namespace: NamespaceInPath,
        name: PodInPath,
        query: SuggestionsQuery,
    ) -> Response:
        """The smallest changes after which the pod fits, the cheapest first, and what keeps it from every node."""
        refuse_repeated(request)
        pod = PodName(cluster.name, namespace, name)
        attempt = await readable_of_pod(self.attempts, request, cluster, pod, query.attempt)
        summary, now, unknown = attempt.summary(), datetime.now(UTC), list[str]()
        found, names = Found([], [], fits=False), dict[str, str]()
        if summary.constraints is None:
            unknown.append("constraints")
        if summary.status != "succeeded":
            columns, lock = await self._cluster(summary, attempt.original_id, query.as_of, unknown)
            if columns is None:
                unknown.append("devices")
            else:
                at = now if query.as_of == "now" else None
                search = ChangeSearch(self.index)
                found, names = await search.found(request, cluster, summary, columns, lock, at, unknown)
        as_of = summary.started_at if query.as_of == "attempt" else now
        body = suggestions_of(summary, cluster.attempt(summary.attempt_id), as_of, found, names, unknown)
        return json_response(200, body, {"Cache-Control": "no-store"})

    async def _cluster(
        self, summary: AttemptSummarized, original_id: str, as_of: str, unknown: list[str]
    ) -> tuple[ClusterColumns | None, AbstractAsyncContextManager[object]]:
        """The columns, and what has to be held while they are judged. Quotas are in no state."""
        unknown.append("quotas")
        if as_of == "now":
            return self.devices.known(summary.cluster), self.devices.lock
        states = await read_states_of_attempt(self.index, summary, original_id)
        if states.missing:
            unknown.append("states")
        columns = await asyncio.to_thread(rebuilt, states.states, self.devices.vendors) if states.states else None
        return columns, nullcontext()


def _nodes_to_empty(trial: Trial, ask: Ask) -> list[str] | None:
    """None where the pod fits as it is."""
    return None if trial.fits(ask) else nodes_to_empty(trial, ask)


def _search(trial: Trial, ask: Ask, held_by: Mapping[str, HeldBy]) -> Found:
    # The lock was given back while the index was asked: pods may have ended since.
    if trial.fits(ask):
        return Found([], [], fits=True)
    uses = {node: held.uses for node, held in held_by.items()}
    return Found(suggest(trial, ask, uses), excluding_constraints(trial, ask), fits=False)
