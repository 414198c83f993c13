"""Callers that race for scarce devices, an API server that takes its time, and a ledger kept by the callers alone."""

import asyncio
import json
import random
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import yaml

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.events.attempt import Identity
from engine.fit.judge.decision import SchedulingPolicy
from engine.fit.manifests import parse
from engine.hami.annotations import DEVICES_ALLOCATED
from runtime.kubernetes.errors import KubeApiError
from scheduler.answering.extender_protocol import FilterRequest
from scheduler.answering.records import Records
from scheduler.answering.service import Scheduler
from scheduler.bind.bind_request import BindRequest
from scheduler.bind.binder import Binder
from scheduler.bind.node_locks import LockPolicy
from scheduler.cluster.claims import Claims
from scheduler.cluster.cluster_api import Object, PodVersion, get_annotation
from scheduler.cluster.file_cluster import SimulatedCluster
from scheduler.metrics import Metrics
from scheduler.publish.observer import Observer
from scheduler.publish.spool_writer import SpoolWriter
from schemas.codec.trace_context import NO_TRACE, Trace
from schemas.json_types import Json
from tests.support.builders.kube_objects import a_container, a_device, a_node, a_pod
from tests.support.builders.spool_entries import Clock

MEMORY_MIB, CORES, SLOTS = 10_000, 100, 3
ALL = 10**9
NODES = ("node1", "node2")


def a_small_node(name: str) -> Json:
    return a_node(
        name, devices=[a_device(f"GPU-{name}-{device}", devmem=MEMORY_MIB, count=SLOTS) for device in range(2)]
    )


def a_random_pod(draw: random.Random, name: str) -> Json:
    """Often more than half of a device, sometimes two devices or an init container."""
    container = a_container(
        gpus=draw.choice([1, 1, 1, 2]), gpumem=draw.randrange(500, 9_000), gpucores=draw.choice([0, 10, 30, 60, 100])
    )
    return a_pod(name, [container, container] if draw.random() < 0.1 else [container])


class Ledger:
    """Devices that each pod holds by the answers it got. A pod that asks again, was refused or ended holds nothing."""

    def __init__(self) -> None:
        self._held: dict[str, list[tuple[str, int, int]]] = {}
        self.placed = 0

    def drop(self, uid: str) -> None:
        self._held.pop(uid, None)

    def hold(self, uid: str, devices: str) -> None:
        """Hold `devices`, an annotation's text. Fails where a device is given away twice."""
        parts = (part.split(",") for part in devices.replace(";", "").split(":") if part)
        self._held[uid] = [(uuid, int(memory), int(cores)) for uuid, _, memory, cores in parts]
        self.placed += 1
        for uuid, sums in self.add_up().items():
            assert sums["memory"] <= MEMORY_MIB, (uuid, sums)
            assert sums["cores"] <= CORES, (uuid, sums)
            assert sums["slots"] <= SLOTS, (uuid, sums)

    def add_up(self) -> Mapping[str, Counter[str]]:
        sums: dict[str, Counter[str]] = {}
        for held in self._held.values():
            for uuid, memory, cores in held:
                sums.setdefault(uuid, Counter()).update(memory=memory, cores=cores, slots=1)
        return sums


class Late:
    """A watch that delivers everything in order, some turns of the event loop later."""

    def __init__(self, watcher: Observer) -> None:
        self._watcher, self._waiting = watcher, deque[tuple[str, tuple[Any, ...]]]()

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self._waiting.append((name, arguments))

    def deliver(self, count: int) -> None:
        """Pass on up to `count` of what waits."""
        for _ in range(min(count, len(self._waiting))):
            name, arguments = self._waiting.popleft()
            getattr(self._watcher, name)(*arguments)


