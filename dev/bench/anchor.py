"""kube-scheduler's own filters next to the judge: the same pods, refused on the same nodes, in the same run.

The cluster grows between the rows. Nodes, pods and slices are only objects of the API server. The larger cluster has
fewer pods on its further nodes, each with all devices of its node, because the API server takes minutes for 40,000.
kube-scheduler runs on the embedded control plane with one goroutine for the nodes (``parallelism: 1``), and counts the
seconds of PreFilter and Filter itself. Our figure is the whole judgement: filters, preemption and message.
"""

import json
import re
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import httpx

from dev.bench.claims import KINDS, iterate_devices, make_claim, select_memory
from dev.bench.judging import DEVICES, iterate_cluster, list_pods
from dev.bench.report import Figure, Result
from dev.embedded.control_plane import ControlPlane, control_plane
from dev.embedded.control_plane.build import KUBERNETES_VERSION
from engine.claims.inventory import read_inventory
from engine.filters.judgement import Judgement
from engine.judging import judge_pod
from engine.snapshot.reading import read_snapshot
from schemas.json_types import Json

NODES: Final = 1_000
MORE_NODES: Final = 5_000
PODS: Final = 15
"""Pods of each kind that are refused."""
CREATING: Final = 8
SCHEDULER: Final = "anchor"
_POINTS: Final = ("PreFilter", "Filter")
_SAMPLE: Final = re.compile(
    r'^scheduler_framework_extension_point_duration_seconds_(?P<part>sum|count)\{extension_point="(?P<point>\w+)",'
    r'profile="anchor",status="(?P<status>\w+)"\} (?P<value>\S+)$',
    re.MULTILINE,
)
_CPU: Final = re.compile(r"^process_cpu_seconds_total (\S+)$", re.MULTILINE)
_COLLECTIONS: Final = {
    "Node": "/api/v1/nodes",
    "CSINode": "/apis/storage.k8s.io/v1/csinodes",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "DeviceClass": "/apis/resource.k8s.io/v1/deviceclasses",
    "ResourceSlice": "/apis/resource.k8s.io/v1/resourceslices",
}
_NAMESPACED: Final = {
    "Pod": ("/api/v1", "pods"),
    "PersistentVolumeClaim": ("/api/v1", "persistentvolumeclaims"),
    "ResourceClaim": ("/apis/resource.k8s.io/v1", "resourceclaims"),
}
_NAMESPACE: Final = "team-0"
_CLAIM: Final = "too-large"


def measure_anchor() -> Result:
    """Measure pods that every node refuses, without and with constraints; both sides have to count the same."""
    with control_plane() as cluster, cluster.open_client() as client:
        cluster.start_scheduler({"parallelism": 1, "profiles": [{"schedulerName": SCHEDULER}]})
        figures = list(_iterate_figures(cluster, client))
    return Result(
        "anchor",
        f"PreFilter and Filter of kube-scheduler {KUBERNETES_VERSION} on one goroutine, and the judge; ratio: to Go",
        f"{NODES:,} nodes of {DEVICES} pods, then {MORE_NODES:,} with one pod on each further node, then {DEVICES} "
        f"devices of {KINDS} kinds on each; mean of {PODS} refusals by its own metric, median of {PODS} judgements",
        tuple(figures),
    )


def _iterate_figures(cluster: ControlPlane, client: httpx.Client) -> Iterator[Figure]:
    pods = list_pods()
    size = f"{NODES:,} nodes"
    _create_objects(client, list(iterate_cluster(NODES)))
    yield from _measure(cluster, client, f"{size}, request only", pods["request only"])
    yield from _measure(cluster, client, f"{size}, every constraint", pods["every constraint"])
    size = f"{MORE_NODES:,} nodes"
    _create_objects(client, list(iterate_cluster(MORE_NODES, NODES, pods=1)))
    yield from _measure(cluster, client, f"{size}, request only", pods["request only"])
    yield from _measure(cluster, client, f"{size}, every constraint", pods["every constraint"])
    claim = make_claim(_CLAIM, select_memory("999Gi"), _NAMESPACE)
    _create_objects(client, [*iterate_devices(MORE_NODES), claim])
    yield from _measure(cluster, client, f"{size}, one claim", _make_claiming_pod())


def _make_claiming_pod() -> Json:
    container = {"name": "main", "resources": {"claims": [{"name": "gpu"}]}}
    claims = [{"name": "gpu", "resourceClaimName": _CLAIM}]
    spec = {
        "containers": [container],
        "resourceClaims": claims,
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
    }
    metadata = {"name": "ask", "namespace": _NAMESPACE}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {}}


def _create_objects(client: httpx.Client, objects: list[Json]) -> None:
    """Create objects on the API server, each kind after those that it needs."""
    namespaces = {item["metadata"]["namespace"] for item in objects if "namespace" in item["metadata"]}
    for namespace in sorted(namespaces):
        if client.get(f"/api/v1/namespaces/{namespace}").status_code == httpx.codes.NOT_FOUND:
            _create(client, "/api/v1/namespaces", {"metadata": {"name": namespace}})
    with ThreadPoolExecutor(CREATING) as pool:
        for kind in (*_COLLECTIONS, *_NAMESPACED):
            of_kind = [item for item in objects if item["kind"] == kind]
            list(pool.map(lambda item: _create(client, _locate_collection(item), _complete(item)), of_kind))


