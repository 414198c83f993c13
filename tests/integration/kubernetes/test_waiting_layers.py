"""``list --pending`` on a real cluster where every system of queues and groups holds something.

The controllers of Kueue, Volcano, KAI, YuniKorn, Koordinator, slurm-bridge and the autoscaler do not run here: their
objects, conditions and events are written as recordings of them have them. What Kubernetes itself does is real: Jobs
that are suspended or refused by a quota, gates, a claim that does not exist, and kube-scheduler.
"""

import json
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Final

import httpx
import pytest
from typer.testing import CliRunner

from cli.terminal.kubectl import app
from dev.embedded.control_plane import ControlPlane
from dev.embedded.control_plane.folder import link_kubectl
from schemas.json_types import Json
from tests.support.control_plane.objects import created_namespace, created_nodes
from tests.support.control_plane.queue_systems import created_kinds
from tests.support.control_plane.waiting_systems import OF_NODE, REGISTERED, REJECTED, Systems
from tests.support.harness.api_process import Served, serving
from tests.support.harness.pipeline_process import pipeline
from tests.support.harness.watched_cluster import watching_cluster
from tests.support.reused_backends import reused_backends
from tests.support.waiting import eventually, until

EXPECTED: Final[Mapping[str, tuple[str, str]]] = {
    "job/suspended": ("KueueWaitsForQuota", "queue"),
    "gated": ("KueueWaitsForQuota", "queue"),
    "job/group": ("GroupNotEnqueued", "queue"),
    "kai": ("QueueFull", "queue"),
    "koordinator": ("QueueFull", "queue"),
    "yunikorn": ("QueueFull", "queue"),
    "siblings": ("GangIncomplete", "gate"),
    "copied": ("SchedulingGated", "gate"),
    "claim": ("DeviceClaimMissing", "gate"),
    "slurm": ("SlurmWaits", "bind"),
    "large": ("ResourceNeverEnough", "nodes"),
    "rejected": ("KubeletPluginFailed", "start"),
    "job/refused": ("QuotaExceeded", "queue"),
    "undetermined": ("GangIncomplete", "gate"),
    "vgpu": ("SharedDeviceTooSmall", "nodes"),
    "kai-group": ("GangIncomplete", "gate"),
    "koordinator-gang": ("GangIncomplete", "gate"),
    "koordinator-device": ("SharedDeviceTooSmall", "nodes"),
    "volume": ("ClaimMissing", "gate"),
    "share": ("ShareOfOtherScheduler", "nodes"),
    "scaling": ("ResourceNeverEnough", "nodes"),
    "karpenter": ("ResourceNeverEnough", "nodes"),
    "out-of-gpu": ("KubeletOutOfResource", "start"),
    "evicted": ("KubeletEvictedForNode", "start"),
}
"""Obstacle and layer by the name in the list."""


@pytest.fixture(scope="module")
def systems(control_plane: ControlPlane) -> Iterator[Systems]:
    """A namespace in which every system holds something."""
    control_plane.start_scheduler({})
    name = f"layers-{uuid.uuid4().hex[:8]}"
    metadata = {"name": f"{name}-0", "annotations": REGISTERED}
    node = {"metadata": metadata, "status": {"allocatable": OF_NODE, "capacity": OF_NODE}}
    with ExitStack() as stack:
        stack.enter_context(created_kinds(control_plane))
        stack.enter_context(created_namespace(control_plane, name))
        stack.enter_context(created_nodes(control_plane, [node]))
        client = stack.enter_context(control_plane.open_client())
        systems = Systems(client, name)
        systems.add_kueue()
        systems.add_volcano()
        systems.add_others()
        eventually(lambda: "FailedScheduling" in systems.list_reasons(), "kube-scheduler has refused no pod")
        systems.add_rejected()
        systems.add_refused_job()
        yield systems


