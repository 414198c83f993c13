"""Binding a pod to the node that the filter chose: take the node's lock, mark the pod, write the binding.

The steps, and every error text, are HAMi v2.10's (`Scheduler.Bind`, `nodelock.LockNode`); three API calls where HAMi
makes eight, because the lock is first tried on the node as the watch shows it. A bind that fails gives its lock back;
the filter's annotations stay in the pod until it is tried again, as HAMi's recorded binds show.

The mark and the binding name the version of the pod that they are made from. So a pod is bound only with annotations
that were read here, however late a request arrives: a write of others meanwhile makes the binding a conflict, and a
binding that came first makes that write one.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from engine.fit.judge.request.pod_request import list_requests
from engine.hami.annotations import ASSIGNED_NODE, BIND_PHASE, BIND_TIME, PHASE_ALLOCATING, POD_GROUP
from engine.hami.node_lock import NodeLockError
from engine.hami.vendors import ONLY_NVIDIA, Vendors, get_rules
from runtime.kubernetes.errors import KubeApiError, build_missing_error
from scheduler.bind.bind_request import BindRequest
from scheduler.bind.node_locks import LockedError, LockPolicy, NodeLocks, Obstacle, ObstacleError
from scheduler.cluster.cluster_api import ClusterApi, Object, get_annotation, get_bound_node, get_version

_TRIES: Final = 5

UNMARKED: Final[Mapping[str, str | None]] = {BIND_PHASE: None, BIND_TIME: None}
"""Written into a marked pod, it makes every binding that is still on its way a conflict."""


@dataclass(frozen=True, slots=True)
class BindResult:
    """error: why the pod could not be bound, in HAMi's words; empty when it is bound. is_unsure: it may be bound after
    all, since the API server answered neither the bind nor the look-up after it. lock: the node's lock that another
    pod holds, as it is written on the node."""

    error: str = ""
    is_unsure: bool = False
    lock: str = ""


class Binder:
    """clock: the time in UTC. sleep: waits for so many seconds. monotonic: a time that is never set back."""

    def __init__(
        self,
        api: ClusterApi,
        policy: LockPolicy,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        vendors: Vendors = ONLY_NVIDIA,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api, self._vendors = api, vendors
        self._locks = NodeLocks(api, policy, clock, sleep, monotonic)

    async def bind(self, request: BindRequest, started_at: datetime, obstacle: Obstacle = lambda: "") -> BindResult:
        """Bind the pod to the node. started_at: written into the pod as its bind time.

        obstacle: asked again before each write into the pod, without an await between the two.
        """
        pod = self._api.get_pod_seen(request.namespace, request.name)
        if pod is None:
            return BindResult(str(build_missing_error("pod", request.name)))
        if self._api.get_node_seen(request.node) is None:
            return BindResult(str(build_missing_error("node", request.node)))
        locks = needs_lock(pod, self._vendors)
        try:
            if locks:
                await self._locks.take(request, obstacle, waits=_is_member(pod))
            return await self._write(request, pod, started_at, obstacle)
        except (KubeApiError, NodeLockError, ObstacleError) as error:
            if locks:
                # A lock that is left behind would refuse every other pod of the node until it expires.
                await self._locks.release(request)
            return BindResult(str(error), lock=error.lock if isinstance(error, LockedError) else "")

    async def _write(self, request: BindRequest, pod: Object, started_at: datetime, obstacle: Obstacle) -> BindResult:
        # Written before the binding: `bind_recovery` recognizes our bind by this time.
        marks = {BIND_PHASE: PHASE_ALLOCATING, BIND_TIME: format_bind_time(started_at)}
        # As last seen: the lock may have been waited for.
        pod = self._api.get_pod_seen(request.namespace, request.name) or pod
        for tries_left in reversed(range(_TRIES)):
            try:
                _check(pod, request, obstacle())
                marked = await self._api.patch_pod(get_version(pod)._replace(uid=request.uid), marks)
                _check(marked, request, obstacle())
                return await self._post(request, marked)
            except KubeApiError as error:
                if not error.is_conflict or not tries_left:
                    raise
                # Somebody wrote into the pod, which is common (a condition, a label), or bound it.
                pod = await self._read_again(request, error)
                if _is_bound(pod, request):
                    return BindResult()
        raise AssertionError("the last try returns or raises")

    async def _post(self, request: BindRequest, pod: Object) -> BindResult:
        try:
            await self._api.bind(get_version(pod)._replace(uid=request.uid), request.node)
        except KubeApiError as error:
            if not error.is_unsure:
                raise
            return await self._look_up_outcome(request, error)
        return BindResult()

    async def _read_again(self, request: BindRequest, cause: KubeApiError) -> Object:
        """Read the pod as it is now. Raises `cause` where that can't be known or another pod has its name."""
        try:
            pod = await self._api.get_pod(request.namespace, request.name)
        except KubeApiError:
            raise cause from None
        if get_version(pod).uid != request.uid:
            raise cause
        return pod

    async def _look_up_outcome(self, request: BindRequest, cause: KubeApiError) -> BindResult:
        """Look up a binding whose answer was lost. Raises `cause` where it did not and will not take place."""
        for _ in range(_TRIES):
            try:
                pod = await self._api.get_pod(request.namespace, request.name)
                if get_version(pod).uid != request.uid or get_bound_node(pod):
                    break
                # The request may still be on its way: after this write, it would be a conflict.
                await self._api.patch_pod(get_version(pod), UNMARKED)
            except KubeApiError as error:
                if error.is_missing:
                    raise cause from None
                if not error.is_conflict:
                    # Returned, not raised, so the lock is kept: if the pod is bound, its device plugin releases it.
                    return BindResult(str(cause), is_unsure=True)
            else:
                raise cause
        else:
            return BindResult(str(cause), is_unsure=True)
        if _is_bound(pod, request):
            return BindResult()
        raise cause


def _is_bound(pod: Object, request: BindRequest) -> bool:
    return get_version(pod).uid == request.uid and get_bound_node(pod) == request.node


def _check(pod: Object, request: BindRequest, obstacle: str) -> None:
    """Check that the pod may still be bound to the node. Raises `ObstacleError`."""
    # A pod without the annotation was never decided about (`--whole-nodes=simulate`): HAMi binds it too.
    says = get_annotation(pod, ASSIGNED_NODE)
    if not obstacle and says not in (None, request.node):
        obstacle = f"pod {request.name} was assigned to node {says} meanwhile, not to {request.node}"
    if obstacle:
        raise ObstacleError(obstacle)


def format_bind_time(started_at: datetime) -> str:
    """Format the time as HAMi writes it: seconds since 1970."""
    return str(int(started_at.timestamp()))


def needs_lock(pod: Object, vendors: Vendors) -> bool:
    """Tell whether the device plugin will allocate for the pod. With HAMi up to v2.10 init containers do not count."""
    counts_init = get_rules(vendors).locks_for_init
    return any(request.asks and (counts_init or not request.is_init) for request in list_requests(pod, vendors))


def _is_member(pod: Object) -> bool:
    labels = pod["metadata"].get("labels")
    return isinstance(labels, Mapping) and bool(labels.get(POD_GROUP))