class SlowCluster(SimulatedCluster):
    """Takes a random time over each write of a decision; now and then refuses, or does it and says that it failed."""

    def __init__(self, watcher: Any, draw: random.Random) -> None:
        super().__init__(watcher)
        self._draw = draw

    async def patch_pod(
        self, pod: PodVersion, annotations: Mapping[str, str | None], labels: Mapping[str, str] | None = None
    ) -> Object:
        await _wait_for_turns(self._draw)
        fate = self._draw.random()
        if fate < 0.03:
            raise KubeApiError(503, "the API server is overloaded")
        patched = await super().patch_pod(pod, annotations, labels)
        await _wait_for_turns(self._draw)
        if fate > 0.97:
            raise KubeApiError(504, "the answer was lost")
        return patched

    def end(self, pod: Object) -> None:
        self._forget_pod((pod["metadata"]["namespace"], pod["metadata"]["name"]))


class SlowEventWriter:
    """Forgets every event; a flush takes a random time."""

    losses = 0

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw

    def write(self, events: Iterable[object], trace: Trace = NO_TRACE) -> None:
        """Forget them."""

    async def flush(self) -> None:
        await _wait_for_turns(self._draw)


async def _wait_for_turns(draw: random.Random) -> None:
    for _ in range(draw.randrange(4)):
        await asyncio.sleep(0)


class Race:
    """A scheduler with four small devices, and the pods that want them."""

    def __init__(self, seed: int) -> None:
        self.draw, self.ledger, clock, metrics = random.Random(seed), Ledger(), Clock(), Metrics()
        self.clock = clock
        event_writer, columns, claims = cast("SpoolWriter", SlowEventWriter(self.draw)), ClusterColumns(), Claims()
        self.watch = Late(Observer(Identity("default", "racing"), columns, claims, event_writer, clock))
        self.cluster = SlowCluster(self.watch, self.draw)
        self.cluster.apply(parse(yaml.safe_dump_all(map(a_small_node, NODES)).encode(), Path("cluster.yaml")))
        self.watch.deliver(len(NODES))
        binder = Binder(self.cluster, LockPolicy(), clock)
        parts = (columns, self.cluster, claims, binder, Records(event_writer, metrics), clock)
        self.scheduler = Scheduler(Identity("default", "racing"), SchedulingPolicy(), *parts)
        self.pods: dict[str, Json] = {}

    async def try_callers(self, number: int, callers: int) -> None:
        """Let so many callers race at once; then the watch catches up a little, and some pods end."""
        self.clock.advance(0.001)
        await asyncio.gather(*(self._call(f"pod-{number}-{caller}") for caller in range(callers)))
        self.watch.deliver(self.draw.choice([0, 3, 10, ALL]))
        for uid in [uid for uid in self.pods if self.draw.random() < 0.3]:
            self._end(uid)

    async def _call(self, name: str) -> None:
        """Filter one pod, a new one or one that was seen before, and perhaps bind it."""
        again = [pod for pod in self.pods.values() if not pod.get("busy")]
        pod = self.draw.choice(again) if again and self.draw.random() < 0.2 else a_random_pod(self.draw, name)
        metadata, pod["busy"] = pod["metadata"], True
        self.pods[metadata["uid"]] = pod
        await _wait_for_turns(self.draw)
        self.ledger.drop(metadata["uid"])
        answer = json.loads(await self.scheduler.filter(FilterRequest(_drop_marks(pod), NODES)))
        for node in answer["NodeNames"] or ():
            current = self.cluster.get_pod_seen(metadata["namespace"], metadata["name"]) or {}
            self.ledger.hold(metadata["uid"], get_annotation(current, DEVICES_ALLOCATED) or "")
            if self.draw.random() < 0.3:
                await self._bind(pod, node)
        pod["busy"] = pod.get("bound", False)

    async def _bind(self, pod: Json, node: str) -> None:
        metadata = pod["metadata"]
        request = BindRequest(metadata["namespace"], metadata["name"], metadata["uid"], node)
        pod["bound"] = True
        self.ledger.drop(metadata["uid"])
        if not json.loads(await self.scheduler.bind(request))["Error"]:
            current = self.cluster.get_pod_seen(metadata["namespace"], metadata["name"]) or {}
            self.ledger.hold(metadata["uid"], get_annotation(current, DEVICES_ALLOCATED) or "")

    def _end(self, uid: str) -> None:
        self.cluster.end(self.pods.pop(uid))
        self.ledger.drop(uid)


def _drop_marks(pod: Json) -> Json:
    return {key: value for key, value in pod.items() if key not in ("busy", "bound")}
