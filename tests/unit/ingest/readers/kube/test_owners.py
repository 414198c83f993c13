"""Chains of owners: read once, as far up as the account may read, and never in the way of the events."""

import logging
from typing import Any

import pytest

from ingest.readers.kube.owners import ASKED_AGAIN_SECONDS, DescribingSink, Owners
from runtime.kubernetes.errors import KubeApiError, build_missing_error
from schemas.events import Event, Owner, PodDescription, PodObserved, PodRef
from schemas.json_types import Json
from tests.support.builders.spool_entries import NOW

REPLICA_SET = Owner(kind="ReplicaSet", name="web-5996b8569d", api_version="apps/v1")
DERIVED = Owner(kind="Deployment", name="web")
DEPLOYMENT = Owner(kind="Deployment", name="web", api_version="apps/v1")
SERVICE = Owner(kind="InferenceService", name="web", api_version="serving.kserve.io/v1")
CHAIN = [REPLICA_SET, DEPLOYMENT, SERVICE]
APPS = [("replicasets", "ReplicaSet"), ("replicasets/status", "ReplicaSet"), ("deployments", "Deployment")]
SERVING = [("inferenceservices", "InferenceService")]


def make_resources(*listed: tuple[str, str]) -> Json:
    return {"resources": [{"name": name, "kind": kind, "namespaced": True} for name, kind in listed]}


def make_owned(owner: Owner) -> Json:
    reference = {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "controller": True}
    return {"metadata": {"ownerReferences": [reference]}}


class Api:
    """The objects of the chain, and which paths were asked for."""

    def __init__(self) -> None:
        self.objects: dict[str, Json] = {
            "/apis/apps/v1": make_resources(*APPS),
            "/apis/serving.kserve.io/v1": make_resources(*SERVING),
            "/apis/apps/v1/namespaces/ml/replicasets/web-5996b8569d": make_owned(DEPLOYMENT),
            "/apis/apps/v1/namespaces/ml/deployments/web": make_owned(SERVICE),
            "/apis/serving.kserve.io/v1/namespaces/ml/inferenceservices/web": {"metadata": {}},
        }
        self.paths: list[str] = []
        self.forbidden = ""
        self.now = 0.0

    async def get(self, path: str) -> Json:
        self.paths.append(path)
        if self.forbidden and self.forbidden in path:
            raise KubeApiError(403, f"forbidden: {path}")
        if path not in self.objects:
            raise build_missing_error("objects", path)
        return self.objects[path]

    get_metadata = get

    def create_owners(self) -> Owners:
        return Owners(self, lambda: self.now)


async def test_the_chain_is_read_to_its_top_and_each_owner_once() -> None:
    api = Api()
    create_owners = api.create_owners()
    for _ in range(2):
        assert await create_owners.read_chain("ml", [REPLICA_SET, DERIVED]) == CHAIN
    assert sorted(api.paths) == sorted(api.objects)


async def test_without_the_right_the_chain_is_what_the_pod_shows_and_it_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    api, path = Api(), "/apis/apps/v1/namespaces/ml/replicasets/web-5996b8569d"
    api.forbidden = "replicasets"
    create_owners = api.create_owners()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert await create_owners.read_chain("ml", [REPLICA_SET, DERIVED]) == [REPLICA_SET, DERIVED]
        assert api.paths.count(path) == 1
        api.now += ASKED_AGAIN_SECONDS
        await create_owners.read_chain("ml", [REPLICA_SET])
        api.now += ASKED_AGAIN_SECONDS
        api.forbidden = ""
        assert await create_owners.read_chain("ml", [REPLICA_SET]) == CHAIN
    assert [record.getMessage() for record in caplog.records] == [
        f"owners of pods are read up to their ReplicaSet (apps/v1): forbidden: {path}"
    ]


async def test_an_owner_that_is_gone_or_of_an_unknown_kind_ends_the_chain() -> None:
    api = Api()
    del api.objects["/apis/apps/v1/namespaces/ml/deployments/web"]
    assert await api.create_owners().read_chain("ml", [REPLICA_SET, DERIVED]) == [REPLICA_SET, DEPLOYMENT]
    strange = Owner(kind="Strange", name="x", api_version="apps/v1")
    assert await api.create_owners().read_chain("ml", [strange]) == [strange]


async def test_owners_in_a_circle_end() -> None:
    api = Api()
    api.objects["/apis/apps/v1/namespaces/ml/deployments/web"] = make_owned(REPLICA_SET)
    assert len(await api.create_owners().read_chain("ml", [REPLICA_SET])) == 8


async def test_descriptions_are_completed_on_the_way_to_the_sink() -> None:
    class Sink(list[Event]):
        async def send(self, events: Any) -> None:
            self.extend(events)

    sink, pod = Sink(), PodRef(namespace="ml", name="web-1")
    bare = PodObserved(cluster="east", pod=pod, observed_at=NOW, phase="Pending")
    owned = bare.model_copy(update={"description": PodDescription(create_owners=[REPLICA_SET, DERIVED], queue="q")})
    await DescribingSink(sink, Api().create_owners()).send([bare, owned])
    assert sink == [bare, bare.model_copy(update={"description": PodDescription(create_owners=CHAIN, queue="q")})]
