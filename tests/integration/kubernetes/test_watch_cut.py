"""The connection to the API server breaks, and the server itself goes: what happened meanwhile is not missed."""

import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from dev.embedded.control_plane import ControlPlane
from dev.embedded.control_plane.credentials import build_kubeconfig
from runtime.http.certificate_authority import Authority
from schemas.json_types import Json
from tests.support.backends import Addresses
from tests.support.control_plane.bookkeeping import find_overbooked, list_placements, wait_for_agreement
from tests.support.control_plane.device_plugins import DevicePlugins
from tests.support.control_plane.extender_process import Extender, build_scheduler_configuration
from tests.support.control_plane.objects import (
    DEVICE_MEMORY_MIB,
    DEVICES_PER_NODE,
    a_gpu_node,
    a_gpu_pod,
    annotate,
    create_pods,
    created_nodes,
    list_pods,
)
from tests.support.harness.topics import provision_all
from tests.support.tcp_proxy import TcpProxy
from tests.support.waiting import eventually

NAME = "hami-cut"
CUTS = 40


@pytest.fixture
def wire(control_plane: ControlPlane) -> Iterator[TcpProxy]:
    """Proxy through which our scheduler, and nobody else, reaches the API server."""
    with TcpProxy(lambda: control_plane.api_server.port) as proxy:
        yield proxy


@pytest.fixture
async def extender(
    control_plane: ControlPlane, wire: TcpProxy, backends: Addresses, tmp_path: Path
) -> AsyncIterator[Extender]:
    await provision_all(backends.bootstrap_servers)
    file = tmp_path / "through-the-wire.kubeconfig"
    file.write_text(
        build_kubeconfig(f"https://127.0.0.1:{wire.port}", control_plane.ca.read_text(), control_plane.admin_token)
    )
    authority = Authority.create("the tests' authority")
    with Extender(tmp_path / "extender", file, authority, NAME, "--kafka", backends.bootstrap_servers) as running:
        control_plane.start_scheduler(build_scheduler_configuration(running.url, running.ca, NAME))
        yield running


def a_pod_for_one_device(name: str) -> Json:
    return a_gpu_pod(name, NAME, gpumem=DEVICE_MEMORY_MIB, gpucores=100)


def forget_history(control_plane: ControlPlane, client: httpx.Client, namespace: str) -> None:
    """Make the API server forget what it could tell a watch that resumes: its cache, and etcd's old revisions."""
    version = client.get(f"/api/v1/namespaces/{namespace}/pods").json()["metadata"]["resourceVersion"]
    create_pods(client, namespace, [a_pod_for_one_device("later")])
    client.delete(f"/api/v1/namespaces/{namespace}/pods/later").raise_for_status()
    control_plane.api_server.kill()
    etcd = f"{control_plane.etcd.url}/v3"
    revision = httpx.post(f"{etcd}/maintenance/status", json={}, timeout=30).json()["header"]["revision"]
    httpx.post(f"{etcd}/kv/compaction", json={"revision": revision, "physical": True}, timeout=30).raise_for_status()
    control_plane.api_server.start()
    query = {"watch": "true", "resourceVersion": version, "timeoutSeconds": "5"}
    assert '"code":410' in client.get("/api/v1/pods", params=query).text


@pytest.mark.parametrize("forgets", [False, True], ids=["which the server remembers", "which the server has forgotten"])
async def test_what_happened_while_the_watch_was_cut_counts_when_it_resumes(
    control_plane: ControlPlane,
    extender: Extender,
    wire: TcpProxy,
    backends: Addresses,
    namespace: str,
    forgets: bool,
) -> None:
    old, new = f"{namespace}-old", f"{namespace}-new"
    with (
        created_nodes(control_plane, [a_gpu_node(old, devices=1)]),
        DevicePlugins(control_plane, namespace),
        control_plane.open_client() as client,
    ):
        create_pods(client, namespace, [a_pod_for_one_device("first")])
        eventually(lambda: "first" in list_placements(list_pods(client, namespace)), extender.log.read_text)
        wire.sever()
        client.delete(f"/api/v1/namespaces/{namespace}/pods/first").raise_for_status()
        if forgets:
            forget_history(control_plane, client, namespace)
        with created_nodes(control_plane, [a_gpu_node(new, devices=1)]):
            create_pods(client, namespace, [a_pod_for_one_device("second"), a_pod_for_one_device("third")])
            wire.mend()

            def annotate_and_check() -> bool:
                # kube-scheduler tries a refused pod again when something changes, and here nothing else would.
                annotate(client, f"/api/v1/nodes/{old}", {"tests/nudge": str(time.monotonic())})
                return len(list_placements(list_pods(client, namespace))) == 2

            # Both devices are free only for a scheduler that heard of the deletion and of the new node.
            eventually(annotate_and_check, extender.log.read_text)
            pods = list_pods(client, namespace)
            assert {placement.node for placement in list_placements(pods).values()} == {old, new}
            await wait_for_agreement(backends.bootstrap_servers, namespace, pods)


async def test_connections_that_break_again_and_again_cost_no_device_and_no_pod(
    control_plane: ControlPlane, extender: Extender, wire: TcpProxy, backends: Addresses, namespace: str
) -> None:
    nodes = [a_gpu_node(f"{namespace}-{number}") for number in range(5)]
    count = len(nodes) * DEVICES_PER_NODE
    with (
        created_nodes(control_plane, nodes),
        DevicePlugins(control_plane, namespace),
        control_plane.open_client() as client,
    ):
        create_pods(client, namespace, [a_pod_for_one_device(f"pod-{number}") for number in range(count)])

        cuts_left = iter(range(CUTS))

        def cut_and_check() -> bool:
            # Bounded: on a busy machine a request may take longer than the time between two cuts.
            if next(cuts_left, None) is not None:
                wire.cut()
            return len(list_placements(list_pods(client, namespace))) == count

        # A bind whose answer and look-up are both cut keeps its lock, in case the pod is bound: for five minutes.
        eventually(cut_and_check, extender.log.read_text, seconds=420)
        assert wire.cuts > 5
        pods = list_pods(client, namespace)
        assert find_overbooked(list_placements(pods).values()) == {}
        await wait_for_agreement(backends.bootstrap_servers, namespace, pods)


async def test_an_api_server_that_is_killed_and_comes_back_finds_a_scheduler_that_continues(
    control_plane: ControlPlane, extender: Extender, backends: Addresses, namespace: str
) -> None:
    with (
        created_nodes(control_plane, [a_gpu_node(f"{namespace}-a", devices=2)]),
        DevicePlugins(control_plane, namespace),
        control_plane.open_client() as client,
    ):
        create_pods(client, namespace, [a_pod_for_one_device("before")])
        eventually(lambda: "before" in list_placements(list_pods(client, namespace)), extender.log.read_text)
        control_plane.api_server.kill()
        control_plane.api_server.start()
        create_pods(client, namespace, [a_pod_for_one_device("after")])
        eventually(lambda: "after" in list_placements(list_pods(client, namespace)), extender.log.read_text)
        pods = list_pods(client, namespace)
        assert find_overbooked(list_placements(pods).values()) == {}
        await wait_for_agreement(backends.bootstrap_servers, namespace, pods)
