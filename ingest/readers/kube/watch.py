"""Lists and watches pods, nodes, events, pod groups and claims, feeds the reader, and sends its events to the sink.

There is no checkpoint: objects that are listed again give events with the same ids. Events that Kubernetes deleted
(after an hour) while the watch was down are lost; the conditions of pods that still wait are not.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Final, Protocol

from engine.device_parts.koordinator import DEVICE
from ingest.readers.kube.judged_kinds import CLAIMS, WATCHED_ANYWAY
from ingest.readers.kube.judged_objects import JudgedObjects
from ingest.readers.kube.judged_watches import (
    FORBIDDEN,
    NOT_FOUND,
    JudgedFeed,
    build_reflectors,
    describe_problem,
    read_release,
)
from ingest.readers.kube.node_checks import CHECK_SECONDS, HamiNodeChecks
from ingest.readers.kube.owners import DescribingSink, Owners
from ingest.readers.kube.reader import KubeEvents, ObjectKind
from ingest.reading.metrics import Metrics
from ingest.reading.protocol import Sink
from ingest.reading.pump import MAX_BATCH
from runtime.kubernetes.client import Client
from runtime.kubernetes.credentials import ApiCredentials, LoadConfiguration
from runtime.kubernetes.errors import KubeApiError
from runtime.kubernetes.reflector import ChangeHandler, Reflector, Selection, WatchTimeouts
from runtime.kubernetes.resources import EVENTS, NODES, PODS, Resource
from runtime.kubernetes.store import ObjectRef
from runtime.log_once import LoggedProblem
from schemas.events import Event, PodRef
from schemas.json_types import Json

log = logging.getLogger(__name__)

SETTLE_SECONDS: Final = 0.5
_LIST_SECONDS: Final = 30.0
"""Longest wait for the judge's objects before events are read without them."""
TIMEOUTS: Final = WatchTimeouts(stale_seconds=5)
POD_GROUPS: Final = Resource("/apis/scheduling.run.ai/v2alpha2", "podgroups")
"""KAI's resource; a cluster without KAI does not have it."""
_AROUND_PODS: Final[tuple[ObjectKind, ...]] = ("pod", "claim")


class Workloads(Protocol):
    """Follower of pods that wait, and of what waits without pods: ``ingest.workloads.watches``."""

    feeds: dict[ObjectKind, ChangeHandler]
    """Takers of objects that are watched anyway."""
    judged_feeds: dict[str, ChangeHandler]
    """Takers of objects that are watched for the judge, by kind."""

    async def build_reflectors(self, client: Client, namespace: str, timeouts: WatchTimeouts) -> list[Reflector]:
        """Build the watches of its own kinds."""
        ...

    def note_watched(self, watched: Collection[str]) -> None:
        """Note the kinds of claims that are watched."""
        ...

    def observe(self, moment: datetime, now: float) -> Sequence[Event]:
        """Observe what began to wait, waits for something else, or no longer waits."""
        ...

    def describe(self, event: Event) -> Event:
        """Add what holds a waiting pod to an observation of it."""
        ...


class _ObjectHandler:
    """Reads objects of one kind as soon as a reflector delivers them: events take less memory than objects.

    ``feeds`` take them before: for the judge of refused pods, and for workloads without pods.
    """

    def __init__(
        self, kind: ObjectKind, reader: KubeEvents, events: deque[Event], feeds: Sequence[ChangeHandler] = ()
    ) -> None:
        self._kind, self._reader, self._events, self._feeds = kind, reader, events, feeds

    def on_changed(self, resource: Json) -> None:
        for feed in self._feeds:
            feed.on_changed(resource)
        try:
            self._events.extend(self._reader.read_object(self._kind, resource, time.monotonic()))
        except Exception:
            # A defect that one object reveals must not end the watch of all others.
            log.exception("a defect: a %s could not be read: %.300s", self._kind, resource.get("metadata"))

    def on_deleted(self, ref: ObjectRef) -> None:
        for feed in self._feeds:
            feed.on_deleted(ref)
        if self._kind == "pod":
            pod = PodRef(namespace=ref.key.namespace, name=ref.key.name, uid=ref.uid)
            self._events.extend(self._reader.forget_pod(pod, datetime.now(UTC)))


class _NodeHandler(_ObjectHandler):
    """Also checks how the nodes register their devices."""

    def __init__(
        self, checks: HamiNodeChecks, reader: KubeEvents, events: deque[Event], feeds: Sequence[ChangeHandler] = ()
    ) -> None:
        super().__init__("node", reader, events, feeds)
        self._checks = checks

    def on_changed(self, resource: Json) -> None:
        super().on_changed(resource)
        try:
            self._events.extend(self._checks.check_node(resource, datetime.now(UTC)))
        except Exception:
            log.exception("a defect: a node could not be checked: %.300s", resource.get("metadata"))

    def on_deleted(self, ref: ObjectRef) -> None:
        super().on_deleted(ref)
        self._events.extend(self._checks.forget(ref.key.name, datetime.now(UTC)))


