"""Random walks over all that can come between the calls of two schedulers, one of which leads, about two pods.

A walk picks one step at a time: kube-scheduler asks, gives up, or asks again; the API server carries a call out,
answers it, loses the answer, or carries it out long after its caller gave up, perhaps twice; a watch delivers an event;
the lease moves; the device plugin releases a node's lock; somebody else writes into a pod. After each write of the API
server a bound pod has the devices of its own node, and no device has two bound pods. At the end everything arrives, and
the leader's reservations are those of the pods.
"""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, cast

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.events.attempt import Identity
from engine.fit.judge.decision import SchedulingPolicy
from engine.hami.allocation import decode_devices
from engine.hami.annotations import ASSIGNED_NODE, DEVICES_ALLOCATED, NODE_LOCK
from runtime.kubernetes.client import Client
from scheduler.answering.extender_protocol import read_filter
from scheduler.answering.records import Records
from scheduler.answering.service import Scheduler
from scheduler.bind.bind_request import BindRequest
from scheduler.bind.binder import Binder
from scheduler.bind.node_locks import LockPolicy
from scheduler.cluster.claims import Claims
from scheduler.cluster.cluster_api import Object, get_annotation
from scheduler.cluster.kubernetes.cluster import KubernetesCluster
from scheduler.metrics import Metrics
from scheduler.publish.observer import Observer
from scheduler.publish.spool_writer import SpoolWriter
from schemas.json_types import Json
from tests.support.builders.kube_objects import a_container, a_device, a_node, a_pod
from tests.support.fakes.walked_api import Call, WalkedApi
from tests.support.harness.racing import SlowEventWriter

NODES: Final = ("node1", "node2")
PODS: Final = ("pod1", "pod2")
_IDENTITY: Final = Identity("default", "walked")
_METRICS: Final = Metrics()


class BrokenInvariantError(AssertionError):
    """A walk has reached a state that must not be; the text has its steps."""


class Lease:
    """Implements `Leadership` for one of the two, as the walk moves it."""

    def __init__(self) -> None:
        self.term, self.term_began, self.is_leading = 0, asyncio.Event(), False

    @property
    def problem(self) -> str:
        return "" if self.is_leading else "the other one leads"

    def lead(self) -> None:
        self.is_leading, self.term = True, self.term + 1
        self.term_began.set()

    async def run(self) -> None:
        await asyncio.get_running_loop().create_future()

    async def resign(self) -> None:
        self.is_leading = False


class _NoEvents(SlowEventWriter):
    async def flush(self) -> None:
        """Return at once."""


class OneScheduler:
    def __init__(self, api: WalkedApi, number: int, clock: Callable[[], datetime]) -> None:
        writer, claims = cast("SpoolWriter", _NoEvents(random.Random(0))), Claims()
        self.columns, self.lease = ClusterColumns(), Lease()
        observer = Observer(_IDENTITY, self.columns, claims, writer, clock)
        self.cluster = KubernetesCluster(cast("Client", api.create_client(number)), observer, claims, self.lease)
        binder = Binder(self.cluster, LockPolicy(), clock, sleep=lambda _: asyncio.sleep(0))
        parts = (self.columns, self.cluster, claims, binder, Records(writer, _METRICS), clock)
        self.scheduler = Scheduler(_IDENTITY, SchedulingPolicy(), *parts)
        self.running = asyncio.create_task(self.cluster.run())

    async def filter(self, pod: Json) -> str:
        body = json.dumps({"Pod": pod, "NodeNames": NODES}).encode()
        answer = json.loads(await self.scheduler.filter(read_filter(body)))
        return next(iter(answer["NodeNames"] or ()), "")

    async def bind(self, pod: Json, node: str) -> str:
        metadata = pod["metadata"]
        request = BindRequest(metadata["namespace"], metadata["name"], metadata["uid"], node)
        return "" if json.loads(await self.scheduler.bind(request))["Error"] else "bound"


