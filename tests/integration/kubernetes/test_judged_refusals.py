"""Refusals of the real kube-scheduler, judged on the cluster's objects: from its events to the answer of the API."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from dev.embedded.control_plane import ControlPlane
from schemas.codec.records import decode
from schemas.events import NodeObserved
from schemas.json_types import Json
from schemas.topics import NODES
from tests.support.builders.claims import a_class, a_device, a_request, a_slice
from tests.support.control_plane.objects import create, created_nodes
from tests.support.control_plane.plain_scheduler import SCHEDULER, a_pod
from tests.support.harness.api_process import Served, serving
from tests.support.harness.forked import Forked
from tests.support.harness.pipeline_process import Pipeline, pipeline
from tests.support.reused_backends import reused_backends
from tests.support.waiting import eventually, until

DEVICES = "/apis/resource.k8s.io/v1"
SMALL = "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('80Gi')) >= 0"


def a_node(name: str, namespace: str, *, tainted: bool = False) -> Json:
    amounts = {"cpu": "8", "memory": "16Gi", "pods": "110", "nvidia.com/gpu": "4"}
    taints = [{"key": "gpu", "value": "only", "effect": "NoSchedule"}] if tainted else []
    metadata = {"name": name, "labels": {"test": namespace}}
    return {"metadata": metadata, "spec": {"taints": taints}, "status": {"allocatable": amounts, "capacity": amounts}}


def create_devices(client: httpx.Client, namespace: str) -> None:
    """Create a device class, a slice with two devices on the open node, and a claim that none of them meets."""
    create(client, f"{DEVICES}/deviceclasses", a_class(name=namespace))
    devices = [a_device(f"gpu-{index}", "40Gi", {"productName": "A100"}) for index in range(2)]
    create(client, f"{DEVICES}/resourceslices", a_slice(*devices, node=f"{namespace}-open"))
    spec = {"devices": {"requests": [a_request(SMALL, device_class=namespace)]}}
    create(client, f"{DEVICES}/namespaces/{namespace}/resourceclaims", {"metadata": {"name": "large"}, "spec": spec})


def create_refused_pods(client: httpx.Client, namespace: str) -> None:
    pods, here = f"/api/v1/namespaces/{namespace}/pods", {"nodeSelector": {"test": namespace}}
    create(client, pods, a_pod("extended", limits={"nvidia.com/gpu": "8"}, **here))
    claiming = a_pod("claiming", resourceClaims=[{"name": "gpu", "resourceClaimName": "large"}], **here)
    claiming["spec"]["containers"][0]["resources"] = {"claims": [{"name": "gpu"}]}
    create(client, pods, claiming)


def read_attempt(api: Served, pod: str) -> dict[str, Any]:
    """Read the pod's latest attempt when its verdicts have arrived."""

    def get() -> dict[str, Any]:
        namespace, name = pod.split("/")
        answer = api.get(f"/api/v1/namespaces/{namespace}/pods/{name}/schedulerlog", detail="full")
        return answer.json() if answer.status_code == httpx.codes.OK else {}

    return until(get, lambda answer: bool(answer.get("detail", {}).get("reconstruction")))


def has_observed(running: Pipeline, node: str) -> bool:
    events = (decode(record.value, record.headers) for record in running.read_topic(NODES.name))
    return any(isinstance(event, NodeObserved) and event.node == node for event in events)


@pytest.fixture
def plain_scheduler(control_plane: ControlPlane) -> None:
    control_plane.start_scheduler({"profiles": [{"schedulerName": SCHEDULER}]})


def test_pods_of_kube_scheduler_have_a_reason_for_each_node_and_device(
    control_plane: ControlPlane, plain_scheduler: None, namespace: str, tmp_path: Path
) -> None:
    nodes = [a_node(f"{namespace}-open", namespace), a_node(f"{namespace}-tainted", namespace, tainted=True)]
    with (
        reused_backends.taken() as servers,
        pipeline(tmp_path, servers) as running,
        created_nodes(control_plane, nodes),
        control_plane.open_client() as client,
        serving(servers.bootstrap_servers, servers.opensearch_url) as api,
        (tmp_path / "kube-events.log").open("ab") as log,
    ):
        running.start_all()
        kubeconfig, kafka = str(control_plane.kubeconfig), servers.bootstrap_servers
        command = ["ingest", "kube-events", "--kubeconfig", kubeconfig, "--kafka", kafka]
        watching = Forked(*command, "--event-reporters", SCHEDULER, stdout=log, stderr=log)
        try:
            create_devices(client, namespace)
            eventually(lambda: has_observed(running, f"{namespace}-open"), "nothing watches the cluster")
            create_refused_pods(client, namespace)
            extended = read_attempt(api, f"{namespace}/extended")
            claiming = read_attempt(api, f"{namespace}/claiming")
        finally:
            watching.terminate()
            watching.wait(timeout=120)
            client.delete(f"{DEVICES}/resourceslices/{namespace}-open-slice")
            client.delete(f"{DEVICES}/deviceclasses/{namespace}")
    for attempt in (extended, claiming):
        assert attempt["detail"]["reconstruction"]["agreement"] == "equal", attempt["detail"]
    reasons = [list_reasons(attempt) for attempt in (extended, claiming)]
    assert reasons[0][f"{namespace}-open"] == "Insufficient nvidia.com/gpu"
    assert reasons[0][f"{namespace}-tainted"] == "node(s) had untolerated taint(s)"
    assert reasons[1][f"{namespace}-open"] == "2/2 SelectorNotMatched"


def list_reasons(attempt: dict[str, Any]) -> dict[str, str]:
    return {
        node["name"]: container["reason"]
        for node in attempt["filter"]["nodes"]
        for container in node["containers"]
        if container["status"] == "failed"
    }