def _is_over() -> bool:
    return False


async def watch(
    load: LoadConfiguration,
    reader: KubeEvents,
    sink: Sink,
    metrics: Metrics,
    *,
    checks: HamiNodeChecks | None = None,
    objects: JudgedObjects | None = None,
    workloads: Workloads | None = None,
    namespace: str = "",
    until: Callable[[], bool] = _is_over,
) -> None:
    """Watch until ``until()`` is true, then send what is still open. ``namespace``: of pods and events; empty: all.

    ``checks``: of nodes; those of the default cluster where none are given. ``objects``: what the reader's judge of
    refused pods looks at; without them, or with only one namespace of the cluster, no pod is judged. ``workloads``: of
    what waits without pods; without them nothing is published of it.

    Raises ``KubeConfigError``, and what the sink raises.
    """
    events: deque[Event] = deque()
    checks, checked_at = checks or HamiNodeChecks(), time.monotonic()
    async with AsyncExitStack() as closing:
        client = Client(await ApiCredentials.open(load))
        closing.push_async_callback(client.close)
        sink = DescribingSink(sink, Owners(client))
        create_handler = partial(_create_handler, checks, reader, events, workloads)
        takers = {DEVICE: create_handler("device", None), **(workloads.judged_feeds if workloads else {})}
        watches = await _build_watches(client, create_handler, None if namespace else objects, takers, namespace)
        if workloads:
            watches = replace(watches, others=await workloads.build_reflectors(client, namespace, TIMEOUTS))
            workloads.note_watched(watches.claim_kinds)
        reader.claims.is_read = "claim" in watches.by_kind
        troubles = {reflector: _create_trouble() for reflector in watches.reflectors}
        tasks = watches.start()
        closing.push_async_callback(_end, tasks)
        logged: set[str] = set()
        while not until():
            _raise_from(tasks)
            _log_left_out(reader, logged)
            _log_what_is_missing(troubles)
            now = time.monotonic()
            events.extend(reader.settle(now))
            if now - checked_at >= CHECK_SECONDS:
                events.extend(checks.check(datetime.now(UTC)))
                checked_at = now
            if workloads and not any(reflector.problem for reflector in watches.around_pods):
                events.extend(workloads.observe(datetime.now(UTC), now))
            await _send(sink, events, workloads)
            metrics.note(reader.counts)
            await asyncio.sleep(SETTLE_SECONDS)
        events.extend(reader.close())
        await _send(sink, events, workloads)
        metrics.note(reader.counts)


def _create_handler(
    checks: HamiNodeChecks,
    reader: KubeEvents,
    events: deque[Event],
    workloads: Workloads | None,
    kind: ObjectKind,
    feed: JudgedFeed | None,
) -> _ObjectHandler:
    taker = workloads.feeds.get(kind) if workloads else None
    feeds = [entry for entry in (feed, taker) if entry]
    if kind == "node":
        return _NodeHandler(checks, reader, events, feeds)
    return _ObjectHandler(kind, reader, events, feeds)


@dataclass(frozen=True, slots=True)
class _Watches:
    """Watches of the cluster: of the reader by its names of the kinds, and of what only the judge reads."""

    by_kind: Mapping[ObjectKind, Reflector]
    judged: Mapping[str, Reflector] = field(default_factory=dict)
    others: Sequence[Reflector] = ()
    """Watches of workloads, queues and groups."""

    @property
    def reflectors(self) -> list[Reflector]:
        """All watches."""
        return [*self.by_kind.values(), *self.judged.values(), *self.others]

    @property
    def around_pods(self) -> list[Reflector]:
        """Watches of the objects around pods: without one of them, a claim or queue would seem to be missing."""
        always = [self.by_kind[kind] for kind in _AROUND_PODS if kind in self.by_kind]
        return [*always, *self.judged.values(), *self.others]

    @property
    def claim_kinds(self) -> list[str]:
        """Kinds of objects that are watched for the judge or as claims."""
        return [*self.judged, *([WATCHED_ANYWAY["claim"].kind] if "claim" in self.by_kind else [])]

    @property
    def to_judge(self) -> list[Reflector]:
        """Watches of the objects that refused pods are judged on."""
        return [*(self.by_kind[kind] for kind in self.by_kind if kind in WATCHED_ANYWAY), *self.judged.values()]

    def start(self) -> list[asyncio.Task[None]]:
        """Start them. An event is joined with its pod, and judged as it is read: the other objects are listed first."""
        pods = self.by_kind["pod"]
        waits = {kind: [pods] for kind in self.by_kind} | {"pod": [], "node": []}
        if self.judged:
            waits["event"] = self.to_judge
        reading = [_run_after(waits[kind], reflector) for kind, reflector in self.by_kind.items()]
        others = (reflector.run() for reflector in (*self.judged.values(), *self.others))
        return [asyncio.create_task(run) for run in (*reading, *others)]


