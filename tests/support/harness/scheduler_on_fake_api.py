"""A whole scheduler on the small API server: filter and bind as kube-scheduler calls them."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.events.attempt import Identity
from engine.fit.judge.decision import SchedulingPolicy
from runtime.kubernetes.client import Client
from runtime.kubernetes.election import Election
from runtime.kubernetes.lease import LeaseTimings
from runtime.kubernetes.resources import Key
from scheduler.answering.extender_protocol import read_filter
from scheduler.answering.records import Records
from scheduler.answering.service import Scheduler
from scheduler.bind.bind_journal import BindJournal
from scheduler.bind.bind_recovery import BindRecovery
from scheduler.bind.bind_request import BindRequest
from scheduler.bind.binder import Binder
from scheduler.bind.node_locks import LockPolicy
from scheduler.cluster.claims import Claims
from scheduler.cluster.kubernetes.cluster import KubernetesCluster
from scheduler.metrics import Metrics
from scheduler.publish.observer import Observer
from scheduler.publish.spool.spool import Spool, get_now
from scheduler.publish.spool_writer import SpoolWriter
from schemas.json_types import Json
from tests.support.builders.kube_objects import a_node, a_pod
from tests.support.fakes.api_server import FakeApi, a_client, serving
from tests.support.waiting import eventually_async

LEASE = Key("kube-system", "lease")
TERMS = LeaseTimings(3, 2, 0.05)


def build_pod_path(name: str) -> str:
    return f"/api/v1/namespaces/default/pods/{name}"


def build_node_path(name: str) -> str:
    return f"/api/v1/nodes/{name}"


def a_cluster(*pods: str, devices: int = 2, slots: int = 10) -> FakeApi:
    """node1 with devices, and pods that ask for one each."""
    api = FakeApi()
    node = a_node("node1", devices=devices)
    (register,) = node["metadata"]["annotations"]
    registered = json.loads(node["metadata"]["annotations"][register])
    node["metadata"]["annotations"][register] = json.dumps([device | {"count": slots} for device in registered])
    api.put(build_node_path("node1"), node)
    for name in pods:
        api.put(build_pod_path(name), a_pod(name))
    return api


class OnApi:
    """One scheduler process."""

    def __init__(self, folder: Path, client: Client, identity: str = "", terms: LeaseTimings = TERMS) -> None:
        metrics, self.claims, self.columns = Metrics(), Claims(), ClusterColumns()
        self.spool = Spool(folder / f"spool{identity}")
        event_writer = SpoolWriter(self.spool, get_now, metrics)
        observer = Observer(Identity("default", "hami-scheduler"), self.columns, self.claims, event_writer, get_now)
        self.election = Election(client, LEASE, identity, terms) if identity else None
        self.cluster = KubernetesCluster(client, observer, self.claims, self.election)
        self.binder = Binder(self.cluster, LockPolicy())
        self.binds = BindJournal(self.spool.folder)
        self.recovery = BindRecovery(self.binds, self.cluster, event_writer, get_now)
        records = Records(event_writer, metrics, binds=self.binds)
        parts = (self.columns, self.cluster, self.claims, self.binder, records, get_now)
        self.scheduler = Scheduler(
            Identity("default", "hami-scheduler"),
            SchedulingPolicy(),
            *parts,
            accept_scheduler=observer.accept_scheduler,
        )

    async def filter(self, pod: Json, nodes: tuple[str, ...] = ("node1",)) -> Json:
        body = {"Pod": pod, "NodeNames": nodes}
        answer: Json = json.loads(await self.scheduler.filter(read_filter(json.dumps(body).encode())))
        return answer

    async def bind(self, pod: Json, node: str = "node1") -> str:
        metadata = pod["metadata"]
        answer = json.loads(
            await self.scheduler.bind(BindRequest(metadata["namespace"], metadata["name"], metadata["uid"], node))
        )
        return str(answer["Error"])

    def count_used_slots(self) -> int:
        return int(self.columns.devices["used_slots"].sum())


@asynccontextmanager
async def running(api: FakeApi, folder: Path, *identities: str, **how: Any) -> AsyncIterator[tuple[OnApi, ...]]:
    """Schedulers in sync; those with an identity stand for election."""
    async with serving(api) as url, a_client(url, **how) as client:
        schedulers = tuple(OnApi(folder, client, identity) for identity in identities or ("",))
        tasks = [asyncio.create_task(scheduler.cluster.run()) for scheduler in schedulers]
        try:
            await eventually_async(lambda: any(not scheduler.cluster.find_problem() for scheduler in schedulers))
            yield schedulers
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for on_api in schedulers:
                on_api.binds.close()
                on_api.spool.close()
