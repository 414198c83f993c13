"""The control plane that the other tests stand on."""

from embedded.control_plane import ControlPlane
from tests.integration.kubernetes.objects import create, eventually


def test_it_says_the_version_that_it_was_built_from(control_plane: ControlPlane) -> None:
    with control_plane.client() as client:
        assert client.get("/version").json()["gitVersion"] == "v1.36.3"


def test_a_pod_is_scheduled_and_runs(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.start_scheduler({})
    with control_plane.client() as client:
        create(client, "/api/v1/nodes", {"metadata": {"name": "smoke-node"}})
        pods = f"/api/v1/namespaces/{namespace}/pods"
        container = {"name": "main", "image": "none"}
        create(client, pods, {"metadata": {"name": "smoke"}, "spec": {"containers": [container]}})
        try:
            eventually(
                lambda: client.get(f"{pods}/smoke").json()["status"]["phase"] == "Running", "the pod does not run"
            )
        finally:
            client.delete("/api/v1/nodes/smoke-node")


def test_what_was_written_is_there_after_a_kill(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.api_server.kill()
    control_plane.api_server.start()
    assert namespace in control_plane.kubectl("get", "namespaces", "--output", "name")
