"""Suggestions done on a real cluster: the real kube-scheduler places the pod where the suggestion says."""

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from dev.embedded.control_plane import ControlPlane
from runtime.http.certificate_authority import Authority
from schemas.json_types import Json
from tests.support.backends import Addresses
from tests.support.control_plane.bookkeeping import list_placements
from tests.support.control_plane.device_plugins import DevicePlugins
from tests.support.control_plane.extender_process import Extender, build_scheduler_configuration
from tests.support.control_plane.objects import (
    a_gpu_node,
    a_gpu_pod,
    annotate,
    create_pods,
    created_namespace,
    created_nodes,
    list_pods,
)
from tests.support.harness.api_process import Served, serving
from tests.support.harness.index_filling import Filling
from tests.support.waiting import eventually

NAME = "hami-suggested"
CORDON = "hami.io/device-cordon"
TYPE = "nvidia.com/use-gputype"


@dataclass(frozen=True, slots=True)
class World:
    """A large node whose one device is cordoned, and a small one with two devices."""

    client: httpx.Client
    api: Served
    log: Path
    namespace: str

    @property
    def large(self) -> str:
        return f"{self.namespace}-large"

    @property
    def small(self) -> str:
        return f"{self.namespace}-small"

    def simulate(self, pod: Json) -> Json:
        """Return the answer of the API for the pod; empty until the node states are read."""
        answer = self.api.client.post("/api/v1/simulate", content=orjson.dumps(to_namespace(pod, self.namespace)))
        simulation: Json = answer.json() if answer.status_code == httpx.codes.OK else {}
        return simulation

    def counts_what_is_placed(self) -> bool:
        """Tell whether the API has read the states since a pod was placed: before the first, both devices are free."""
        simulation = self.simulate(a_gpu_pod("whole", NAME, gpus=2, gpumem=16_000))
        return bool(simulation) and (simulation["node"] is None) == bool(list_placements(self.read_pods()))

    def find_placement(self, name: str) -> tuple[str, list[str]] | None:
        """Find the node of the pod and its devices, as the API server has them."""
        placement = list_placements(list_pods(self.client, self.namespace)).get(name)
        return (placement.node, [share.device for share in placement.shares]) if placement else None

    def is_refused(self, name: str) -> bool:
        pods = {pod["metadata"]["name"]: pod["status"].get("conditions", []) for pod in self.read_pods()}
        return any(condition.get("reason") == "Unschedulable" for condition in pods[name])

    def read_pods(self) -> list[Json]:
        return list_pods(self.client, self.namespace)

    def delete(self, name: str) -> None:
        path = f"/api/v1/namespaces/{self.namespace}/pods/{name}"
        self.client.request("DELETE", path, json={"gracePeriodSeconds": 0}).raise_for_status()
        eventually(lambda: self.client.get(path).status_code == httpx.codes.NOT_FOUND, f"{name} is not deleted")


def to_namespace(pod: Json, namespace: str) -> Json:
    return {"apiVersion": "v1", "kind": "Pod"} | pod | {"metadata": pod["metadata"] | {"namespace": namespace}}


@pytest.fixture(scope="module")
def world(
    control_plane: ControlPlane, backends: Addresses, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    folder, namespace = tmp_path_factory.mktemp("suggested"), f"test-{uuid.uuid4().hex[:8]}"
    Filling(backends.bootstrap_servers, backends.opensearch_url).provision()
    flags = ("--kafka", backends.bootstrap_servers, "--cluster-name", namespace)
    extender = Extender(folder, control_plane.kubeconfig, Authority.create("the tests' authority"), NAME, *flags)
    api = serving(
        backends.bootstrap_servers, backends.opensearch_url, SCHEDULERLOG_CLUSTER_NAME=namespace,
        SCHEDULERLOG_KUBECONFIG=str(control_plane.kubeconfig),
    )  # fmt: skip
    large, small = f"{namespace}-large", f"{namespace}-small"
    cordoned = a_gpu_node(large, devices=1)
    cordoned["metadata"]["annotations"][CORDON] = f"GPU-{large}-0"
    nodes = created_nodes(control_plane, [cordoned, a_gpu_node(small, devices=2, devmem=16_000)])
    with (
        created_namespace(control_plane, namespace),
        nodes,
        extender,
        api as served,
        control_plane.open_client() as client,
    ):
        control_plane.start_scheduler(build_scheduler_configuration(extender.url, extender.ca, NAME))
        with DevicePlugins(control_plane, namespace):
            yield World(client, served, extender.log, namespace)


def a_pod_wanting(name: str, memory_mib: int, annotations: dict[str, str] | None = None) -> Json:
    pod = a_gpu_pod(name, NAME, gpus=1, gpumem=memory_mib)
    return pod | {"metadata": pod["metadata"] | {"annotations": annotations or {}}}


def ask_for_less(_: World, pod: Json, edit: Json) -> Json:
    _container, _, resource = edit["where"].partition(": ")
    (container,) = pod["spec"]["containers"]
    limits = container["resources"]["limits"] | {resource: edit["after"]}
    return pod | {"spec": pod["spec"] | {"containers": [container | {"resources": {"limits": limits}}]}}


def give_up_the_annotation(_: World, pod: Json, edit: Json) -> Json:
    annotations = {key: text for key, text in pod["metadata"]["annotations"].items() if key != edit["where"]}
    return pod | {"metadata": pod["metadata"] | {"annotations": annotations}}


def uncordon(world: World, pod: Json, edit: Json) -> Json:
    assert edit["where"] == f"GPU-{world.large}-0"
    annotate(world.client, f"/api/v1/nodes/{world.large}", {CORDON: None})
    return pod


Change = Callable[[World, Json, Json], Json]


@pytest.mark.parametrize(
    ("constraint", "pod", "change"),
    [
        ("memory", a_pod_wanting("less-memory", 30_000), ask_for_less),
        ("type", a_pod_wanting("another-type", 1_000, {TYPE: "H100"}), give_up_the_annotation),
        # Last: from then on the large node takes pods.
        ("cordon", a_pod_wanting("uncordoned", 40_000), uncordon),
    ],
)
def test_after_the_change_the_pod_is_where_the_suggestion_says(
    world: World, constraint: str, pod: Json, change: Change
) -> None:
    name = pod["metadata"]["name"]
    create_pods(world.client, world.namespace, [pod])
    eventually(partial(world.is_refused, name), world.log.read_text)
    eventually(world.counts_what_is_placed, "the API knows no devices")
    simulation = world.simulate(pod)
    assert simulation["node"] is None
    suggested = {
        item["edits"][0]["constraint"]: item for item in simulation["suggestions"]["items"] if has_one_edit(item)
    }
    suggestion = suggested[constraint]
    world.delete(name)
    changed = change(world, pod, suggestion["edits"][0])
    # The scheduler has published that it knows of the change.
    eventually(lambda: world.simulate(changed)["node"] == suggestion["node"], world.log.read_text)
    create_pods(world.client, world.namespace, [changed])
    placed = eventually(partial(world.find_placement, name), world.log.read_text)
    assert placed == (suggestion["node"], suggestion["devices"][0]["uuids"])


def has_one_edit(item: dict[str, Any]) -> bool:
    return len(item["edits"]) == 1
