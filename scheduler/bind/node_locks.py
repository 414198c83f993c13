"""The lock of a node, an annotation of it: one pod at a time is bound there, until its devices are allocated.

The steps, and every error text, are HAMi v2.10's (`nodelock.LockNode`); the lock is first tried on the node as the
watch shows it, which saves HAMi's first read.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from engine.hami import node_lock
from engine.hami.annotations import NODE_LOCK
from engine.hami.node_lock import NodeLockError, PodKey, Step
from runtime.kubernetes.errors import KubeApiError
from runtime.telemetry.logs import identify_subject
from scheduler.bind.bind_request import BindRequest
from scheduler.cluster.cluster_api import ClusterApi, Object, get_annotation

log = logging.getLogger(__name__)

# HAMi's steps for a lock (nodelock.go): 5 tries, pauses from 100 ms that double, with jitter; 100 ms between two tries
# of a pod group's member.
_TRIES: Final = 5
_FIRST_PAUSE: Final = 0.1
_POLL: Final = 0.1

Obstacle = Callable[[], str]
"""Source of the reason why the bind must not continue; empty while it may."""


@dataclass(frozen=True, slots=True)
class LockPolicy:
    """timeout: an older lock is taken over. retry: how long a member of a pod group waits for another's lock."""

    timeout: timedelta = timedelta(minutes=5)
    retry: timedelta = timedelta(seconds=28)


class _ContendedError(Exception):
    """Another pod holds the lock, which is the argument."""


class ObstacleError(Exception):
    """The pod must not be bound to the node any more; the argument says why."""


class LockedError(NodeLockError):
    """The lock of another pod lasted too long."""

    def __init__(self, text: str, lock: str) -> None:
        super().__init__(text)
        self.lock = lock


class NodeLocks:
    """clock: the time in UTC, which the lock holds. sleep: waits for so many seconds."""

    def __init__(
        self,
        api: ClusterApi,
        policy: LockPolicy,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api, self._policy, self._clock, self._sleep, self._monotonic = api, policy, clock, sleep, monotonic

    async def take(self, request: BindRequest, obstacle: Obstacle, *, waits: bool) -> None:
        """Take the lock. Raises `NodeLockError` where it can't be had, `ObstacleError`, and `KubeApiError`."""
        # Not by the clock: one that is set back would keep a pod's bind waiting for as long.
        pod, give_up = (request.namespace, request.name), self._monotonic() + self._policy.retry.total_seconds()
        while True:
            if problem := obstacle():
                raise ObstacleError(problem)
            try:
                await self._take(request.node, pod)
            except _ContendedError as contended:
                text, lock = node_lock.describe_contention(request.node, self._policy.timeout), str(contended)
                # HAMi waits for another pod's lock only on behalf of a pod group's member (`--node-lock-retry-
                # timeout`).
                if not waits or not self._policy.retry:
                    raise LockedError(text, lock) from None
                if self._monotonic() > give_up:
                    raise LockedError(node_lock.describe_wait(request.node, self._policy.retry), lock) from None
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
            node_object = (None if attempt else self._get_unlocked(node)) or await self._api.get_node(node)
            if await self._is_ours_already(node_object, pod):
                return
            lock = {NODE_LOCK: node_lock.format_lock(self._clock(), pod)}
            try:
                # With the version, so that of two schedulers that see the node unlocked the API server refuses one.
                await self._api.patch_node(node, lock, _get_version(node_object))
            except KubeApiError as error:
                if not error.is_conflict:
                    raise
                cause = str(error)
            else:
                return
        raise NodeLockError(node_lock.describe_conflict(node, cause))

    def _get_unlocked(self, node: str) -> Object | None:
        """Return the node as last seen, if it was unlocked. Where that is outdated, our write meets a conflict."""
        node_object = self._api.get_node_seen(node)
        is_free = node_object and _get_version(node_object) and get_annotation(node_object, NODE_LOCK) is None
        return node_object if is_free else None

    async def _is_ours_already(self, node: Object, pod: PodKey) -> bool:
        """Tell whether this pod holds the lock; False: it may be taken. Raises `_ContendedError`."""
        value = get_annotation(node, NODE_LOCK)
        step = node_lock.choose_step(value, pod, self._clock(), self._policy.timeout)
        # HAMi also takes over the lock of a pod that does not exist any more, however young the lock is.
        if step is Step.CONTENDED or (
            step is Step.CHECK_OWNER and value is not None and await self._has_live_owner(value)
        ):
            raise _ContendedError(value or "")
        return step is Step.KEEP

    async def _has_live_owner(self, value: str) -> bool:
        owner = node_lock.parse_owner(value)
        # The legacy form of a lock is only a time.
        if owner is None:
            return False
        try:
            await self._api.get_pod(*owner)
        except KubeApiError as error:
            if error.is_missing:
                return False
            raise
        return True

    async def release(self, request: BindRequest) -> None:
        """Remove our lock from the node, but never another pod's. A lock that can't be removed expires."""
        pod, pause, cause = (request.namespace, request.name), _FIRST_PAUSE, ""
        for tries_left in reversed(range(_TRIES)):
            try:
                node_object = await self._api.get_node(request.node)
                if node_lock.is_ours_to_release(get_annotation(node_object, NODE_LOCK), pod):
                    await self._api.patch_node(request.node, {NODE_LOCK: None}, _get_version(node_object))
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
            extra=identify_subject(pod=f"{request.namespace}/{request.name}"),
        )  # fmt: skip


def _get_version(node: Object) -> str:
    return str(node["metadata"].get("resourceVersion", ""))
