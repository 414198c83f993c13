"""CPU of a refusal that ``ingest kube-events`` reads: judged, built into records and encoded, by kind of pod."""

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from dev.bench.report import Figure, Result
from engine.snapshot import kinds
from ingest.readers.kube import KubeEvents
from ingest.readers.kube.judged_objects import JudgedObjects
from ingest.readers.kube.refusal_judge import RefusalJudge
from schemas.codec.records import encode
from schemas.json_types import Json

NODES: Final = 1_000
DEVICES: Final = 8
"""Devices of a node; as many pods hold half of them."""
REFUSALS: Final = 40
_GPU: Final = "nvidia.com/gpu"
_DRIVER: Final = "gpu.example.com"
_VERSION: Final = "resource.k8s.io/v1"
_READ_AT: Final = datetime(2026, 11, 21, 3, 13, 33, tzinfo=UTC)
_STAMP: Final = "2026-11-21T03:13:32.250001Z"
_COUNTED: Final = f"0/{NODES} nodes are available: {NODES // 2} Insufficient {_GPU}, {NODES // 2} node(s) had taint."
_CLAIMED: Final = f"0/{NODES} nodes are available: {NODES} cannot allocate all claims."


def measure_refusals() -> Result:
    """Measure refusals without a judge, of different pods, of equal pods, and of pods with a claim."""
    return Result(
        "refusals",
        "A refusal read from an event, judged on all nodes and encoded for Kafka; ratio: to the same without a judge",
        f"{NODES:,} nodes of {DEVICES} devices and {DEVICES} pods; mean of {REFUSALS} refused pods",
        tuple(_iterate_figures()),
    )


def _iterate_figures() -> Iterator[Figure]:
    plain, claiming = list(_iterate_cluster()), [*_iterate_cluster(), *_iterate_devices()]
    different, equal = ([_make_pod(number, 16 + number * step) for number in range(REFUSALS)] for step in (1, 0))
    bare = _measure([], different, _COUNTED)
    yield Figure("counts only, no judge", bare, "CPU ms", 1)
    cases = {
        "judged, different pods": (plain, different, _COUNTED),
        "judged, equal pods": (plain, equal, _COUNTED),
        "judged, equal pods with a claim": (claiming, list(map(_claim_device, equal)), _CLAIMED),
    }
    for name, (cluster, pods, message) in cases.items():
        milliseconds = _measure(cluster, pods, message)
        yield Figure(name, milliseconds, "CPU ms", round(milliseconds / bare, 1))


def _measure(cluster: Sequence[Json], pods: Sequence[Json], message: str) -> float:
    """Measure the mean CPU time of a refusal, in milliseconds; without objects of a cluster, nothing is judged."""
    objects = JudgedObjects()
    objects.find_problem = str
    for value in cluster:
        version = value.get("apiVersion", "v1")
        objects.put(kinds.identify(version, value["kind"]), version, value)
    objects.take_moment()
    reader = KubeEvents(judge=RefusalJudge(objects, lambda: _READ_AT) if cluster else None)
    for pod in pods:
        reader.read_object("pod", pod, 0.0)
        objects.put(kinds.POD, "v1", pod)
    begun = time.process_time()
    records = [encode(event) for pod in pods for event in reader.read_object("event", _make_event(pod, message), 0.0)]
    records += [encode(event) for event in reader.settle(60.0)]
    spent = time.process_time() - begun
    if len(records) < len(pods) * (2 if cluster else 1):
        raise RuntimeError("refusals were not judged: the benchmark needs a verdict on every node")
    return round(spent * 1_000 / len(pods), 2)


def _iterate_cluster() -> Iterator[Json]:
    for number in range(NODES):
        name = f"node-{number:05d}"
        taints = [{"key": "gpu", "value": "only", "effect": "NoSchedule"}] if number % 2 else []
        amounts = {"cpu": "64", "memory": "512Gi", "pods": "110", _GPU: str(DEVICES)}
        status = {"allocatable": amounts, "capacity": amounts}
        yield _make_object("v1", "Node", name) | {"spec": {"taints": taints}, "status": status}
        for device in range(DEVICES):
            pod = _make_object("v1", "Pod", f"{name}-{device}", "team")
            resources = {"requests": {"cpu": "4", _GPU: str(device % 2)}}
            yield pod | {"spec": {"nodeName": name, "containers": [{"name": "main", "resources": resources}]}}


def _iterate_devices() -> Iterator[Json]:
    """Iterate over a slice of devices for each node, half of them held on every fourth node, and a claim."""
    yield _make_object(_VERSION, "DeviceClass", "gpu") | {"spec": {"selectors": []}}
    for number in range(NODES):
        node = f"node-{number:05d}"
        devices = [_make_device(number, index) for index in range(DEVICES)]
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": _DRIVER, "nodeName": node, "pool": pool, "devices": devices}
        yield _make_object(_VERSION, "ResourceSlice", node) | {"spec": spec}
        if number % 4 == 0:
            results = [{"request": "gpu", "driver": _DRIVER, "pool": node, "device": f"gpu-{i}"} for i in range(4)]
            allocation = {"allocation": {"devices": {"results": results}}}
            yield _make_claim(f"held-{number}", "true") | {"status": allocation}
    yield _make_claim("large", f"device.capacity['{_DRIVER}'].memory.compareTo(quantity('999Gi')) >= 0")


def _make_device(node: int, index: int) -> Json:
    attributes = {"uuid": {"string": f"GPU-{node:05d}-{index}"}, "productName": {"string": f"model {node % 5}"}}
    return {"name": f"gpu-{index}", "attributes": attributes, "capacity": {"memory": {"value": f"{40 * (node % 4)}Gi"}}}


def _make_claim(name: str, expression: str) -> Json:
    exactly = {"deviceClassName": "gpu", "count": 2, "selectors": [{"cel": {"expression": expression}}]}
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly | {"allocationMode": "ExactCount"}}]}}
    return _make_object(_VERSION, "ResourceClaim", name, "team") | {"spec": spec}


def _make_pod(number: int, devices: int) -> Json:
    amounts = {"cpu": "1", _GPU: str(devices)}
    container = {"name": "main", "resources": {"requests": amounts, "limits": amounts}}
    spec = {"schedulerName": "default-scheduler", "containers": [container]}
    pod = _make_object("v1", "Pod", f"train-{number}", "team") | {"spec": spec, "status": {"phase": "Pending"}}
    pod["metadata"] |= {"creationTimestamp": "2026-11-21T03:13:00Z", "resourceVersion": str(number + 1)}
    return pod


def _claim_device(pod: Json) -> Json:
    container = {"name": "main", "resources": {"requests": {"cpu": "1"}, "claims": [{"name": "gpu"}]}}
    claims = [{"name": "gpu", "resourceClaimName": "large"}]
    tolerations = [{"key": "gpu", "operator": "Exists"}]
    return pod | {"spec": {"containers": [container], "resourceClaims": claims, "tolerations": tolerations}}


def _make_event(pod: Json, message: str) -> Json:
    names = {"namespace": "team", "name": pod["metadata"]["name"]}
    regarding = {"kind": "Pod", "uid": pod["metadata"]["uid"], **names}
    return {
        "metadata": names, "regarding": regarding, "reason": "FailedScheduling", "note": message, "type": "Warning",
        "eventTime": _STAMP, "reportingController": "default-scheduler",
    }  # fmt: skip


def _make_object(version: str, kind: str, name: str, namespace: str = "") -> dict[str, Any]:
    metadata = {"name": name, "uid": f"uid-{name}"} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": version, "kind": kind, "metadata": metadata}
