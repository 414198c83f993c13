"""The example pod of each vendor through the real API server, our webhook and the real kube-scheduler."""

from collections.abc import Iterator

import pytest

from dev.embedded.control_plane import ControlPlane
from runtime.http.certificate_authority import Authority
from schemas.json_types import Json
from tests.support.backends import Addresses
from tests.support.builders.vendor_examples import NAMES, VENDORS, read_node, read_pod
from tests.support.control_plane.device_plugins import DevicePlugins
from tests.support.control_plane.extender_process import Extender, build_scheduler_configuration
from tests.support.control_plane.objects import (
    CHOSEN,
    a_gpu_pod,
    create_pods,
    created_nodes,
    get_annotations,
    list_pods,
)
from tests.support.control_plane.webhook import webhook_of
from tests.support.waiting import eventually

NAME = "hami-vendors"
AMOUNTS = {"cpu": "64", "memory": "512Gi", "pods": "110"}


@pytest.fixture
def extender(
    control_plane: ControlPlane, backends: Addresses, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Extender]:
    flags = ("--kafka", backends.bootstrap_servers)
    authority = Authority.create("the tests' authority")
    with Extender(tmp_path_factory.mktemp("vendors"), control_plane.kubeconfig, authority, NAME, *flags) as running:
        control_plane.start_scheduler(build_scheduler_configuration(running.url, running.ca, NAME))
        yield running


def build_node(vendor: str, name: str) -> Json:
    node = read_node(vendor, name)
    status = node.setdefault("status", {})
    node["status"] = {key: {**status.get(key, {}), **AMOUNTS} for key in ("allocatable", "capacity")}
    return node


def build_pod(vendor: str) -> Json:
    """Build a pod as a user writes it: no scheduler."""
    pod = read_pod(vendor)
    pod["metadata"] = {"name": vendor}
    spec = pod["spec"]
    spec.pop("schedulerName", None)
    return pod | {"spec": spec | {"terminationGracePeriodSeconds": 0}}


def test_the_example_of_every_vendor_is_placed_on_its_vendors_node(
    control_plane: ControlPlane, extender: Extender, namespace: str
) -> None:
    probe = a_gpu_pod("probe", NAME, gpumem=1000)
    del probe["spec"]["schedulerName"]
    nodes = [build_node(vendor, f"{namespace}-{vendor}") for vendor in NAMES]
    with (
        created_nodes(control_plane, nodes),
        DevicePlugins(control_plane, namespace),
        webhook_of(control_plane, extender, namespace, probe),
        control_plane.open_client() as client,
    ):
        create_pods(client, namespace, map(build_pod, NAMES))

        def are_all_running() -> bool:
            return all(pod["status"]["phase"] == "Running" for pod in list_pods(client, namespace))

        eventually(
            are_all_running, lambda: str([(p["metadata"]["name"], p["status"]) for p in list_pods(client, namespace)])
        )
        pods = {pod["metadata"]["name"]: pod for pod in list_pods(client, namespace)}
    assert set(pods) == set(NAMES)
    keys = {vendor.pod.allocated for vendor in VENDORS}
    for vendor, pod in pods.items():
        annotations = get_annotations(pod)
        # A pod of one vendor of a mixed node may be on that one, too.
        assert pod["spec"]["nodeName"] == annotations[CHOSEN]
        assert pod["spec"]["nodeName"] in {f"{namespace}-{vendor}", f"{namespace}-mixed"}
        assert keys & set(annotations), annotations
