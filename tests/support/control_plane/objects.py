"""Kubernetes objects of the tests: written through the API server and taken away again."""

import json
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import httpx

from dev.embedded.control_plane import ControlPlane
from schemas.json_types import Json
from tests.support.waiting import eventually

T = TypeVar("T")

MERGE_PATCH = {"Content-Type": "application/merge-patch+json"}
PARALLEL = 8

DEVICES_PER_NODE = 4
DEVICE_MEMORY_MIB = 40960
DEVICE_CORES = 100
DEVICE_SLOTS = 10

LOCK = "hami.io/mutex.lock"
ALLOCATED = "hami.io/vgpu-devices-allocated"
CHOSEN = "hami.io/vgpu-node"


@contextmanager
def created_namespace(cluster: ControlPlane, name: str, labels: Mapping[str, str] | None = None) -> Iterator[None]:
    """A namespace with its default service account; deleted, its pods at once, when the block ends."""
    with cluster.open_client() as client:
        create(client, "/api/v1/namespaces", {"metadata": {"name": name, "labels": dict(labels or {})}})
        account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        eventually(lambda: client.get(account).status_code == httpx.codes.OK, f"no service account in {name}")
        try:
            yield
        finally:
            # Grace would keep the pods of nodes that are gone by then.
            pods = f"/api/v1/namespaces/{name}/pods"
            client.request("DELETE", pods, json={"gracePeriodSeconds": 0}, timeout=60).raise_for_status()
            client.delete(f"/api/v1/namespaces/{name}")


@contextmanager
def created_nodes(cluster: ControlPlane, nodes: Iterable[Json]) -> Iterator[list[str]]:
    """The names of the nodes, which are deleted when the block ends."""
    bodies = list(nodes)
    names = [node["metadata"]["name"] for node in bodies]
    with cluster.open_client() as client, ThreadPoolExecutor(PARALLEL) as threads:
        try:
            for done in [threads.submit(create, client, "/api/v1/nodes", node) for node in bodies]:
                done.result()
            yield names
        finally:
            list(threads.map(lambda name: client.delete(f"/api/v1/nodes/{name}"), names))


def create(client: httpx.Client, path: str, body: Json) -> Json:
    """POST; the created object. The server's own words are in the error."""
    response = client.post(path, json=body)
    assert response.is_success, f"POST {path}: {response.status_code} {response.text[:800]}"
    created: Json = response.json()
    return created


def create_pods(client: httpx.Client, namespace: str, pods: Iterable[Json]) -> None:
    """POST all of them, several at a time."""
    with ThreadPoolExecutor(PARALLEL) as threads:
        path = f"/api/v1/namespaces/{namespace}/pods"
        for done in [threads.submit(create, client, path, pod) for pod in pods]:
            done.result()


def annotate(client: httpx.Client, path: str, annotations: dict[str, str | None]) -> None:
    """Write annotations of an object; None removes one."""
    change = {"metadata": {"annotations": annotations}}
    response = client.patch(path, content=json.dumps(change), headers=MERGE_PATCH)
    assert response.is_success, f"PATCH {path}: {response.status_code} {response.text[:800]}"


def list_pods(client: httpx.Client, namespace: str) -> list[Json]:
    response = client.get(f"/api/v1/namespaces/{namespace}/pods", timeout=60)
    response.raise_for_status()
    pods: list[Json] = response.json()["items"]
    return pods


def get_annotations(item: Json) -> dict[str, str]:
    annotations: dict[str, str] = item["metadata"].get("annotations", {})
    return annotations


def a_large_node(name: str) -> Json:
    """A node without devices, with all that a kubelet reports: kwok leaves out the disk, which our pods ask for."""
    amounts = {"cpu": "64", "memory": "512Gi", "ephemeral-storage": "1Ti", "pods": "1000"}
    return {"metadata": {"name": name}, "status": {"allocatable": amounts, "capacity": amounts}}


def a_gpu_node(name: str, devices: int = DEVICES_PER_NODE, **device: Any) -> Json:
    """A node as HAMi's device plugin registers it; ``device`` changes all of its devices."""
    common = {
        "count": DEVICE_SLOTS, "devmem": DEVICE_MEMORY_MIB, "devcore": DEVICE_CORES, "type": "NVIDIA-NVIDIA A100",
        "numa": 0, "mode": "hami-core", "health": True,
    }  # fmt: skip
    registered = [common | {"id": f"GPU-{name}-{index}", "index": index} | device for index in range(devices)]
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": str(devices * DEVICE_SLOTS)}
    return {
        "metadata": {"name": name, "annotations": {"hami.io/node-nvidia-register": json.dumps(registered)}},
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def a_gpu_pod(name: str, scheduler: str, *, gpus: int = 1, **amounts: int) -> Json:
    """``amounts``: gpumem (MiB), gpucores (percent), … of each container's device."""
    limits = {"nvidia.com/gpu": gpus} | {f"nvidia.com/{word}": amount for word, amount in amounts.items()}
    container = {"name": "main", "image": "none", "resources": {"limits": {key: str(n) for key, n in limits.items()}}}
    spec = {"schedulerName": scheduler, "containers": [container], "terminationGracePeriodSeconds": 0}
    return {"metadata": {"name": name}, "spec": spec}
