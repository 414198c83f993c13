"""CPU of judging a pod with a claim on a snapshot: every node's devices, of a few kinds or all different."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Final

from dev.bench.cpu import measure_milliseconds
from dev.bench.report import Figure, Result
from engine.claims.explanation import explain_node
from engine.claims.inventory import Inventory, read_inventory
from engine.claims.judge import ClaimsJudge
from engine.claims.pod_claims import collect_claims
from engine.snapshot.pods import read_pod
from engine.snapshot.reading import change_snapshot, read_snapshot
from engine.snapshot.snapshot import Snapshot
from schemas.json_types import Json

NODES: Final = 5_000
DEVICES: Final = 8
HELD: Final = 1_000
"""Nodes whose devices other claims hold, all or half of them."""
CALLS: Final = 20

_DRIVER: Final = "gpu.nvidia.com"
_MODELS: Final = (("A100", "40Gi"), ("A100", "80Gi"), ("H100", "80Gi"), ("H200", "141Gi"), ("L40S", "48Gi"))
_VERSIONS: Final = ("535.104.5", "550.54.15", "570.86.10", "575.0.0")
KINDS: Final = len(_MODELS) * len(_VERSIONS)
_ATTRIBUTES: Final = f"device.attributes['{_DRIVER}']"
_SELECTOR: Final = (
    f"device.capacity['{_DRIVER}'].memory.compareTo(quantity('80Gi')) >= 0 "
    f"&& {_ATTRIBUTES}.driverVersion.compareTo(semver('560.0.0')) >= 0"
)


def measure_claims() -> Result:
    """Measure a claim whose selector separates kinds of devices, and one whose selector names a single device."""
    return Result(
        "claims",
        "Verdicts of DynamicResources on all nodes, without devices written down; ratio: to the claim for kinds",
        f"{NODES:,} nodes of {DEVICES} devices, {KINDS} kinds, one claim for 2; median of {CALLS} calls",
        tuple(_iterate_figures()),
    )


def _iterate_figures() -> Iterator[Figure]:
    objects = list(_iterate_cluster())
    snapshot = read_snapshot(objects)
    inventory = read_inventory(snapshot)
    by_kind, by_device = _make_pod("kinds"), _make_pod("devices")
    first = _measure(partial(_judge, inventory, snapshot, by_kind))
    yield Figure("one claim, devices of a few kinds", first, "CPU ms", 1)
    apart = _measure(partial(_judge, inventory, snapshot, by_device))
    yield Figure("one claim, all devices different", apart, "CPU ms", round(apart / first, 2))
    node = next(iter(snapshot.nodes.values())).node
    claims_judge = _build_judge(inventory, by_kind)
    explained = _measure(lambda: explain_node(claims_judge, node))
    yield Figure("one node explained", explained, "CPU ms", round(explained / first, 3))
    read = _measure(lambda: read_inventory(snapshot))
    yield Figure("all slices and claims read", read, "CPU ms", round(read / first, 2))
    changed = change_snapshot(snapshot, [make_claim("new", "kinds")])
    again = _measure(lambda: read_inventory(changed, previous=inventory))
    yield Figure("and again, after one claim has changed", again, "CPU ms", round(again / first, 2))


def _judge(inventory: Inventory, snapshot: Snapshot, pod: Json) -> None:
    inventory.pools.clear()  # As after a change of any slice.
    claims_judge = _build_judge(inventory, pod)
    verdicts = [claims_judge.judge(node.node) for node in snapshot.nodes.values()]
    if any(verdict.unjudged for verdict in verdicts) or all(verdict.refusal for verdict in verdicts):
        raise RuntimeError("no node was judged to fit: the benchmark needs the library of CEL")


def _build_judge(inventory: Inventory, pod: Json) -> ClaimsJudge:
    return ClaimsJudge(inventory, collect_claims(inventory, read_pod(pod), {}))


def _measure(call: Callable[[], object]) -> float:
    """Measure the median CPU time of a call, in milliseconds."""
    return round(measure_milliseconds(call, CALLS), 2)


def _iterate_cluster() -> Iterator[Json]:
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "110"}
    for number in range(NODES):
        yield _make_object("v1", "Node", f"node-{number:05d}", status={"allocatable": amounts})
    yield from iterate_devices(NODES)
    yield make_claim("kinds", _SELECTOR)
    yield make_claim("devices", f"{_SELECTOR} && {_ATTRIBUTES}.uuid != 'GPU-broken'")
    for number in range(HELD):
        yield _hold(number, f"node-{number * NODES // HELD:05d}", DEVICES if number % 2 else DEVICES // 2)


def iterate_devices(nodes: int) -> Iterator[Json]:
    """Yield a slice of devices for each node, equal ones on every twentieth, and their class."""
    kinds = list(product(_MODELS, _VERSIONS))
    for number in range(nodes):
        node = f"node-{number:05d}"
        (model, memory), version = kinds[number % KINDS]
        devices = [_make_device(number, index, model, memory, version) for index in range(DEVICES)]
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": _DRIVER, "nodeName": node, "pool": pool, "devices": devices}
        yield _make_object("resource.k8s.io/v1", "ResourceSlice", f"{node}-{_DRIVER}", spec=spec)
    is_gpu = f"device.driver == '{_DRIVER}' && {_ATTRIBUTES}.type == 'gpu'"
    yield _make_object(
        "resource.k8s.io/v1", "DeviceClass", "gpu", spec={"selectors": [{"cel": {"expression": is_gpu}}]}
    )


def _make_device(node: int, index: int, model: str, memory: str, version: str) -> Json:
    attributes = {
        "uuid": {"string": f"GPU-{node:05d}-{index}"},
        "productName": {"string": f"NVIDIA {model}"},
        "architecture": {"string": "Hopper"},
        "type": {"string": "gpu"},
        "driverVersion": {"version": version},
        "cudaComputeCapability": {"version": "9.0.0"},
        "index": {"int": index},
        "resource.kubernetes.io/pcieRoot": {"string": f"pci0000:{index:02x}"},
    }
    return {"name": f"gpu-{index}", "attributes": attributes, "capacity": {"memory": {"value": memory}}}


def select_memory(amount: str) -> str:
    """Write a selector for devices with this memory or more, and a driver of two of the four versions."""
    return _SELECTOR.replace("80Gi", amount)


def make_claim(name: str, expression: str, namespace: str = "team") -> Json:
    """Make a claim for two devices of the class."""
    selectors = [{"cel": {"expression": expression}}]
    request = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2, "selectors": selectors}
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": request}]}}
    return _make_object("resource.k8s.io/v1", "ResourceClaim", name, namespace=namespace, spec=spec)


def _hold(number: int, node: str, count: int) -> Json:
    claim = make_claim(f"held-{number}", "true")
    results = [{"request": "gpu", "driver": _DRIVER, "pool": node, "device": f"gpu-{index}"} for index in range(count)]
    consumers = [{"resource": "pods", "name": f"train-{number}", "uid": f"uid-{number}"}]
    return claim | {"status": {"allocation": {"devices": {"results": results}}, "reservedFor": consumers}}


def _make_pod(claim: str) -> Json:
    spec = {"containers": [{"name": "main"}], "resourceClaims": [{"name": "gpu", "resourceClaimName": claim}]}
    return _make_object("v1", "Pod", "ask", namespace="team", spec=spec)


def _make_object(version: str, kind: str, name: str, namespace: str = "", **parts: Json) -> Json:
    metadata = {"name": name, "uid": f"uid-{name}"} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **parts}
