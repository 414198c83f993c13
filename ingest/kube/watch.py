"""Watching a cluster: lists and watches of pods, nodes, events and KAI's pod groups, into a reader, into Kafka.

There is no checkpoint: what a list tells again has the ids it had before. Events that were deleted while nobody watched
(Kubernetes keeps them for an hour) are lost; the conditions of pods that still wait are not.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime
from typing import Final

from ingest.kube.reader import Kind, KubeEvents
from ingest.metrics import Metrics
from ingest.pump import MAX_BATCH, Sink
from kube.client import Client
from kube.credentials import ApiCredentials, LoadConfiguration
from kube.errors import KubeApiError
from kube.reflector import Reflector, Selection, WatchTimeouts
from kube.resources import EVENTS, NODES, PODS, Json, Resource
from kube.store import ObjectRef
from schemas.events import Event, PodRef

log = logging.getLogger(__name__)

SETTLE_SECONDS: Final = 0.5
PATIENCE: Final = WatchTimeouts(stale_seconds=5)
POD_GROUPS: Final = Resource("/apis/scheduling.run.ai/v2alpha2", "podgroups")
"""Of KAI; a cluster without KAI has no such resource."""
FORBIDDEN: Final = 403
NOT_FOUND: Final = 404


class _Heard:
    """One kind of objects, as a reflector tells of them. They are read at once: events take less room than objects."""

    def __init__(self, kind: Kind, reader: KubeEvents, told: deque[Event]) -> None:
        self._kind, self._reader, self._told = kind, reader, told

    def changed(self, found: Json) -> None:
        try:
            self._told.extend(self._reader.changed(self._kind, found, time.monotonic()))
        except Exception:
            # One odd object must not end the watch of all others.
            log.exception("a defect: a %s could not be read: %.300s", self._kind, found.get("metadata"))

    def gone(self, ref: ObjectRef) -> None:
        if self._kind == "pod":
            pod = PodRef(namespace=ref.key.namespace, name=ref.key.name, uid=ref.uid)
            self._told.extend(self._reader.gone(pod, datetime.now(UTC)))


def _never() -> bool:
    return False


async def watch(
    load: LoadConfiguration,
    reader: KubeEvents,
    sink: Sink,
    metrics: Metrics,
    *,
    namespace: str = "",
    until: Callable[[], bool] = _never,
) -> None:
    """Watch until ``until`` says so; then what waits is told. ``namespace``: of pods and events; empty: all.

    Raises ``KubeConfigError``, and what the sink raises.
    """
    told: deque[Event] = deque()
    async with AsyncExitStack() as closing:
        client = Client(await ApiCredentials.open(load))
        closing.push_async_callback(client.close)
        pods, nodes, *rest = (
            Reflector(client, Selection(resource, of), _Heard(kind, reader, told), PATIENCE)
            for resource, kind, of in await _kinds(client, namespace)
        )
        said: dict[Reflector, str] = {}
        tasks = [asyncio.create_task(each.run()) for each in (pods, nodes)]
        closing.push_async_callback(_end, tasks)
        # An event knows of its pod only what was read before it: what it asks for, where it waits.
        tasks += [asyncio.create_task(_after(pods, each)) for each in rest]
        while not until():
            _raise_from(tasks)
            _say_what_is_missing((pods, nodes, *rest), said)
            told.extend(reader.settle(time.monotonic()))
            await _send(sink, told)
            metrics.note(reader.counts)
            await asyncio.sleep(SETTLE_SECONDS)
        told.extend(reader.close())
        await _send(sink, told)
        metrics.note(reader.counts)


async def _kinds(client: Client, namespace: str) -> list[tuple[Resource, Kind, str]]:
    always: list[tuple[Resource, Kind, str]] = [
        (PODS, "pod", namespace), (NODES, "node", ""), (EVENTS, "event", namespace),
    ]  # fmt: skip
    return [*always, (POD_GROUPS, "pod group", namespace)] if await _can_list(client, POD_GROUPS, namespace) else always


async def _can_list(client: Client, resource: Resource, namespace: str) -> bool:
    """Does the cluster have the resource, and may we read it?"""
    try:
        await client.page(resource.collection(namespace), limit=1)
    except KubeApiError as error:
        if error.status == FORBIDDEN:
            log.warning("if KAI runs here, its pod groups are not read: %s", error)
        # An API server that is down for a moment has the resource, for all that is known.
        return error.status not in (FORBIDDEN, NOT_FOUND)
    return True


async def _after(first: Reflector, then: Reflector) -> None:
    await first.synced()
    await then.run()


def _say_what_is_missing(reflectors: Iterable[Reflector], said: dict[Reflector, str]) -> None:
    """Each trouble once: a right that is not granted keeps a reflector asking for ever."""
    for each in reflectors:
        problem = each.problem if each.last_error else ""
        if problem and problem != said.get(each):
            log.warning("%s; asking again until it is mended", problem)
        elif not problem and said.get(each):
            log.warning("mended: %s", said[each])
        said[each] = problem


def _raise_from(tasks: list[asyncio.Task[None]]) -> None:
    """A reflector never ends by itself: one that has ended failed."""
    for task in tasks:
        if task.done():
            task.result()


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _send(sink: Sink, told: deque[Event]) -> None:
    while told:
        await sink.send([told.popleft() for _ in range(min(len(told), MAX_BATCH))])