@pytest.fixture(scope="module")
def items(control_plane: ControlPlane, systems: Systems, tmp_path_factory: pytest.TempPathFactory) -> list[Json]:
    """The answer of the command, without any service of ours on the cluster."""
    folder = tmp_path_factory.mktemp("layers")
    link_kubectl(folder, control_plane.binary)
    environment = {"KUBECONFIG": str(control_plane.kubeconfig), "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    done = CliRunner().invoke(app, ["list", "--pending", "-A", "-o", "json"], env=environment)
    assert done.exit_code == 0, done.output
    answer: Json = json.loads(done.stdout)
    return [item for item in answer["items"] if item["namespace"] == systems.namespace]


def test_everything_that_waits_is_listed_once_and_nothing_else(items: list[Json]) -> None:
    assert sorted(item["name"] for item in items) == sorted(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_each_system_has_its_obstacle_and_its_layer(items: list[Json], name: str) -> None:
    (item,) = [item for item in items if item["name"] == name]
    code, layer = EXPECTED[name]
    assert item["obstacle"], item
    assert (item["obstacle"]["code"], item["layer"]) == (code, layer), item["obstacle"]["sentence"]["en"]


@pytest.fixture(scope="module")
def listed(
    control_plane: ControlPlane, systems: Systems, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Json]]:
    """The answer of the API, from what ``ingest kube-events`` publishes: once all subjects are in it."""
    folder = tmp_path_factory.mktemp("listed")
    with (
        reused_backends.taken() as servers,
        pipeline(folder, servers) as running,
        serving(servers.bootstrap_servers, servers.opensearch_url) as api,
    ):
        running.start_all()
        with watching_cluster(control_plane.kubeconfig, servers.bootstrap_servers, folder):
            until(lambda: list_pending(api, systems.namespace), has_settled)
            systems.add_rejected()
            yield until(lambda: list_pending(api, systems.namespace), lambda items: len(items) == len(EXPECTED))


def list_pending(api: Served, namespace: str) -> list[Json]:
    answer = api.get("/api/v1/pending", namespace=namespace, group_by="pod", limit="100")
    items: list[Json] = answer.json().get("items", []) if answer.status_code == httpx.codes.OK else []
    return items


def has_settled(items: list[Json]) -> bool:
    """Tell whether every subject that stays is listed with what its system has written by now."""
    codes = {item["name"]: item["obstacle"] and item["obstacle"]["code"] for item in items}
    expected = {name: code for name, (code, _) in EXPECTED.items() if name not in REJECTED}
    return codes.items() >= expected.items()


def test_the_api_lists_what_the_cluster_itself_lists(listed: list[Json], items: list[Json]) -> None:
    assert sorted(item["name"] for item in listed) == sorted(item["name"] for item in items)


@pytest.mark.parametrize("name", EXPECTED)
def test_the_api_lists_each_subject_with_its_obstacle_and_layer(listed: list[Json], name: str) -> None:
    (item,) = [item for item in listed if item["name"] == name]
    code, layer = EXPECTED[name]
    assert (item["obstacle"]["code"], item["layer"]) == (code, layer), item["obstacle"]


def test_both_modes_name_the_same_decisive_layer_and_obstacle_for_everything(
    listed: list[Json], items: list[Json]
) -> None:
    over_api, direct = (
        {item["name"]: (item["layer"], item["obstacle"]["code"]) for item in answer} for answer in (listed, items)
    )
    assert over_api == direct


@pytest.mark.parametrize("name", [name for name in EXPECTED if "/" in name])
def test_workloads_without_pods_have_the_same_obstacle_over_the_api(
    listed: list[Json], items: list[Json], name: str
) -> None:
    (over_api,), (direct,) = ([item for item in answer if item["name"] == name] for answer in (listed, items))
    assert over_api["obstacle"] == direct["obstacle"]
    assert (over_api["queue"], over_api["devices"]) == (direct["queue"], direct["devices"])
