"""Our scheduler beside another one of HAMi's protocol, on one real API server with two real kube-schedulers: on no node
do both give devices away."""

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from dev.embedded.control_plane import ControlPlane
from dev.embedded.control_plane.programs import KubeScheduler
from dev.embedded.ports import KUBERNETES_PORTS, find_free_port
from dev.embedded.process import ParentWatch
from runtime.http.certificate_authority import Authority
from schemas.json_types import Json
from tests.support.backends import Addresses
from tests.support.control_plane.bookkeeping import wait_for_agreement
from tests.support.control_plane.device_plugins import DevicePlugins
from tests.support.control_plane.extender_process import Extender, build_scheduler_configuration
from tests.support.control_plane.objects import (
    CHOSEN,
    MERGE_PATCH,
    a_gpu_node,
    a_gpu_pod,
    create_pods,
    created_nodes,
    get_annotations,
    list_pods,
)
from tests.support.harness.topics import provision_all
from tests.support.waiting import eventually

OURS, THEIRS = "ours-beside-hami", "hami-beside-ours"
LABEL = {"schedulerlog.io/scheduler": "schedulerlog"}
"""Label of the nodes of ours, as in the overlay `scheduler`."""


@pytest.fixture(scope="module")
def extenders(
    control_plane: ControlPlane, backends: Addresses, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Extender, Extender]]:
    """Ours, and one that decides on every node as HAMi does."""
    folder, authority = tmp_path_factory.mktemp("extenders"), Authority.create("the tests' authority")
    common = (control_plane.kubeconfig, authority)
    kafka = ("--kafka", backends.bootstrap_servers)
    selector = ",".join(f"{name}={value}" for name, value in LABEL.items())
    leads = "--leader-elect-resource-name"
    ours = Extender(folder / "ours", *common, OURS, *kafka, "--node-label-selector", selector, leads, OURS)
    theirs = Extender(folder / "theirs", *common, THEIRS, "--no-publish", "--share-nodes-with", OURS, leads, THEIRS)
    with ours, theirs, closing(ParentWatch()) as watch:
        control_plane.start_scheduler(build_scheduler_configuration(ours.url, ours.ca, OURS))
        of_theirs = KubeScheduler(
            "kube-scheduler-of-theirs", folder / "kube-scheduler", find_free_port(KUBERNETES_PORTS),
            control_plane.binary, watch, credentials=control_plane.credentials,
            configuration=build_scheduler_configuration(theirs.url, theirs.ca, THEIRS),
        )  # fmt: skip
        of_theirs.start()
        yield ours, theirs
        of_theirs.kill()


def label(node: Json) -> Json:
    return {**node, "metadata": {**node["metadata"], "labels": LABEL}}


@pytest.fixture
async def kafka(backends: Addresses) -> str:
    await provision_all(backends.bootstrap_servers)
    return backends.bootstrap_servers


async def test_a_node_without_the_label_and_a_node_with_pods_of_hami_are_never_chosen(
    control_plane: ControlPlane, extenders: tuple[Extender, Extender], kafka: str, namespace: str
) -> None:
    ours, theirs = extenders
    unlabelled, free, mixed = (f"{namespace}-{word}" for word in ("unlabelled", "free", "mixed"))
    with DevicePlugins(control_plane, namespace), control_plane.open_client() as client:

        def read(name: str) -> Json:
            pod: Json = client.get(f"/api/v1/namespaces/{namespace}/pods/{name}").json()
            return pod

        def is_running(name: str) -> Callable[[], bool]:
            return lambda: read(name)["status"]["phase"] == "Running"

        def list_refusals() -> list[str]:
            query = {"fieldSelector": "involvedObject.name=whole,reason=FailedScheduling"}
            events = client.get(f"/api/v1/namespaces/{namespace}/events", params=query).json()
            return [event["message"] for event in events["items"]]

        with created_nodes(control_plane, [label(a_gpu_node(mixed))]):
            create_pods(client, namespace, [a_gpu_pod("theirs", THEIRS, gpumem=1000)])
            eventually(is_running("theirs"), theirs.log.read_text)
            assert get_annotations(read("theirs"))[CHOSEN] == mixed
            with created_nodes(control_plane, [a_gpu_node(unlabelled), label(a_gpu_node(free))]):
                eventually(lambda: ours.sum_metric("schedulerlog_scheduler_registered_nodes") == 1, ours.log.read_text)
                assert ours.sum_metric("schedulerlog_scheduler_withheld_nodes") == 1
                names = [f"ours-{number}" for number in range(4)]
                create_pods(client, namespace, [a_gpu_pod(name, OURS, gpumem=1000) for name in names])
                for name in names:
                    eventually(is_running(name), ours.log.read_text)
                    assert read(name)["spec"]["nodeName"] == free
                # All devices of a node: of the three nodes the two empty enough ones are not ours.
                create_pods(client, namespace, [a_gpu_pod("whole", OURS, gpus=4, gpumem=40000)])
                message = eventually(list_refusals, ours.log.read_text)[0]
                assert message.startswith("0/3 nodes are available: "), message
                assert "1 NodeOfAnotherScheduler" in message, message
                assert "1 node unregistered" in message, message
                pods = [pod for pod in list_pods(client, namespace) if pod["spec"]["schedulerName"] == OURS]
                await wait_for_agreement(kafka, namespace, pods)
                # With the last pod of the other scheduler gone, the node is ours.
                client.delete(f"/api/v1/namespaces/{namespace}/pods/theirs").raise_for_status()
                eventually(lambda: ours.sum_metric("schedulerlog_scheduler_withheld_nodes") == 0, ours.log.read_text)
                # kube-scheduler may have asked before our watch brought the deletion: a changed node lets it ask again.
                again = {"metadata": {"labels": {"example.com/changed": "yes"}}}
                client.patch(f"/api/v1/nodes/{mixed}", json=again, headers=MERGE_PATCH).raise_for_status()
                eventually(is_running("whole"), lambda: str(list_refusals()))
                assert read("whole")["spec"]["nodeName"] == mixed
