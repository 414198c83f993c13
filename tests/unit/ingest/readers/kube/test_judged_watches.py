"""Objects that the watches deliver to the judge of refused pods, and kinds that may not be read."""

import asyncio
import logging
from collections.abc import Sequence

import pytest
from kubernetes.aio.client import Configuration

from engine.snapshot import kinds
from ingest.readers.kube import KubeEvents
from ingest.readers.kube.judged_kinds import RIGHTS, WATCHED_TO_JUDGE
from ingest.readers.kube.judged_objects import JudgedObjects
from ingest.readers.kube.refusal_judge import RefusalJudge
from ingest.readers.kube.watch import watch
from ingest.reading.metrics import Metrics
from schemas.events import Event
from tests.support.builders.cluster import a_node, a_pod
from tests.support.fakes.api_server import FakeApi, serving


class Sink:
    async def send(self, events: Sequence[Event]) -> None:
        del events


async def watch_until_judged_on(api: FakeApi, objects: JudgedObjects, namespace: str = "") -> None:
    """Watch the cluster until the objects can be judged on, or for two rounds where they never can."""
    rounds = 0

    def count_round() -> bool:
        nonlocal rounds
        rounds += 1
        return not objects.find_problem() or (bool(namespace) and rounds > 2)

    async with serving(api) as url:

        async def load() -> Configuration:
            configuration = Configuration()
            configuration.host = url
            return configuration

        reader = KubeEvents(judge=RefusalJudge(objects))
        async with asyncio.timeout(60):
            await watch(load, reader, Sink(), Metrics("test"), objects=objects, namespace=namespace, until=count_round)


def a_cluster() -> FakeApi:
    api = FakeApi()
    api.put("/api/v1/nodes/n1", a_node("n1"))
    api.put("/api/v1/namespaces/default/pods/placed", a_pod("placed", node="n1"))
    api.put("/api/v1/namespaces/default/pods/waiting", a_pod("waiting"))
    return api


async def test_pods_and_nodes_that_the_reader_watches_are_judged_on() -> None:
    objects = JudgedObjects()
    await watch_until_judged_on(a_cluster(), objects)
    snapshot = objects.take_moment().snapshot
    assert [pod.name for pod in snapshot.nodes["n1"].pods] == ["placed"]
    assert objects.find_waiting("default", "waiting")
    assert objects.find_waiting("default", "placed") is None
    assert snapshot.unread == frozenset()


async def test_a_kind_that_may_not_be_read_is_unread_and_its_right_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    api, objects = a_cluster(), JudgedObjects()
    api.fail("GET /api/v1/persistentvolumes", "GET /apis/resource.k8s.io/v1/resourceslices", status=403)
    with caplog.at_level(logging.WARNING):
        await watch_until_judged_on(api, objects)
    assert objects.unread == {kinds.VOLUME, kinds.RESOURCE_SLICE}
    (warning,) = [record.getMessage() for record in caplog.records if "allow list and watch" in record.getMessage()]
    assert warning.endswith("allow list and watch of persistentvolumes, resourceslices.resource.k8s.io")


async def test_with_one_namespace_nothing_is_judged_on() -> None:
    objects = JudgedObjects()
    await watch_until_judged_on(a_cluster(), objects, namespace="default")
    assert objects.find_problem()
    assert objects.find_waiting("default", "waiting") is None


def test_rights_are_named_as_roles_name_them() -> None:
    assert RIGHTS[kinds.NAMESPACE] == "namespaces"
    assert RIGHTS[kinds.CSI_NODE] == "csinodes.storage.k8s.io"
    assert len(RIGHTS) == len(WATCHED_TO_JUDGE) + 3
