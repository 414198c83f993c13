"""Binding a pod to the node that the filter chose: take the node's lock, mark the pod, write the binding.

The steps, and every error text, are HAMi v2.10's (`Scheduler.Bind`, `nodelock.LockNode`); three API calls where HAMi
makes eight, because the lock is first tried on the node as the watch shows it. A bind that fails gives its lock back;
the filter's annotations stay in the pod until it is tried again, as HAMi's recorded binds show.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from fit.judge.request import container_requests
from hami import node_lock
from hami.annotations import BIND_PHASE, BIND_TIME, NODE_LOCK, PHASE_ALLOCATING, POD_GROUP
from hami.node_lock import NodeLockError, PodKey, Step
from hami.vendors import ONLY_NVIDIA, Vendors
from kube.errors import KubeApiError, missing
from process.logs import about
from scheduler.bind.bind_request import BindRequest
from scheduler.cluster.cluster_api import ClusterApi, Object, annotation

log = logging.getLogger(__name__)

# HAMi's steps for a lock (nodelock.go): 5 tries, pauses from 100 ms that double, with jitter; 100 ms between two tries
# of a pod group's member.
_TRIES: Final = 5
_FIRST_PAUSE: Final = 0.1
_POLL: Final = 0.1


@dataclass(frozen=True, slots=True)
class LockPolicy:
    """timeout: an older lock is taken over. retry: how long a member of a pod group waits for another's lock."""

    timeout: timedelta = timedelta(minutes=5)
    retry: timedelta = timedelta(seconds=28)


@dataclass(frozen=True, slots=True)
class BindResult:
    """error: why the pod could not be bound, in HAMi's words; empty when it is bound. is_unsure: it may be bound after
    all, since the API server answered neither the bind nor the look-up after it. lock: the node's lock that another
    pod holds, as it is written on the node."""

    error: str = ""
    is_unsure: bool = False
    lock: str = ""


class _ContendedError(Exception):
    """Another pod holds the lock, which is the argument."""


class _LockedError(NodeLockError):
    """The lock of another pod lasted too long."""

    def __init__(self, text: str, lock: str) -> None:
        super().__init__(text)
        self.lock = lock


