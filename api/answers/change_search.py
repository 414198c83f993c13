"""Finds what would have to change for a pod to fit: reads what the fit has to know, and asks it under the lock."""

import asyncio
from collections.abc import Awaitable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, NamedTuple, TypeVar

from starlette.requests import Request

from api.answers.circumstances import filter_existing_nodes, read_lock
from api.answers.object_api import Objects
from api.authority.access import filter_readable_namespaces, get_access
from api.http.cluster import Cluster
from api.index.nodes.holders import HeldBy, read_holders
from api.index.nodes.last_registrations import read_unregistered
from api.index.reading.client import IndexDownError, OpenSearch
from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.judge.decision import SchedulingPolicy
from engine.suggestions.acts import list_nodes_to_empty
from engine.suggestions.answer import ProvedSuggestions
from engine.suggestions.ask import Ask
from engine.suggestions.exclusion import find_excluding_constraints
from engine.suggestions.nodes import HeldNodeLock, UnregisteredNodes, suggest_unlocking
from engine.suggestions.suggest import suggest
from engine.suggestions.trial import Trial
from engine.summaries.named_pods import HIDDEN_POD
from runtime.kubernetes.errors import KubeApiError
from schemas.events import AttemptSummarized, BindOutcome

T = TypeVar("T")

MAX_LOST: Final = 50
"""How many nodes without devices the API server is asked about, each by a request of its own."""


