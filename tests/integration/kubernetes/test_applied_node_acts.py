"""Advice of a diagnosis to an administrator: it is done to a real node, and kube-scheduler places the pod there.

The whole way: our scheduler's decisions through worker and index writer, and the API that reads them.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import httpx
import pytest

from dev.embedded.control_plane import ControlPlane
from runtime.http.certificate_authority import Authority
from schemas.json_types import Json
from tests.support.control_plane.bookkeeping import list_placements
from tests.support.control_plane.device_plugins import PHASE, DevicePlugins
from tests.support.control_plane.extender_process import Extender, build_scheduler_configuration
from tests.support.control_plane.objects import (
    LOCK,
    MERGE_PATCH,
    a_gpu_node,
    a_gpu_pod,
    annotate,
    create_pods,
    created_namespace,
    created_nodes,
    get_annotations,
    list_pods,
)
from tests.support.harness.api_process import Served, serving
from tests.support.harness.pipeline_process import pipeline
from tests.support.reused_backends import reused_backends
from tests.support.waiting import eventually

NAME, NAMESPACE = "hami-node-acts", "test-node-acts"
LARGE, SMALL = f"{NAMESPACE}-large", f"{NAMESPACE}-small"
REGISTER = "hami.io/node-nvidia-register"


@dataclass(frozen=True, slots=True)
class World:
    """A node with a device of 40,960 MiB, and one with a device of 16,000."""

    client: httpx.Client
    api: Served
    log: Path

    def find_suggestion(self, pod: str, constraint: str) -> Json:
        """Find the suggestion of one edit of this constraint; empty where there is none (yet)."""
        answer = self.api.client.get(f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}/suggestions")
        items = answer.json()["items"] if answer.status_code == httpx.codes.OK else []
        suggestions = (item for item in items if [edit["constraint"] for edit in item["edits"]] == [constraint])
        return next(suggestions, {})

    def find_placement(self, pod: str) -> tuple[str, list[str]] | None:
        """Find the node of the pod and its devices, as the API server has them."""
        placement = list_placements(list_pods(self.client, NAMESPACE)).get(pod)
        return (placement.node, [share.device for share in placement.shares]) if placement else None

    def is_sent_to(self, pod: Json, node: str | None) -> bool:
        """Tell whether the states that the scheduler has published send the pod to this node, or to none."""
        body = {"apiVersion": "v1", "kind": "Pod"} | pod | {"metadata": pod["metadata"] | {"namespace": NAMESPACE}}
        answer = self.api.client.post("/api/v1/simulate", json=body)
        return answer.status_code == httpx.codes.OK and answer.json()["node"] == node

    def offer(self, node: str, slots: str) -> None:
        """Make the node's status offer so many slots of devices, as its kubelet writes it."""
        amounts = {"nvidia.com/gpu": slots}
        body = json.dumps({"status": {"allocatable": amounts, "capacity": amounts}})
        self.client.patch(f"/api/v1/nodes/{node}/status", content=body, headers=MERGE_PATCH).raise_for_status()

    def is_allocated(self) -> bool:
        """Tell whether the device plugins are done with every pod that is on a node."""
        bound = [pod for pod in list_pods(self.client, NAMESPACE) if pod["spec"].get("nodeName")]
        return all(get_annotations(pod).get(PHASE) == "success" for pod in bound)

    def is_recorded(self, pod: str) -> bool:
        return self.api.client.get(f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}/schedulerlog").is_success


@pytest.fixture(scope="module")
def world(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("node-acts")
    nodes = [a_gpu_node(LARGE, devices=1), a_gpu_node(SMALL, devices=1, devmem=16_000)]
    with reused_backends.taken() as servers, pipeline(folder, servers) as running:
        running.start_all()
        flags = ("--kafka", servers.bootstrap_servers)
        extender = Extender(folder, control_plane.kubeconfig, Authority.create("the tests' authority"), NAME, *flags)
        api = serving(
            servers.bootstrap_servers, servers.opensearch_url, SCHEDULERLOG_KUBECONFIG=str(control_plane.kubeconfig)
        )
        with created_namespace(control_plane, NAMESPACE), created_nodes(control_plane, nodes), extender, api as served:
            control_plane.start_scheduler(build_scheduler_configuration(extender.url, extender.ca, NAME))
            with DevicePlugins(control_plane, NAMESPACE), control_plane.open_client() as client:
                yield World(client, served, extender.log)


def test_a_node_that_registers_again_gets_the_pod(world: World) -> None:
    # A decision about both nodes: what they registered is recorded with it.
    create_pods(world.client, NAMESPACE, [a_gpu_pod("before", NAME, gpumem=60_000)])
    eventually(partial(world.is_recorded, "before"), world.log.read_text)
    node = f"/api/v1/nodes/{LARGE}"
    registered = get_annotations(world.client.get(node).json())[REGISTER]
    wants = a_gpu_pod("wants", NAME, gpumem=30_000)
    eventually(partial(world.is_sent_to, wants, LARGE), world.log.read_text)
    # As of a device plugin that is taken away: HAMi and we keep what was registered until the kubelet offers nothing.
    annotate(world.client, node, {REGISTER: None})
    world.offer(LARGE, "0")
    eventually(partial(world.is_sent_to, wants, None), world.log.read_text)
    create_pods(world.client, NAMESPACE, [wants])
    suggestion = eventually(partial(world.find_suggestion, "wants", "registration"), world.log.read_text)
    assert suggestion["edits"][0]["where"] == suggestion["node"] == LARGE
    assert world.find_placement("wants") is None
    annotate(world.client, node, {REGISTER: registered})
    world.offer(LARGE, "10")
    # Not asked of `simulate`: kube-scheduler tries the refused pod again at once, and its devices are taken then.
    placed = eventually(partial(world.find_placement, "wants"), world.log.read_text)
    assert placed == (suggestion["node"], suggestion["devices"][0]["uuids"])


def test_a_node_without_the_lock_of_a_dead_bind_gets_the_pod(world: World) -> None:
    # Or the device plugin, which is about to give back the lock of the pod before, would give back this one.
    eventually(world.is_allocated, world.log.read_text)
    # The node that binpack prefers, since a pod holds most of it. Its lock is of a pod that nobody binds.
    create_pods(world.client, NAMESPACE, [a_gpu_pod("dead", "nobody", gpumem=1_000)])
    since = datetime.now(UTC) - timedelta(seconds=90)
    annotate(world.client, f"/api/v1/nodes/{LARGE}", {LOCK: f"{since:%Y-%m-%dT%H:%M:%SZ},{NAMESPACE},dead"})
    create_pods(world.client, NAMESPACE, [a_gpu_pod("locked-out", NAME, gpumem=1_000)])
    suggestion = eventually(partial(world.find_suggestion, "locked-out", "lock"), world.log.read_text)
    assert (suggestion["edits"][0]["before"], suggestion["node"]) == (f"{NAMESPACE}/dead", LARGE)
    assert world.find_placement("locked-out") is None
    annotate(world.client, f"/api/v1/nodes/{LARGE}", {LOCK: None})
    placed = eventually(partial(world.find_placement, "locked-out"), world.log.read_text)
    assert placed == (suggestion["node"], suggestion["devices"][0]["uuids"])