class Asker:
    """kube-scheduler's calls about one pod: filter, bind; and again after a failure, or when it waits no longer."""

    def __init__(self, path: str) -> None:
        self.path, self.node = path, ""
        self.call: asyncio.Task[str] | None = None

    def ask(self, scheduler: OneScheduler, pod: Json) -> None:
        calling = scheduler.bind(pod, self.node) if self.node else scheduler.filter(pod)
        self.call = asyncio.create_task(calling)

    def read(self) -> None:
        """Read the answer, if it is there: the node to bind to, or nothing."""
        if self.call and self.call.done():
            result, self.call = self.call.result(), None
            self.node = "" if self.node else result

    def give_up(self) -> None:
        self.call, self.node = None, ""


class Walk:
    """One walk. `seed` determines every step."""

    def __init__(self, seed: int) -> None:
        self.draw, self.steps, self.counts = random.Random(seed), list[str](), Counter[str]()
        self.api, self.now = WalkedApi(self.check), datetime(2026, 11, 23, tzinfo=UTC)
        for name in NODES:
            device = a_device(f"GPU-{name}", devmem=10_000, count=1)
            self.api.put(_name_path(name), a_node(name, devices=[device]), "ADDED")
        self.askers = [Asker(f"/api/v1/namespaces/default/pods/{name}") for name in PODS]
        for name, asker in zip(PODS, self.askers, strict=True):
            self.api.put(asker.path, a_pod(name, [a_container(gpumem=6_000)]), "ADDED")
        self.both = [OneScheduler(self.api, number, lambda: self.now) for number in range(2)]

    async def run(self, steps: int) -> None:
        """Walk. Raises `BrokenInvariantError`."""
        loop: Any = asyncio.get_running_loop()
        self._ready = loop._ready  # what is left to run before only the walk can continue
        self.both[0].lease.lead()
        try:
            await self._settle()
            for _ in range(steps):
                self._step()
                await self._wait_for_quiet()
            await self._end()
        finally:
            for scheduler in self.both:
                scheduler.running.cancel()
            tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _wait_for_quiet(self) -> None:
        while self._ready:  # noqa: ASYNC110 - it is the loop's own queue that empties
            await asyncio.sleep(0)
        for asker in self.askers:
            asker.read()

    def _step(self) -> None:
        choices: list[tuple[float, Callable[[], None], str]] = [(0.2, self._move_lease, "the lease moves")]
        api, pods = self.api, self.askers
        for call in api.calls:
            weight = 3.0 if call.outcome is None else 2.0
            choices.append((weight, partial(self._reply, call), f"{call.caller}: answered {call.text}"))
            if call.outcome is None:
                choices.append((0.7, call.carry_out, f"{call.caller}: carried out {call.text}"))
            if not call.text.startswith("LIST"):
                choices.append((0.5, partial(self._lose, call), f"{call.caller}: gave up {call.text}"))
        choices += [(0.7, partial(self._let_arrive, late), f"{late.caller}: late {late.text}") for late in api.late]
        waiting = filter(api.list_undelivered, api.watches)
        choices += [(1.0, partial(api.deliver, watch), f"a watch of {watch.path}") for watch in waiting]
        for asker in pods:
            if asker.call:
                choices.append((0.4, asker.give_up, f"kube-scheduler gives up {asker.path}"))
            elif not self._get_node(asker) or self.draw.random() < 0.2:
                choices.append((3.0, partial(self._ask, asker), f"ask {asker.path} {asker.node}"))
            choices.append((0.1, partial(self._touch, asker.path), f"somebody writes {asker.path}"))
        choices += [(1.0, partial(self._unlock, node), f"the plugin of {node}") for node in self._list_to_allocate()]
        weights = [weight for weight, _, _ in choices]
        _, do, text = self.draw.choices(choices, weights)[0]
        self.steps.append(text)
        self.now += timedelta(seconds=self.draw.choice([0, 0, 1]))
        do()

    def _list_to_allocate(self) -> list[str]:
        """List the locked nodes that have a bound pod."""
        bound = set(map(self._get_node, self.askers))
        return [node for node in NODES if node in bound and get_annotation(self._get(_name_path(node)), NODE_LOCK)]

    def _reply(self, call: Call) -> None:
        self.api.calls.remove(call)
        call.reply()

    def _lose(self, call: Call) -> None:
        """Lose a call: its caller waits no longer. It may be on its way still, and may come twice."""
        self.api.calls.remove(call)
        call.lose()
        if call.outcome is None or self.draw.random() < 0.2:
            self.api.late.append(call)

    def _let_arrive(self, call: Call) -> None:
        call.do()
        if self.draw.random() < 0.8:
            self.api.late.remove(call)

    def _ask(self, asker: Asker) -> None:
        leader = next((scheduler for scheduler in self.both if scheduler.lease.is_leading), self.both[0])
        asker.ask(leader if self.draw.random() < 0.9 else self.draw.choice(self.both), self._get(asker.path))

    def _move_lease(self) -> None:
        # Who led stops before the other one begins: `LeadershipDeadline` ends before a Lease may be taken.
        for scheduler in self.both:
            if scheduler.lease.is_leading:
                scheduler.lease.is_leading = False
            else:
                scheduler.lease.lead()

    def _touch(self, path: str) -> None:
        pod = self._get(path)
        self.api.put(path, {**pod, "status": {"phase": "Pending", "conditions": [{"type": f"at {len(self.steps)}"}]}})

    def _unlock(self, node: str) -> None:
        self.api.patch(_name_path(node), {"metadata": {"annotations": {NODE_LOCK: None}}})

    def _get(self, path: str) -> Json:
        return self.api.objects[path]

    def _get_node(self, asker: Asker) -> str:
        return str(self._get(asker.path)["spec"].get("nodeName", ""))

    # What has to hold

    def check(self) -> None:
        """Check after each write: a bound pod has the devices of its node, and no other bound pod has them."""
        used: Counter[str] = Counter()
        for path, pod in self.api.objects.items():
            if node := "/pods/" in path and pod["spec"].get("nodeName"):
                says, devices = get_annotation(pod, ASSIGNED_NODE), list_devices(pod)
                self._hold(says == node, f"{path} is on {node}, its annotation says {says}")
                self._hold(devices == [f"GPU-{node}"], f"{path} is on {node} with {devices}")
                used.update(devices)
        self._hold(all(count == 1 for count in used.values()), f"a device has two pods: {used}")

    def _hold(self, is_so: bool, text: str) -> None:
        if not is_so:
            raise BrokenInvariantError("\n".join([text, *self.steps]))

    async def _settle(self) -> None:
        """Carry everything out and answer in order, and let every watch deliver all it has."""
        await self._wait_for_quiet()
        while self.api.calls or any(map(self.api.list_undelivered, self.api.watches)):
            for call in list(self.api.calls):
                self._reply(call)
            for watch in self.api.watches:
                while self.api.list_undelivered(watch):
                    self.api.deliver(watch)
            await self._wait_for_quiet()

    async def _end(self) -> None:
        """Let what was on its way arrive; then the reservations are right, and pods that wait are placed."""
        for late in self.api.late:
            late.do()
        await self._settle()
        if not any(scheduler.lease.is_leading for scheduler in self.both):
            self.both[0].lease.lead()
        leader = next(scheduler for scheduler in self.both if scheduler.lease.is_leading)
        for _ in range(12):
            await self._settle()
            self._hold(not leader.cluster.find_problem(), f"the leader can't decide: {leader.cluster.find_problem()}")
            self._check_columns(leader)
            for asker in self.askers:
                if not asker.call and not self._get_node(asker):
                    asker.ask(leader, self._get(asker.path))
            # A lock that nobody releases expires.
            self.now += timedelta(minutes=6)
        self.counts["bound"] += sum(bool(self._get_node(asker)) for asker in self.askers)
        self._hold(all(map(self._get_node, self.askers)), "a pod is never placed")

    def _check_columns(self, leader: OneScheduler) -> None:
        for asker in self.askers:
            if node := self._get_node(asker):
                use = leader.columns.get_pod_use(self._get(asker.path)["metadata"]["uid"])
                held = (use.node, [*use.by_uuid]) if use else None
                self._hold(held == (node, [f"GPU-{node}"]), f"{asker.path} is on {node}, the columns have {held}")


def _name_path(node: str) -> str:
    return f"/api/v1/nodes/{node}"


def list_devices(pod: Object) -> list[str]:
    text = get_annotation(pod, DEVICES_ALLOCATED) or ""
    return [device.uuid for container in decode_devices(text) for device in container]
