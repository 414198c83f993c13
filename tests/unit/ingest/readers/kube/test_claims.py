"""Devices that pods hold through resource claims: named as the claims' status has them, whichever is seen first."""

from itertools import permutations
from typing import Any

import pytest

from ingest.readers.kube import KubeEvents
from ingest.readers.kube.claims import HELD_SECONDS, ClaimedDevice, list_devices
from schemas.events import DeviceAllocation, PodObserved
from schemas.json_types import Json
from tests.support.builders.api_server_objects import a_pod

GPU = {"request": "gpu", "driver": "gpu.nvidia.com", "pool": "node1", "device": "gpu-0"}
GPU_0 = "gpu.nvidia.com/node1/gpu-0"


def a_claim(*results: Json, name: str = "own") -> Json:
    allocation = {"devices": {"results": list(results)}}
    metadata = {"namespace": "ml", "name": name}
    return {"metadata": metadata, "status": {"allocation": allocation} if results else {}}


def make_claiming_pod(*names: str, containers: list[Json] | None = None, **fields: Any) -> Json:
    pod = a_pod(node="node1", phase="Pending", **fields)
    pod["spec"]["resourceClaims"] = [{"name": name, "resourceClaimName": name} for name in names]
    pod["spec"]["containers"] = containers or [{"name": "main", "resources": {"claims": [{"name": n} for n in names]}}]
    return pod


def a_reader() -> KubeEvents:
    reader = KubeEvents()
    reader.claims.is_read = True
    return reader


def list_allocations(events: list[Any]) -> list[list[DeviceAllocation]]:
    return [event.allocations for event in events if isinstance(event, PodObserved)]


@pytest.mark.parametrize(
    ("result", "devices"),
    [
        (GPU, [ClaimedDevice("gpu", GPU_0, None)]),
        (GPU | {"consumedCapacity": {"memory": "20Gi"}}, [ClaimedDevice("gpu", GPU_0, 20480)]),
        (GPU | {"consumedCapacity": {"gpu.nvidia.com/memory": "1Gi"}}, [ClaimedDevice("gpu", GPU_0, 1024)]),
        (GPU | {"consumedCapacity": {"cores": "20"}}, [ClaimedDevice("gpu", GPU_0, None)]),
        (GPU | {"adminAccess": True}, []),
        ({"request": "gpu", "driver": 1, "device": ["x"]}, []),
    ],
)
def test_an_allocated_claim_names_its_devices(result: Json, devices: list[ClaimedDevice]) -> None:
    assert list_devices(a_claim(result)) == devices


def test_a_claim_that_is_not_allocated_names_none() -> None:
    assert list_devices(a_claim()) is None
    assert list_devices({"status": {"allocation": "yes"}}) is None


def test_a_pod_is_observed_with_the_devices_of_all_its_claims_in_whatever_order_they_are_seen() -> None:
    first, second = a_claim(GPU, name="one"), a_claim(GPU | {"device": "gpu-1"}, name="two")
    for order in permutations([("pod", make_claiming_pod("one", "two")), ("claim", first), ("claim", second)]):
        reader = a_reader()
        events = [event for kind, resource in order for event in reader.read_object(kind, resource, 0.0)]  # type: ignore[arg-type]
        (allocations,) = list_allocations(events)
        assert [allocation.uuid for allocation in allocations] == [GPU_0, "gpu.nvidia.com/node1/gpu-1"]
        assert {allocation.container for allocation in allocations} == {"main"}
        assert list_allocations(reader.read_object("claim", first, 1.0)) == [], "nothing is new"


def test_a_pod_does_not_wait_for_a_claim_without_a_limit() -> None:
    reader = a_reader()
    assert reader.read_object("pod", make_claiming_pod("own"), 0.0) == []
    assert reader.settle(HELD_SECONDS - 1) == []
    assert list_allocations(reader.settle(HELD_SECONDS)) == [[]]


def test_where_claims_are_not_read_nothing_waits() -> None:
    assert list_allocations(KubeEvents().read_object("pod", make_claiming_pod("own"), 0.0)) == [[]]


def test_a_pod_without_a_node_and_one_that_has_ended_wait_for_no_claim() -> None:
    pod = make_claiming_pod("own")
    pod["status"]["phase"] = "Succeeded"
    assert len(list_allocations(a_reader().read_object("pod", pod, 0.0))) == 1
    waiting = make_claiming_pod("own")
    waiting["spec"].pop("nodeName")
    assert len(list_allocations(a_reader().read_object("pod", waiting, 0.0))) == 1


def test_a_claim_from_a_template_has_its_name_in_the_pods_status() -> None:
    pod = make_claiming_pod("gpu")
    pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "t"}]
    pod["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": "own"}]
    reader = a_reader()
    reader.read_object("claim", a_claim(GPU), 0.0)
    assert [allocation.uuid for allocation in list_allocations(reader.read_object("pod", pod, 0.0))[0]] == [GPU_0]
    # One that turned out not to be needed.
    pod["status"]["resourceClaimStatuses"] = [{"name": "gpu"}]
    assert list_allocations(a_reader().read_object("pod", pod, 0.0)) == [[]]


def test_a_device_belongs_to_the_container_that_names_its_request() -> None:
    containers = [
        {"name": "main", "resources": {"claims": [{"name": "own", "request": "gpu"}]}},
        {"name": "side", "resources": {"claims": [{"name": "own", "request": "nic"}]}},
    ]
    reader = a_reader()
    reader.read_object("claim", a_claim(GPU | {"request": "gpu/large"}, GPU | {"request": "nic", "device": "n0"}), 0.0)
    (allocations,) = list_allocations(reader.read_object("pod", make_claiming_pod("own", containers=containers), 0.0))
    assert [allocation.container for allocation in allocations] == ["main", "side"]
    both = [{"name": name, "resources": {"claims": [{"name": "own"}]}} for name in ("main", "side")]
    reader = a_reader()
    reader.read_object("claim", a_claim(GPU), 0.0)
    (allocations,) = list_allocations(reader.read_object("pod", make_claiming_pod("own", containers=both), 0.0))
    assert [allocation.container for allocation in allocations] == [""], "one device, whichever of them uses it"