class _FirstLook(NamedTuple):
    """fits: the pod fits as it is. unregistered: the offered nodes that have no devices."""

    fits: bool
    to_empty: Sequence[str] = ()
    unregistered: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ChangeSearch:
    """Finds the changes after which a pod fits.

    index: what holds the devices that would have to become free, and what nodes registered last. objects: whether the
    lock that stopped a bind is still there.
    """

    index: OpenSearch
    objects: Objects
    home_cluster: str
    """The one whose objects the API server has."""

    async def found(
        self,
        request: Request,
        cluster: Cluster,
        summary: AttemptSummarized,
        columns: ClusterColumns,
        lock: AbstractAsyncContextManager[object],
        at: datetime | None,
        unknown: list[str],
    ) -> tuple[ProvedSuggestions, dict[str, str]]:
        """The changes, and by uid the pods in them as the caller may see them; by name those that hold a lock.

        ``at``: now, or None for the time of the attempt, of which the holders of devices are not looked up. What can't
        be known joins ``unknown``.
        """
        ask = Ask.from_attempt(summary.pod, summary.requests, summary.constraints or {}, columns.vendors)
        policy = SchedulingPolicy(summary.node_policy or "binpack", summary.device_policy or "spread")
        trial = Trial(columns, tuple(summary.nodes), policy)
        async with lock:
            look = await asyncio.to_thread(_first_look, trial, ask)
        if look.fits:
            return await self._unlocking(request, cluster, summary, trial, ask, lock, at, unknown)
        held_by, unregistered = await asyncio.gather(
            self._known("holders", self._holders(cluster, look.to_empty, at), unknown),
            self._known(
                "last registrations",
                read_unregistered(
                    self.index, columns.vendors, cluster.name, look.unregistered, at or summary.started_at
                ),
                unknown,
            ),
        )
        if unregistered and unregistered.without:
            unknown.append("registrations")
        # A new one: what it remembers is of the columns as they are under the lock.
        trial = replace(trial)
        async with lock:
            found = await asyncio.to_thread(_search, trial, ask, held_by or {}, unregistered)
        return found, await self._names(request, cluster, held_by or {})

    async def still_there(self, cluster: Cluster, nodes: Collection[str], unknown: list[str]) -> list[str]:
        """Those of the nodes that have not left the cluster; none where nobody can say, which joins ``unknown``."""
        found: list[str] = []
        is_known = cluster.name == self.home_cluster and self.objects.is_connected
        if nodes and is_known:
            try:
                found = await filter_existing_nodes(self.objects, sorted(nodes)[:MAX_LOST])
            except KubeApiError:
                is_known = False
        if nodes and (not is_known or len(nodes) > MAX_LOST):
            unknown.append("lost nodes")
        return found

    async def _holders(self, cluster: Cluster, nodes: Sequence[str], at: datetime | None) -> dict[str, HeldBy]:
        return await read_holders(self.index, cluster.name, nodes, at) if at is not None else {}

    async def _known(self, subject: str, reading: Awaitable[T], unknown: list[str]) -> T | None:
        try:
            return await reading
        except IndexDownError:
            unknown.append(subject)
            return None

    async def _unlocking(
        self,
        request: Request,
        cluster: Cluster,
        summary: AttemptSummarized,
        trial: Trial,
        ask: Ask,
        lock: AbstractAsyncContextManager[object],
        at: datetime | None,
        unknown: list[str],
    ) -> tuple[ProvedSuggestions, dict[str, str]]:
        """Of a pod that fits as it is: the lock of the node to which its bind failed."""
        held = await self._held_lock(cluster, summary.bind, at, unknown)
        if summary.bind is None or held is None:
            return ProvedSuggestions([], [], fits=True), {}
        now = at or summary.bind.ended_at
        async with lock:
            items = await asyncio.to_thread(suggest_unlocking, replace(trial), ask, {held.node: held}, now)
        namespace = held.holder.partition("/")[0]
        readable = await filter_readable_namespaces(get_access(request), cluster, {namespace}) if namespace else ()
        return ProvedSuggestions(items, [], fits=True), {
            held.holder: held.holder if namespace in readable else HIDDEN_POD
        }

    async def _held_lock(
        self, cluster: Cluster, bind: BindOutcome | None, at: datetime | None, unknown: list[str]
    ) -> HeldNodeLock | None:
        """The lock for which the bind failed; None where there was none, or where it is gone by now."""
        holder = bind.lock_holder if bind else None
        if bind is None or holder is None or holder.locked_at is None:
            return None
        recorded = HeldNodeLock(bind.node, holder.pod, holder.locked_at, bind.ended_at)
        if at is None:
            return recorded
        if cluster.name != self.home_cluster or not self.objects.is_connected:
            unknown.append("lock")
            return recorded
        try:
            now = await read_lock(self.objects, bind.node, datetime.now(UTC))
        except KubeApiError:
            unknown.append("lock")
            return recorded
        # One of another time is of another bind, which no bind of this pod has failed for yet.
        return recorded if now and now.since == recorded.since else None

    async def _names(self, request: Request, cluster: Cluster, held_by: Mapping[str, HeldBy]) -> dict[str, str]:
        """By uid, the pod as the caller may see it."""
        pods = {uid: pod for held in held_by.values() for uid, pod in held.pods.items()}
        namespaces = {pod.namespace for pod in pods.values()}
        readable = (
            await filter_readable_namespaces(get_access(request), cluster, namespaces) if namespaces else frozenset()
        )
        return {uid: str(pod) if pod.namespace in readable else HIDDEN_POD for uid, pod in pods.items()}


def _first_look(trial: Trial, ask: Ask) -> _FirstLook:
    if trial.fits(ask):
        return _FirstLook(fits=True)
    unregistered = [name for name in trial.offered if trial.columns.get_entry(name) is None]
    return _FirstLook(False, list_nodes_to_empty(trial, ask), unregistered)


def _search(
    trial: Trial, ask: Ask, held_by: Mapping[str, HeldBy], unregistered: UnregisteredNodes | None
) -> ProvedSuggestions:
    # The lock was given back while the index was asked: pods may have ended since.
    if trial.fits(ask):
        return ProvedSuggestions([], [], fits=True)
    uses = {node: held.uses for node, held in held_by.items()}
    return ProvedSuggestions(
        suggest(trial, ask, uses, unregistered), find_excluding_constraints(trial, ask, unregistered), fits=False
    )
