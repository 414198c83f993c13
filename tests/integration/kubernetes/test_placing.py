"""A pod's way through the real kube-scheduler, asking our extender over HTTPS: what the API server shows of it."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from dev.embedded.control_plane import ControlPlane
from runtime.http.certificate_authority import Authority
from schemas.json_types import Json
from tests.support.backends import Addresses
from tests.support.control_plane.bookkeeping import Placement, Share, list_placements, parse_shares, wait_for_agreement
from tests.support.control_plane.device_plugins import DevicePlugins
from tests.support.control_plane.extender_process import Extender, build_scheduler_configuration
from tests.support.control_plane.objects import (
    ALLOCATED,
    CHOSEN,
    DEVICE_MEMORY_MIB,
    LOCK,
    a_gpu_node,
    a_gpu_pod,
    annotate,
    create_pods,
    created_nodes,
    get_annotations,
    list_pods,
)
from tests.support.control_plane.webhook import webhook_of
from tests.support.harness.topics import provision_all
from tests.support.waiting import eventually

NAME = "hami-placing"


@pytest.fixture(scope="module")
def extender(
    control_plane: ControlPlane, backends: Addresses, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Extender]:
    """Our scheduler, and kube-scheduler asking it."""
    folder = tmp_path_factory.mktemp("extender")
    authority = Authority.create("the tests' authority")
    flags = ("--kafka", backends.bootstrap_servers)
    with Extender(folder, control_plane.kubeconfig, authority, NAME, *flags) as running:
        control_plane.start_scheduler(build_scheduler_configuration(running.url, running.ca, NAME))
        yield running


@pytest.fixture
async def kafka(backends: Addresses) -> str:
    await provision_all(backends.bootstrap_servers)
    return backends.bootstrap_servers


@pytest.fixture
def pod_of(control_plane: ControlPlane, namespace: str) -> Iterator[Callable[[str], Json]]:
    """Reads a pod of the namespace."""
    with control_plane.open_client() as client:
        yield lambda name: client.get(f"/api/v1/namespaces/{namespace}/pods/{name}").json()


def list_messages(cluster: ControlPlane, namespace: str, pod: str, reason: str) -> list[str]:
    """List the messages that `kubectl describe pod` would show."""
    chosen = f"involvedObject.name={pod},reason={reason}"
    with cluster.open_client() as client:
        events = client.get(f"/api/v1/namespaces/{namespace}/events", params={"fieldSelector": chosen}).json()
    return [event["message"] for event in events["items"]]


async def test_a_pod_is_placed_with_hamis_annotations_and_kafka_has_the_same(
    control_plane: ControlPlane,
    extender: Extender,
    kafka: str,
    namespace: str,
    pod_of: Callable[[str], Json],
) -> None:
    node = f"{namespace}-a"
    pod = a_gpu_pod("placed", NAME, gpus=2, gpumem=20480, gpucores=20)
    with created_nodes(control_plane, [a_gpu_node(node)]), DevicePlugins(control_plane, namespace):
        with control_plane.open_client() as client:
            create_pods(client, namespace, [pod])
            eventually(lambda: pod_of("placed")["status"]["phase"] == "Running", extender.log.read_text)
            placed_pod = pod_of("placed")
            eventually(lambda: LOCK not in get_annotations(client.get(f"/api/v1/nodes/{node}").json()), "still locked")
        annotations = get_annotations(placed_pod)
        assert placed_pod["spec"]["nodeName"] == annotations[CHOSEN] == placed_pod["metadata"]["labels"][CHOSEN] == node
        assert annotations["hami.io/vgpu-time"].isdecimal()
        assert annotations["hami.io/bind-time"].isdecimal()
        assert annotations["hami.io/bind-phase"] in {"allocating", "success"}
        shares = parse_shares(annotations[ALLOCATED])
        assert {(share.memory_mib, share.cores_percent) for share in shares} == {(20480, 20)}
        assert len({share.device for share in shares}) == 2
        assert annotations[ALLOCATED].endswith(":;")
        assert annotations["hami.io/vgpu-devices-to-allocate"] == annotations[ALLOCATED]
        await wait_for_agreement(kafka, namespace, [placed_pod])


async def test_a_refused_pod_reads_our_reasons_in_its_own_event(
    control_plane: ControlPlane, extender: Extender, kafka: str, namespace: str, pod_of: Callable[[str], Json]
) -> None:
    small, few = f"{namespace}-small", f"{namespace}-few"
    nodes = [a_gpu_node(small, devices=4, devmem=8192), a_gpu_node(few, devices=1)]
    with created_nodes(control_plane, nodes), control_plane.open_client() as client:
        # kube-scheduler may ask before the nodes' watch has brought both, and then has no reason to try again.
        eventually(lambda: extender.sum_metric("schedulerlog_scheduler_registered_nodes") == len(nodes), "other nodes")
        create_pods(client, namespace, [a_gpu_pod("refused", NAME, gpus=2, gpumem=30000)])
        (message, *_) = eventually(
            lambda: list_messages(control_plane, namespace, "refused", "FailedScheduling"), extender.log.read_text
        )
        # kube-scheduler counts equal reasons and puts them in the order of their texts.
        assert message.startswith(
            "0/2 nodes are available: 1 4/4 CardInsufficientMemory, 1 NodeInsufficientDevice. "
        ), message
        # kube-scheduler writes the event before the condition.
        conditions = eventually(lambda: pod_of("refused")["status"].get("conditions"), extender.log.read_text)
        assert [(condition["type"], condition["status"], condition["reason"]) for condition in conditions] == [
            ("PodScheduled", "False", "Unschedulable")
        ]
        records = await wait_for_agreement(kafka, namespace, list_pods(client, namespace))
        assert set(records["refused"].chosen.values()) == {None}


async def test_a_pod_is_not_bound_to_a_node_that_another_has_locked_until_the_lock_is_gone(
    control_plane: ControlPlane, extender: Extender, kafka: str, namespace: str, pod_of: Callable[[str], Json]
) -> None:
    node = f"{namespace}-locked"
    # The owner must be there, or its lock would be taken over.
    owner = a_gpu_pod("owner", "nobody", gpumem=1000)
    with created_nodes(control_plane, [a_gpu_node(node, devices=1)]), control_plane.open_client() as client:
        create_pods(client, namespace, [owner])
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        annotate(client, f"/api/v1/nodes/{node}", {LOCK: f"{now},{namespace},owner"})
        # All of the device: a reservation that the failed bind left behind would keep it from being placed later.
        create_pods(client, namespace, [a_gpu_pod("waits", NAME, gpumem=DEVICE_MEMORY_MIB, gpucores=100)])
        (message, *_) = eventually(
            lambda: list_messages(control_plane, namespace, "waits", "FailedScheduling"), extender.log.read_text
        )
        assert f"node {node} has been locked within 5m0s: node lock contention" in message
        assert "nodeName" not in pod_of("waits")["spec"]
        assert get_annotations(client.get(f"/api/v1/nodes/{node}").json())[LOCK].endswith("owner")

        annotate(client, f"/api/v1/nodes/{node}", {LOCK: None})
        eventually(lambda: pod_of("waits")["spec"].get("nodeName") == node, extender.log.read_text)
        records = await wait_for_agreement(kafka, namespace, list_pods(client, namespace))
        assert f"node {node} has been locked within 5m0s: node lock contention" in records["waits"].bind_errors


async def test_nodes_sent_whole_lead_to_the_same_placement(
    control_plane: ControlPlane, extender: Extender, kafka: str, namespace: str, pod_of: Callable[[str], Json]
) -> None:
    node, other = f"{namespace}-whole", f"{namespace}-other"
    configuration = build_scheduler_configuration(extender.url, extender.ca, NAME, node_cache_capable=False)
    control_plane.start_scheduler(configuration)
    try:
        with (
            created_nodes(control_plane, [a_gpu_node(node), a_gpu_node(other, devmem=1000)]),
            DevicePlugins(control_plane, namespace),
            control_plane.open_client() as client,
        ):
            create_pods(client, namespace, [a_gpu_pod("whole", NAME, gpumem=2000, gpucores=10)])
            eventually(lambda: pod_of("whole")["status"]["phase"] == "Running", extender.log.read_text)
            (share,) = list_placements([pod_of("whole")])["whole"].shares
            assert share == Share(share.device, 2000, 10)
            assert share.device.startswith(f"GPU-{node}-")
            await wait_for_agreement(kafka, namespace, list_pods(client, namespace))
    finally:
        control_plane.start_scheduler(build_scheduler_configuration(extender.url, extender.ca, NAME))


@pytest.fixture
def webhook(control_plane: ControlPlane, extender: Extender, namespace: str) -> Iterator[None]:
    with webhook_of(control_plane, extender, namespace, _build_unaddressed("probe")):
        yield


def _build_unaddressed(name: str, **spec: Any) -> Json:
    """Build a pod that asks for memory of a device and for nothing else: neither how many, nor which scheduler."""
    pod = a_gpu_pod(name, NAME, gpumem=3000)
    del pod["spec"]["schedulerName"]
    del pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"]
    pod["spec"] |= spec
    return pod


async def test_the_webhook_makes_a_pod_that_asks_for_memory_ours_and_it_is_placed(
    control_plane: ControlPlane,
    extender: Extender,
    webhook: None,
    kafka: str,
    namespace: str,
    pod_of: Callable[[str], Json],
) -> None:
    node = f"{namespace}-hooked"
    with (
        created_nodes(control_plane, [a_gpu_node(node, devices=1)]),
        DevicePlugins(control_plane, namespace),
        control_plane.open_client() as client,
    ):
        create_pods(client, namespace, [_build_unaddressed("hooked")])
        pod = pod_of("hooked")
        assert pod["spec"]["schedulerName"] == NAME
        assert pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"
        eventually(lambda: pod_of("hooked")["status"]["phase"] == "Running", extender.log.read_text)
        pods = list_pods(client, namespace)
        assert list_placements(pods)["hooked"] == Placement(node, (Share(f"GPU-{node}-0", 3000, 0),))
        await wait_for_agreement(kafka, namespace, pods)


def test_the_webhook_lets_pods_of_others_pass(
    control_plane: ControlPlane, webhook: None, namespace: str, pod_of: Callable[[str], Json]
) -> None:
    with control_plane.open_client() as client:
        create_pods(client, namespace, [_build_unaddressed("theirs", schedulerName="another")])
        plain = {"containers": [{"name": "main", "image": "none"}]}
        create_pods(client, namespace, [{"metadata": {"name": "plain"}, "spec": plain}])
    assert pod_of("theirs")["spec"]["schedulerName"] == "another"
    assert pod_of("plain")["spec"]["schedulerName"] == "default-scheduler"


def test_the_webhook_denies_a_pod_that_has_a_node_already(
    control_plane: ControlPlane, webhook: None, namespace: str
) -> None:
    with control_plane.open_client() as client:
        refused = client.post(
            f"/api/v1/namespaces/{namespace}/pods", json=_build_unaddressed("assigned", nodeName="any")
        )
    assert refused.status_code == 403
    assert "pod has node assigned" in refused.json()["message"]
