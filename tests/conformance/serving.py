"""A recorded filter call through the function that serves POST /filter, body to reply, on an API server of one pod."""

import asyncio
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import orjson

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.events.attempt import Identity
from runtime.kubernetes.errors import KubeApiError, build_missing_error
from scheduler.answering import extender_protocol
from scheduler.answering.records import Records
from scheduler.answering.service import Scheduler
from scheduler.bind.binder import Binder
from scheduler.bind.node_locks import LockPolicy
from scheduler.cluster.claims import Claims
from scheduler.cluster.cluster_api import Object, PodVersion
from scheduler.metrics import Metrics
from scheduler.publish.spool_writer import SpoolWriter
from schemas.codec.records import encode
from schemas.codec.trace_context import NO_TRACE, Trace
from schemas.events import Event
from tests.conformance.cluster import get_policy
from tests.conformance.difference import Case
from tests.conformance.objects import build_pod


class OnePod:
    """Implements `ClusterApi` as far as a filter call asks it; keeps what is written into the pod."""

    def __init__(self, case: Case) -> None:
        self._exists = case["pod_exists_in_api"]
        self._offered: Object | None = None
        self.annotations: dict[str, str | None] = {}
        self.labels: dict[str, str] = {}

    def find_problem(self) -> str:
        return ""

    def get_node_seen(self, name: str) -> None:
        return None

    def get_pod_seen(self, namespace: str, name: str) -> Object | None:
        return self._offered

    def note_offered(self, pod: Object) -> None:
        # As kube-scheduler sends it, also where a case says that it is gone by the time of the patch.
        self._offered = pod

    def get_term(self) -> int:
        return 0

    async def patch_pod(
        self, pod: PodVersion, annotations: Mapping[str, str | None], labels: Mapping[str, str] | None = None
    ) -> Object:
        if not self._exists:
            raise build_missing_error("pods", pod.key.name)
        self.annotations |= annotations
        self.labels |= labels or {}
        return {}

    async def get_node(self, name: str) -> Any:
        raise KubeApiError(500, "a filter call reads no node")

    async def get_pod(self, namespace: str, name: str) -> Any:
        raise KubeApiError(500, "a filter call reads no pod")

    async def patch_node(self, name: str, annotations: Mapping[str, str | None], resource_version: str) -> None:
        raise KubeApiError(500, "a filter call writes no node")

    async def bind(self, pod: PodVersion, node: str) -> None:
        raise KubeApiError(500, "a filter call binds nothing")


class Encoding(SpoolWriter):
    """Every event must have a form in bytes; none is kept."""

    losses = 0

    def __init__(self) -> None:
        """Start without a spool."""

    def write(self, events: Iterable[Event], trace: Trace = NO_TRACE) -> None:
        for event in events:
            encode(event)

    async def flush(self) -> None:
        """Return without writing anything."""


_METRICS = Metrics()


def answer_filter(case: Case, columns: ClusterColumns) -> tuple[dict[str, Any], OnePod]:
    """Return the reply to the call, and the pod after it. `columns` hold the reservation afterwards."""
    api, clock = OnePod(case), datetime.fromisoformat(case["clock"])
    binder = Binder(api, LockPolicy())
    parts = (columns, api, Claims(), binder, Records(Encoding(), _METRICS), lambda: clock)
    scheduler = Scheduler(Identity("default", "hami-scheduler"), get_policy(case), *parts)
    body = {"Pod": build_pod(case["pod"]), "Nodes": None, "NodeNames": case["node_names"]}
    request = extender_protocol.read_filter(orjson.dumps(body))
    reply: dict[str, Any] = orjson.loads(asyncio.run(scheduler.filter(request)))
    return reply, api
