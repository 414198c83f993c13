"""Search for changes after which a pod fits: reads the facts that the fit needs, and asks the fit under the lock."""

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
from engine.suggestions.ask import Ask, Constraint
from engine.suggestions.exclusion import find_excluding_constraints
from engine.suggestions.nodes import HeldNodeLock, UnregisteredNodes, list_withheld_nodes, suggest_unlocking
from engine.suggestions.suggest import suggest
from engine.suggestions.suggestion import Suggestion
from engine.suggestions.trial import Trial
from engine.summaries.named_pods import HIDDEN_POD
from runtime.kubernetes.errors import KubeApiError
from schemas.events import AttemptSummarized, BindOutcome

T = TypeVar("T")

MAX_LOST: Final = 50
"""Maximum number of nodes without devices that are looked up, each with one request to the API server."""


class _FirstLook(NamedTuple):
    """Result of a first trial. fits: the pod fits without a change. unregistered: offered nodes without devices."""

    fits: bool
    to_empty: Sequence[str] = ()
    unregistered: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ChangeSearch:
    """Search for changes after which a pod fits.

    index: has the holders of devices, and the last registrations of nodes. objects: have the lock that stopped a bind.
    """

    index: OpenSearch
    objects: Objects
    home_cluster: str
    """Cluster whose objects the API server has."""

    async def find_changes(
        self,
        request: Request,
        cluster: Cluster,
        summary: AttemptSummarized,
        columns: ClusterColumns,
        lock: AbstractAsyncContextManager[object],
        moment: datetime | None,
        unknown: list[str],
        *,
        finds_constraints: bool = True,
    ) -> tuple[ProvedSuggestions, dict[str, str]]:
        """Find the changes, and the names of the pods in them that the caller may see, by uid (by name for locks).

        ``moment``: now, or None for the time of the attempt, without the holders of devices. Subjects that can't be
        read join ``unknown``. finds_constraints: find also the constraints that exclude every node.
        """
        ask = Ask.from_attempt(summary.pod, summary.requests, summary.constraints or {}, columns.vendors)
        policy = SchedulingPolicy(summary.node_policy or "binpack", summary.device_policy or "spread")
        trial = Trial(columns, tuple(summary.nodes), policy)
        async with lock:
            look = await asyncio.to_thread(_try_first, trial, ask)
        if look.fits:
            return await self._find_unlocking(request, cluster, summary, trial, ask, lock, moment, unknown)
        withheld = list_withheld_nodes(summary)
        registrable = [name for name in look.unregistered if name not in withheld]
        held_by, unregistered = await asyncio.gather(
            self._read_or_note("holders", self._read_holders(cluster, look.to_empty, moment), unknown),
            self._read_or_note(
                "last registrations",
                read_unregistered(self.index, columns.vendors, cluster.name, registrable, moment or summary.started_at),
                unknown,
            ),
        )
        if unregistered and unregistered.without:
            unknown.append("registrations")
        # A new trial, because a trial remembers the columns as they were under the lock.
        trial = replace(trial)
        async with lock:
            items = await asyncio.to_thread(_search, trial, ask, held_by or {}, unregistered)
            excluded_by: list[Constraint] = []
            if items is not None and finds_constraints:
                excluded_by = await asyncio.to_thread(find_excluding_constraints, trial, ask, unregistered)
        changes = ProvedSuggestions(items or [], excluded_by, fits=items is None)
        return changes, await self._name_pods(request, cluster, held_by or {})

    async def filter_present_nodes(self, cluster: Cluster, nodes: Collection[str], unknown: list[str]) -> list[str]:
        """Filter the nodes that have not left the cluster; if that can't be read, return none and note it."""
        present: list[str] = []
        is_known = cluster.name == self.home_cluster and self.objects.is_connected
        if nodes and is_known:
            try:
                present = await filter_existing_nodes(self.objects, sorted(nodes)[:MAX_LOST])
            except KubeApiError:
                is_known = False
        if nodes and (not is_known or len(nodes) > MAX_LOST):
            unknown.append("lost nodes")
        return present

    async def _read_holders(self, cluster: Cluster, nodes: Sequence[str], moment: datetime | None) -> dict[str, HeldBy]:
        return await read_holders(self.index, cluster.name, nodes, moment) if moment is not None else {}

    async def _read_or_note(self, subject: str, reading: Awaitable[T], unknown: list[str]) -> T | None:
        try:
            return await reading
        except IndexDownError:
            unknown.append(subject)
            return None

    async def _find_unlocking(
        self,
        request: Request,
        cluster: Cluster,
        summary: AttemptSummarized,
        trial: Trial,
        ask: Ask,
        lock: AbstractAsyncContextManager[object],
        moment: datetime | None,
        unknown: list[str],
    ) -> tuple[ProvedSuggestions, dict[str, str]]:
        """Suggest to remove the lock of the node to which the bind of a fitting pod failed."""
        held = await self._find_held_lock(cluster, summary.bind, moment, unknown)
        if summary.bind is None or held is None:
            return ProvedSuggestions([], [], fits=True), {}
        now = moment or summary.bind.ended_at
        async with lock:
            items = await asyncio.to_thread(suggest_unlocking, replace(trial), ask, {held.node: held}, now)
        namespace = held.holder.partition("/")[0]
        readable = await filter_readable_namespaces(get_access(request), cluster, {namespace}) if namespace else ()
        return ProvedSuggestions(items, [], fits=True), {
            held.holder: held.holder if namespace in readable else HIDDEN_POD
        }

    async def _find_held_lock(
        self, cluster: Cluster, bind: BindOutcome | None, moment: datetime | None, unknown: list[str]
    ) -> HeldNodeLock | None:
        """Find the lock for which the bind failed; None if there was none, or if it has been removed."""
        holder = bind.lock_holder if bind else None
        if bind is None or holder is None or holder.locked_at is None:
            return None
        recorded = HeldNodeLock(bind.node, holder.pod, holder.locked_at, bind.ended_at)
        if moment is None:
            return recorded
        if cluster.name != self.home_cluster or not self.objects.is_connected:
            unknown.append("lock")
            return recorded
        try:
            now = await read_lock(self.objects, bind.node, datetime.now(UTC))
        except KubeApiError:
            unknown.append("lock")
            return recorded
        # A lock of another time belongs to another bind, for which no bind of this pod has failed yet.
        return recorded if now and now.since == recorded.since else None

    async def _name_pods(self, request: Request, cluster: Cluster, held_by: Mapping[str, HeldBy]) -> dict[str, str]:
        """Name the pods by uid as the caller may see them."""
        pods = {uid: pod for held in held_by.values() for uid, pod in held.pods.items()}
        namespaces = {pod.namespace for pod in pods.values()}
        readable = (
            await filter_readable_namespaces(get_access(request), cluster, namespaces) if namespaces else frozenset()
        )
        return {uid: str(pod) if pod.namespace in readable else HIDDEN_POD for uid, pod in pods.items()}


def _try_first(trial: Trial, ask: Ask) -> _FirstLook:
    if trial.fits(ask):
        return _FirstLook(fits=True)
    unregistered = [name for name in trial.offered if trial.columns.get_entry(name) is None]
    return _FirstLook(False, list_nodes_to_empty(trial, ask), unregistered)


def _search(
    trial: Trial, ask: Ask, held_by: Mapping[str, HeldBy], unregistered: UnregisteredNodes | None
) -> list[Suggestion] | None:
    """Search for changes; None if the pod fits without any: pods may have ended while the index answered."""
    if trial.fits(ask):
        return None
    uses = {node: held.uses for node, held in held_by.items()}
    return suggest(trial, ask, uses, unregistered)