def _complete(item: Json) -> Json:
    """Complete an object with fields that the API server asks for and no filter reads."""
    spec = item.get("spec", {})
    if item["kind"] == "Pod":
        containers = [{**container, "image": "none"} | _limit(container) for container in spec["containers"]]
        return {**item, "spec": {**spec, "containers": containers}}
    if item["kind"] == "CSINode":
        return {**item, "spec": {"drivers": [{**driver, "nodeID": "none"} for driver in spec["drivers"]]}}
    return item


def _limit(container: Json) -> Json:
    """Limit extended resources to what is requested, as the API server demands."""
    resources = container.get("resources", {})
    amounts = resources.get("requests", {})
    limits = {resource: amount for resource, amount in amounts.items() if "/" in resource}
    return {"resources": {**resources, "requests": amounts, "limits": limits}}


def _locate_collection(item: Json) -> str:
    if path := _COLLECTIONS.get(item["kind"]):
        return path
    group, plural = _NAMESPACED[item["kind"]]
    return f"{group}/namespaces/{item['metadata']['namespace']}/{plural}"


def _create(client: httpx.Client, path: str, body: Json) -> Json:
    metadata = {key: value for key, value in body["metadata"].items() if key != "uid"}
    for _ in range(100):
        answer = client.post(path, json={**body, "metadata": metadata}, timeout=60)
        # A new namespace has its service account a moment later.
        if answer.status_code != httpx.codes.FORBIDDEN:
            break
        time.sleep(0.1)
    if not answer.is_success:
        raise RuntimeError(f"POST {path}: {answer.status_code} {answer.text[:400]}")
    created: Json = answer.json()
    return created


def _measure(cluster: ControlPlane, client: httpx.Client, name: str, pod: Json) -> Iterator[Figure]:
    template = _complete(pod)
    template["spec"]["schedulerName"] = SCHEDULER
    snapshot = read_snapshot(_read_cluster(client))
    inventory = read_inventory(snapshot)
    before = _read_seconds(cluster)
    collection = f"/api/v1/namespaces/{_NAMESPACE}/pods"
    pods = [_create(client, collection, _name_pod(template, f"{index}")) for index in range(PODS)]
    message = _await_message(client, pods[-1]["metadata"]["name"])
    grown = (after - former for after, former in zip(_read_seconds(cluster), before, strict=True))
    seconds, cpu_seconds, attempts = grown
    theirs = 1_000 * seconds / attempts
    times = []
    for pod in pods:
        # As after a change of any slice: kube-scheduler also gathers the pools in each attempt.
        inventory.pools.clear()
        begun = time.process_time()
        judgement = judge_pod(snapshot, pod, inventory=inventory)
        times.append(time.process_time() - begun)
    assert isinstance(judgement, Judgement)
    assert judgement.message == message, f"{judgement.message} here, {message} in Go"
    ours = 1_000 * statistics.median(times)
    yield Figure(f"{name}, in Go", round(theirs, 1), "ms", 1, f"{attempts:.0f} attempts")
    attempt = 1_000 * cpu_seconds / attempts
    note = "its process, with preemption, queue and events"
    yield Figure(f"{name}, the attempt in Go", round(attempt, 1), "CPU ms", round(attempt / theirs, 2), note)
    yield Figure(f"{name}, the judge", round(ours, 1), "CPU ms", round(ours / theirs, 2))
    for pod in pods:
        client.request("DELETE", f"{collection}/{pod['metadata']['name']}", json={"gracePeriodSeconds": 0})


def _name_pod(pod: Json, suffix: str) -> Json:
    return {**pod, "metadata": {**pod["metadata"], "name": f"ask-{suffix}"}}


def _read_cluster(client: httpx.Client) -> list[Json]:
    namespaced = (f"{group}/{plural}" for group, plural in _NAMESPACED.values())
    paths = (*_COLLECTIONS.values(), *namespaced, "/api/v1/namespaces")
    return [json.loads(client.get(path, timeout=60).raise_for_status().content) for path in paths]


def _await_message(client: httpx.Client, name: str) -> str:
    def read() -> str:
        pod = client.get(f"/api/v1/namespaces/{_NAMESPACE}/pods/{name}").json()
        return "".join(condition.get("message", "") for condition in pod["status"].get("conditions", ()))

    return _await(read)


def _await(read: Callable[[], str]) -> str:
    deadline = time.monotonic() + 300
    while not (text := read()):
        if time.monotonic() > deadline:
            raise RuntimeError("kube-scheduler has refused no pod within 300 seconds")
        time.sleep(0.1)
    return text


def _read_seconds(cluster: ControlPlane) -> tuple[float, float, float]:
    """Read the seconds of both extension points, the CPU seconds of the process, and the number of attempts."""
    # Its certificate is its own, and it listens on the loopback interface.
    url = f"https://127.0.0.1:{cluster.scheduler.port}/metrics"
    text = httpx.get(url, verify=False, trust_env=False, timeout=30).raise_for_status().text  # noqa: S501
    sums: dict[tuple[str, str], float] = {}
    for match in _SAMPLE.finditer(text):
        key = match["point"], match["part"]
        sums[key] = sums.get(key, 0.0) + float(match["value"])
    used = _CPU.search(text)
    in_points = sum(sums.get((point, "sum"), 0.0) for point in _POINTS)
    return in_points, float(used[1]) if used else 0.0, sums.get(("Filter", "count"), 0.0)