async def _build_watches(
    client: Client,
    create_handler: Callable[[ObjectKind, JudgedFeed | None], _ObjectHandler],
    objects: JudgedObjects | None,
    takers: Mapping[str, ChangeHandler],
    namespace: str,
) -> _Watches:
    """Build the watches; ``objects``: to be fed for the judge of refused pods."""
    by_kind: dict[ObjectKind, Reflector] = {}
    # KAI's pod groups are watched only where the cluster has them: a missing resource can't be listed.
    for resource, kind, scope in await _list_kinds(client, namespace):
        entry = WATCHED_ANYWAY.get(kind)
        handler = create_handler(kind, JudgedFeed(objects, entry) if objects and entry else None)
        by_kind[kind] = Reflector(client, Selection(resource, scope), handler, TIMEOUTS)
    if objects is None:
        return _Watches(by_kind)
    objects.release = await read_release(client)
    judged = await build_reflectors(client, objects, TIMEOUTS, takers, is_claim_read="claim" in by_kind)
    watches = _Watches(by_kind, judged)
    objects.find_problem = partial(describe_problem, watches.to_judge)
    return watches


async def _list_kinds(client: Client, namespace: str) -> list[tuple[Resource, ObjectKind, str]]:
    always: list[tuple[Resource, ObjectKind, str]] = [
        (PODS, "pod", namespace), (NODES, "node", ""), (EVENTS, "event", namespace),
    ]  # fmt: skip
    where_they_are: list[tuple[Resource, ObjectKind, str]] = [
        (POD_GROUPS, "pod group", "if KAI runs here, its pod groups are not read"),
        (CLAIMS, "claim", "devices that pods hold through resource claims are not known"),
    ]
    for resource, kind, lacks in where_they_are:
        if await _can_list(client, resource, namespace, lacks):
            always.append((resource, kind, namespace))
    return always


async def _can_list(client: Client, resource: Resource, namespace: str, lacks: str) -> bool:
    """Tell whether the cluster has the resource and this account may list it. ``lacks``: the consequence if not."""
    try:
        await client.get_page(resource.build_collection_path(namespace), limit=1)
    except KubeApiError as error:
        if error.status == FORBIDDEN:
            log.warning("%s: %s", lacks, error)
        # Any other error, such as an API server that is down, does not prove that the resource is missing.
        return error.status not in (FORBIDDEN, NOT_FOUND)
    return True


async def _run_after(first: Sequence[Reflector], then: Reflector) -> None:
    """Run when the others have listed their objects; pods, the first of them, however long that takes."""
    for number, reflector in enumerate(first):
        with suppress(TimeoutError):
            async with asyncio.timeout(_LIST_SECONDS if number else None):
                await reflector.wait_until_synced()
    await then.run()


def _create_trouble() -> LoggedProblem:
    return LoggedProblem(
        partial(log.warning, "%s; asking again until it can be read"),
        partial(log.warning, "can be read now; before: %s"),
    )


def _log_what_is_missing(troubles: Mapping[Reflector, LoggedProblem]) -> None:
    """Log each trouble once: a missing right keeps a reflector asking without end."""
    for reflector, trouble in troubles.items():
        trouble.note(reflector.problem if reflector.last_error else "")


def _log_left_out(reader: KubeEvents, logged: set[str]) -> None:
    """Log each reporter once: a scheduler that is not trusted would otherwise be missing in silence."""
    for name in reader.reporters.left_out.keys() - logged:
        logged.add(name)
        log.warning("events of the reporter %r are not read; if it is one of yours, name it in --event-reporters", name)


def _raise_from(tasks: list[asyncio.Task[None]]) -> None:
    """Raise the error of a reflector that has ended: none ends without an error."""
    for task in tasks:
        if task.done():
            task.result()


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _send(sink: Sink, events: deque[Event], workloads: Workloads | None) -> None:
    while events:
        batch = [events.popleft() for _ in range(min(len(events), MAX_BATCH))]
        await sink.send([workloads.describe(event) for event in batch] if workloads else batch)
