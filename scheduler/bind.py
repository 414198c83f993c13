"""Binding a pod to the node that the filter chose: take the node's lock, mark the pod, write the binding.

The steps, and every error text, are HAMi v2.10's (`Scheduler.Bind`, `nodelock.LockNode`); four API calls where HAMi
makes nine. A bind that fails gives its lock back.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from scheduler import node_lock
from scheduler.cluster.cluster_api import ApiError, ClusterApi, Object, annotation, missing
from scheduler.devices.vendors import ONLY_NVIDIA
from scheduler.extender import BindArgs
from scheduler.judge.request import container_requests
from scheduler.node_lock import LOCK, LockError, PodKey, Step

log = logging.getLogger(__name__)

BIND_PHASE: Final = "hami.io/bind-phase"
BIND_TIME: Final = "hami.io/bind-time"
POD_GROUP: Final = "scheduling.x-k8s.io/pod-group"
"""Members of a group wait for the lock, since one that gives up holds back all."""

_TRIES: Final = 5
_FIRST_PAUSE: Final = 0.1
_POLL: Final = 0.1


@dataclass(frozen=True, slots=True)
class LockPolicy:
    """timeout: an older lock is taken over. retry: how long a member of a pod group waits for another's lock."""

    timeout: timedelta = timedelta(minutes=5)
    retry: timedelta = timedelta(seconds=28)


class _ContendedError(Exception):
    """Another pod holds the lock."""


class Binder:
    """`clock` tells the time in UTC; `sleep` waits for seconds."""

    def __init__(
        self,
        api: ClusterApi,
        policy: LockPolicy,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._api, self._policy, self._clock, self._sleep = api, policy, clock, sleep

    async def bind(self, asked: BindArgs) -> str:
        """Why the pod could not be bound, in HAMi's words; empty when it is bound."""
        pod = self._api.known_pod(asked.namespace, asked.name)
        if pod is None:
            return str(missing("pod", asked.name))
        if self._api.known_node(asked.node) is None:
            return str(missing("node", asked.node))
        locks, began = needs_lock(pod), self._clock()
        try:
            if locks:
                await self._lock(asked, waits=_is_member(pod))
            await self._write(asked, began)
        except (ApiError, LockError) as error:
            if locks:
                await self._release(asked)
            return str(error)
        return ""

    async def _write(self, asked: BindArgs, began: datetime) -> None:
        marks = {BIND_PHASE: "allocating", BIND_TIME: str(int(began.timestamp()))}
        await self._api.patch_pod(asked.namespace, asked.name, marks)
        await self._api.bind(asked.namespace, asked.name, asked.uid, asked.node)

    async def _lock(self, asked: BindArgs, *, waits: bool) -> None:
        """Raises `LockError` where the lock can't be had, `ApiError` where the API server fails."""
        pod, give_up = (asked.namespace, asked.name), self._clock() + self._policy.retry
        while True:
            try:
                await self._take(asked.node, pod)
            except _ContendedError:
                if not waits or not self._policy.retry:
                    raise LockError(node_lock.contended(asked.node, self._policy.timeout)) from None
                if self._clock() > give_up:
                    raise LockError(node_lock.waited_in_vain(asked.node, self._policy.retry)) from None
                await self._sleep(_POLL)
            else:
                return

    async def _take(self, node: str, pod: PodKey) -> None:
        """Write our lock into the node, unless another pod's is there; anew each time that the node has changed."""
        pause, cause = _FIRST_PAUSE, ""
        for attempt in range(_TRIES):
            if attempt:
                # Spread, so that two schedulers that collide once do not collide again.
                await self._sleep(pause * (1 + random.random() / 2))  # noqa: S311 - no secret
                pause *= 2
            found = await self._api.get_node(node)
            if await self._is_ours_already(found, pod):
                return
            lock = {LOCK: node_lock.format_lock(self._clock(), pod)}
            try:
                await self._api.patch_node(node, lock, _version(found))
            except ApiError as error:
                if not error.is_conflict:
                    raise
                cause = str(error)
            else:
                return
        raise LockError(node_lock.unsettled(node, cause))

    async def _is_ours_already(self, node: Object, pod: PodKey) -> bool:
        """Whether the lock is held by this pod; False: it may be taken. Raises `_ContendedError`."""
        value = annotation(node, LOCK)
        step = node_lock.next_step(value, pod, self._clock(), self._policy.timeout)
        if step is Step.CONTENDED or (step is Step.ASK and value is not None and await self._has_live_owner(value)):
            raise _ContendedError
        return step is Step.KEEP

    async def _has_live_owner(self, value: str) -> bool:
        owner = node_lock.owner_of(value)
        if owner is None:
            return False
        try:
            await self._api.get_pod(*owner)
        except ApiError as error:
            if error.is_missing:
                return False
            raise
        return True

    async def _release(self, asked: BindArgs) -> None:
        """Take our lock off the node. What is not ours stays; what can't be removed expires."""
        pod = (asked.namespace, asked.name)
        for _ in range(_TRIES):
            try:
                found = await self._api.get_node(asked.node)
                if node_lock.is_ours_to_release(annotation(found, LOCK), pod):
                    await self._api.patch_node(asked.node, {LOCK: None}, _version(found))
            except ApiError as error:
                if error.is_conflict:
                    continue
                if not error.is_missing:
                    log.warning("the lock of node %s could not be released (%s); it expires", asked.node, error)
            return


def needs_lock(pod: Object) -> bool:
    """Whether the device plugin will hand something over. As with HAMi, init containers alone do not count."""
    return any(asked.asks and not asked.is_init for asked in container_requests(pod, ONLY_NVIDIA))


def _is_member(pod: Object) -> bool:
    return bool((pod["metadata"].get("labels") or {}).get(POD_GROUP))


def _version(node: Object) -> str:
    return str(node["metadata"].get("resourceVersion", ""))
