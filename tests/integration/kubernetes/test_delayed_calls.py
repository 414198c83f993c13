"""H2, H3 on a real API server: a bind that takes too long, and a binding made from an older version of its pod."""

import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from dev.embedded.control_plane import ControlPlane
from dev.embedded.control_plane.credentials import build_kubeconfig
from engine.hami.annotations import ASSIGNED_NODE, BIND_PHASE
from runtime.http.certificate_authority import Authority
from schemas.json_types import Json
from tests.support.control_plane.device_plugins import DevicePlugins
from tests.support.control_plane.extender_process import Extender
from tests.support.control_plane.objects import a_gpu_node, a_gpu_pod, annotate, create_pods, created_nodes
from tests.support.tcp_proxy import TcpProxy
from tests.support.waiting import eventually

NAME = "hami-late"


@pytest.fixture
def wire(control_plane: ControlPlane) -> Iterator[TcpProxy]:
    with TcpProxy(lambda: control_plane.api_server.port) as proxy:
        yield proxy


@pytest.fixture
def extender(control_plane: ControlPlane, wire: TcpProxy, tmp_path: Path) -> Iterator[Extender]:
    file = tmp_path / "through-the-wire.kubeconfig"
    file.write_text(
        build_kubeconfig(f"https://127.0.0.1:{wire.port}", control_plane.ca.read_text(), control_plane.admin_token)
    )
    flags = "--no-publish", "--no-leader-elect", "--bind-timeout", "1s", "--kube-timeout", "60s"
    with Extender(tmp_path / "extender", file, Authority.create("the tests' authority"), NAME, *flags) as running:
        yield running


def test_h2_a_bind_that_takes_too_long_is_answered_and_never_ends_on_another_node(
    control_plane: ControlPlane, extender: Extender, wire: TcpProxy, namespace: str
) -> None:
    nodes = [f"{namespace}-a", f"{namespace}-b"]
    with (
        created_nodes(control_plane, [a_gpu_node(name, devices=1) for name in nodes]),
        DevicePlugins(control_plane, namespace),
        control_plane.open_client() as client,
        httpx.Client(base_url=extender.url, verify=False, timeout=60) as caller,  # noqa: S501 - not about certificates
    ):
        create_pods(client, namespace, [a_gpu_pod("late", NAME)])
        path = f"/api/v1/namespaces/{namespace}/pods/late"

        def filter_nodes(names: list[str]) -> Json:
            body = {"Pod": client.get(path).json(), "Nodes": None, "NodeNames": names}
            answer: Json = caller.post("/filter", json=body).json()
            return answer

        def bound_to(node: str) -> str:
            uid = client.get(path).json()["metadata"]["uid"]
            request = {"PodName": "late", "PodNamespace": namespace, "PodUID": uid, "Node": node}
            return str(caller.post("/bind", json=request).json()["Error"])

        eventually(lambda: filter_nodes(nodes[:1])["NodeNames"] == nodes[:1], extender.log.read_text)
        wire.hold()
        began = time.monotonic()
        assert bound_to(nodes[0]) == "the bind took longer than 1 s"
        # Without the limit it would wait for the API server's answer: 60 s (`--kube-timeout`).
        assert time.monotonic() - began < 50
        assert filter_nodes(nodes[1:])["Error"] == "an earlier bind of this pod is still under way"
        wire.release()
        eventually(lambda: filter_nodes(nodes[1:])["NodeNames"] == nodes[1:], extender.log.read_text)
        assert bound_to(nodes[1]) == ""
        pod = client.get(path).json()
        assert (pod["spec"]["nodeName"], pod["metadata"]["annotations"][ASSIGNED_NODE]) == (nodes[1], nodes[1])


def test_h3_the_api_server_refuses_a_binding_and_a_decision_from_an_older_version(
    control_plane: ControlPlane, namespace: str
) -> None:
    with control_plane.open_client() as client, created_nodes(control_plane, [a_gpu_node(f"{namespace}-a")]):
        create_pods(client, namespace, [a_gpu_pod("late", NAME)])
        path = f"/api/v1/namespaces/{namespace}/pods/late"
        metadata = client.get(path).json()["metadata"]
        seen = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        annotate(client, path, {BIND_PHASE: "somebody else"})
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": "late", "namespace": namespace} | seen,
            "target": {"apiVersion": "v1", "kind": "Node", "name": f"{namespace}-a"},
        }
        assert client.post(f"{path}/binding", json=binding).status_code == httpx.codes.CONFLICT
        merge = {"content-type": "application/merge-patch+json"}
        change = {"metadata": seen | {"annotations": {ASSIGNED_NODE: "x"}}}
        assert client.patch(path, json=change, headers=merge).status_code == httpx.codes.CONFLICT
        assert "nodeName" not in client.get(path).json()["spec"]
