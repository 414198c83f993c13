"""A whole scheduler without a socket and without Kafka: its app, and what it published."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import yaml

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.events.attempt import Identity
from engine.fit.judge.decision import SchedulingPolicy
from engine.fit.manifests import Manifest, parse
from runtime.http.bodies import Bodies
from scheduler.answering.records import Records
from scheduler.answering.service import Scheduler
from scheduler.bind.binder import Binder
from scheduler.bind.node_locks import LockPolicy
from scheduler.cluster.claims import Claims
from scheduler.cluster.file_cluster import SimulatedCluster
from scheduler.http.app import SHORTER_BODIES, create_app
from scheduler.metrics import Metrics
from scheduler.publish.observer import Observer
from scheduler.publish.spool.spool import Spool
from scheduler.publish.spool_writer import SpoolWriter
from schemas.codec.records import decode
from schemas.events import Event
from schemas.json_types import Json
from tests.support.builders.spool_entries import NOW, Clock


def build_manifest(*objects: Json) -> Manifest:
    """Build a cluster file that describes these."""
    return parse(yaml.safe_dump_all(objects).encode(), Path("cluster.yaml"))


class Serving:
    """`objects` are the cluster file."""

    def __init__(
        self,
        folder: Path,
        *objects: Json,
        max_body_bytes: int = 10**6,
        simulates_whole_nodes: bool = False,
        started_at: datetime = NOW,
        cluster_name: str = "default",
        settings_digest: str = "",
        pod_labels: tuple[str, ...] = (),
        shares_with: tuple[str, ...] = (),
    ) -> None:
        self.clock, self.metrics = Clock(), Metrics()
        self.clock.now = started_at
        self.spool = Spool(folder / "spool", clock=self.clock)
        event_writer = SpoolWriter(self.spool, self.clock, self.metrics)
        self.columns, claims = ClusterColumns(), Claims()
        identity = Identity(cluster_name, "hami-scheduler")
        observer = Observer(identity, self.columns, claims, event_writer, self.clock, shares_with=shares_with)
        self.cluster = SimulatedCluster(observer)
        self.edit(*objects)
        binder = Binder(self.cluster, LockPolicy(), self.clock)
        self.scheduler = Scheduler(
            identity,
            SchedulingPolicy(),
            self.columns,
            self.cluster,
            claims,
            binder,
            Records(event_writer, self.metrics, settings_digest=settings_digest, pod_labels=pod_labels),
            self.clock,
            accept_scheduler=observer.accept_scheduler,
        )
        self.problems = {"spool": "", "cluster": ""}
        app = create_app(
            self.scheduler,
            self.metrics,
            lambda: self.problems | {"spool": self.spool.problem},
            Bodies(max_body_bytes, SHORTER_BODIES),
            simulates_whole_nodes=simulates_whole_nodes,
        )
        self.http = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://scheduler")

    async def close(self) -> None:
        await self.http.aclose()
        self.spool.close()

    def edit(self, *objects: Json) -> None:
        self.cluster.apply(build_manifest(*objects))

    async def filter(self, pod: Json, nodes: Sequence[str] = ("node1",)) -> Json:
        # Times differ as they do in life, where two attempts never begin in one microsecond.
        self.clock.advance(0.001)
        return await self.post("/filter", {"Pod": pod, "Nodes": None, "NodeNames": list(nodes)})

    async def bind(self, pod: Json, node: str = "node1") -> str:
        self.clock.advance(0.001)
        metadata = pod["metadata"]
        request = {
            "PodName": metadata["name"],
            "PodNamespace": metadata["namespace"],
            "PodUID": metadata["uid"],
            "Node": node,
        }
        error: str = (await self.post("/bind", request))["Error"]
        return error

    async def post(self, path: str, body: Any) -> Json:
        response = await self.http.post(path, json=body)
        assert response.status_code == 200, response.text
        answer: Json = response.json()
        return answer

    def take_events(self) -> list[Event]:
        """Take the events that were recorded since the last call."""
        events: list[Event] = []
        while batch := self.spool.take_batch():
            for entry in batch.entries:
                event = decode(entry.record.value, entry.record.headers)
                assert isinstance(event, Event), event
                events.append(event)
            self.spool.acknowledge(batch)
        return events