class Binder:
    """clock: the time in UTC. sleep: waits for so many seconds."""

    def __init__(
        self,
        api: ClusterApi,
        policy: LockPolicy,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        vendors: Vendors = ONLY_NVIDIA,
    ) -> None:
        self._vendors = vendors
        self._api, self._policy, self._clock, self._sleep = api, policy, clock, sleep

    async def bind(self, request: BindRequest, started_at: datetime) -> BindResult:
        """Bind the pod to the node. started_at: written into the pod as its bind time."""
        pod = self._api.known_pod(request.namespace, request.name)
        if pod is None:
            return BindResult(str(missing("pod", request.name)))
        if self._api.known_node(request.node) is None:
            return BindResult(str(missing("node", request.node)))
        locks = needs_lock(pod, self._vendors)
        try:
            if locks:
                await self._lock(request, waits=_is_member(pod))
            return await self._write(request, started_at)
        except (KubeApiError, NodeLockError) as error:
            if locks:
                # A lock that is left behind would refuse every other pod of the node until it expires.
                await self._release(request)
            return BindResult(str(error), lock=error.lock if isinstance(error, _LockedError) else "")

    async def _write(self, request: BindRequest, started_at: datetime) -> BindResult:
        # Written before the binding: `bind_recovery` recognizes our bind by this time.
        marks = {BIND_PHASE: PHASE_ALLOCATING, BIND_TIME: bind_time(started_at)}
        await self._api.patch_pod(request.namespace, request.name, request.uid, marks)
        try:
            await self._api.bind(request.namespace, request.name, request.uid, request.node)
        except KubeApiError as error:
            if not error.is_unsure:
                raise
            return await self._look_up_outcome(request, error)
        return BindResult()

    async def _look_up_outcome(self, request: BindRequest, cause: KubeApiError) -> BindResult:
        """The result of a binding whose answer was lost. Raises `cause` where it certainly did not take place."""
        try:
            pod = await self._api.get_pod(request.namespace, request.name)
        except KubeApiError as error:
            if error.is_missing:
                raise cause from None
            # Returned, not raised, so the lock is kept: if the pod is bound, its device plugin releases it.
            return BindResult(str(cause), is_unsure=True)
        if pod["metadata"].get("uid") == request.uid and (pod.get("spec") or {}).get("nodeName") == request.node:
            return BindResult()
        raise cause

    async def _lock(self, request: BindRequest, *, waits: bool) -> None:
        """Raises `NodeLockError` where the lock can't be had, `KubeApiError` where the API server fails."""
        pod, give_up = (request.namespace, request.name), self._clock() + self._policy.retry
        while True:
            try:
                await self._take(request.node, pod)
            except _ContendedError as contended:
                text, lock = node_lock.contention_error(request.node, self._policy.timeout), str(contended)
                # HAMi waits for another pod's lock only on behalf of a pod group's member (`--node-lock-retry-
                # timeout`).
                if not waits or not self._policy.retry:
                    raise _LockedError(text, lock) from None
                if self._clock() > give_up:
                    raise _LockedError(node_lock.wait_error(request.node, self._policy.retry), lock) from None
                await self._sleep(_POLL)
            else:
                return

    async def _take(self, node: str, pod: PodKey) -> None:
        """Write our lock into the node, unless another pod's is there; try again whenever the node has changed."""
        pause, cause = _FIRST_PAUSE, ""
        for attempt in range(_TRIES):
            if attempt:
                # With jitter, so that two schedulers that collide once do not collide again.
                await self._sleep(pause * (1 + random.random() / 2))  # noqa: S311 - no secret
                pause *= 2
            # Only the first try trusts the watch: after a conflict it may still show the version that was refused.
            found = (None if attempt else self._free_as_known(node)) or await self._api.get_node(node)
            if await self._is_ours_already(found, pod):
                return
            lock = {NODE_LOCK: node_lock.format_lock(self._clock(), pod)}
            try:
                # With the version, so that of two schedulers that see the node unlocked the API server refuses one.
                await self._api.patch_node(node, lock, _version(found))
            except KubeApiError as error:
                if not error.is_conflict:
                    raise
                cause = str(error)
            else:
                return
        raise NodeLockError(node_lock.conflict_error(node, cause))

    def _free_as_known(self, node: str) -> Object | None:
        """The node as last seen, if it was unlocked. Where that is outdated, our write meets a conflict."""
        found = self._api.known_node(node)
        is_free = found and _version(found) and annotation(found, NODE_LOCK) is None
        return found if is_free else None

    async def _is_ours_already(self, node: Object, pod: PodKey) -> bool:
        """Whether the lock is held by this pod; False: it may be taken. Raises `_ContendedError`."""
        value = annotation(node, NODE_LOCK)
        step = node_lock.next_step(value, pod, self._clock(), self._policy.timeout)
        # HAMi also takes over the lock of a pod that does not exist any more, however young the lock is.
        if step is Step.CONTENDED or (
            step is Step.CHECK_OWNER and value is not None and await self._has_live_owner(value)
        ):
            raise _ContendedError(value or "")
        return step is Step.KEEP

    async def _has_live_owner(self, value: str) -> bool:
        owner = node_lock.owner_of(value)
        # The legacy form of a lock is a time alone.
        if owner is None:
            return False
        try:
            await self._api.get_pod(*owner)
        except KubeApiError as error:
            if error.is_missing:
                return False
            raise
        return True

    async def _release(self, request: BindRequest) -> None:
        """Remove our lock from the node, but never another pod's. A lock that can't be removed expires."""
        pod, pause, cause = (request.namespace, request.name), _FIRST_PAUSE, ""
        for tries_left in reversed(range(_TRIES)):
            try:
                found = await self._api.get_node(request.node)
                if node_lock.is_ours_to_release(annotation(found, NODE_LOCK), pod):
                    await self._api.patch_node(request.node, {NODE_LOCK: None}, _version(found))
            except KubeApiError as error:
                cause = str(error)
                if error.is_missing:
                    return
                if error.is_unsure and tries_left:
                    # What broke the bind (a connection that was cut) often breaks this too, and is over soon. A lock
                    # that stays would keep the node's other pods waiting for minutes.
                    await self._sleep(pause)
                    pause *= 2
                elif not error.is_conflict:
                    break
            else:
                return
        log.warning(
            "the lock of node %s could not be released (%s); it expires", request.node, cause,
            extra=about(pod=f"{request.namespace}/{request.name}"),
        )  # fmt: skip


def bind_time(started_at: datetime) -> str:
    """As HAMi writes it: seconds since 1970."""
    return str(int(started_at.timestamp()))


def needs_lock(pod: Object, vendors: Vendors) -> bool:
    """Whether the device plugin will allocate for the pod. As with HAMi, init containers alone do not count."""
    return any(request.asks and not request.is_init for request in container_requests(pod, vendors))


def _is_member(pod: Object) -> bool:
    labels = pod["metadata"].get("labels")
    return isinstance(labels, Mapping) and bool(labels.get(POD_GROUP))


def _version(node: Object) -> str:
    return str(node["metadata"].get("resourceVersion", ""))
