"""Decisions in which choosing among a node's devices is the main work: topology-aware pods, and MIG instances."""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

from dev.bench import fleet
from dev.bench.cluster import DEVICES_PER_NODE, Object
from dev.bench.report import Figure, Result
from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.judge.decide import decide
from engine.fit.judge.decision import Decision, SchedulingPolicy
from engine.hami.allocation import MigAllocation, encode_mig
from engine.hami.mig import Placement

NODES = 5_000
CALLS = 10
# Two levels are enough to make pairs differ; the values themselves change no cost.
LINKED, APART = 100, 10
MIG_PROFILES = [
    {"name": "1g.10gb", "memoryMB": 9_728, "core": 14, "sliceCount": 1,
     "placements": [{"start": start, "size": 1} for start in range(7)]},
    {"name": "3g.40gb", "memoryMB": 39_936, "core": 42, "sliceCount": 3,
     "placements": [{"start": 0, "size": 4}, {"start": 4, "size": 4}]},
    {"name": "7g.80gb", "memoryMB": 80_384, "core": 100, "sliceCount": 7, "placements": [{"start": 0, "size": 8}]},
]  # fmt: skip


def choosing() -> Result:
    """CPU time of one decision on nodes that all fit, without records."""
    return Result(
        "choosing",
        "One decision on nodes that all fit, without records; ratio: to the first",
        f"{NODES:,} nodes of {DEVICES_PER_NODE} devices, best of {CALLS}",
        tuple(_figures()),
    )


def _figures() -> Iterator[Figure]:
    linked = _cluster(0)
    base = best_ms(linked, a_pod(2))
    yield Figure("2 devices, any", base, "CPU ms")
    for count in (1, 2, 4):
        yield _figure(f"{count} devices, topology-aware", linked, a_pod(count, "topology-aware"), base)
    yield _figure(
        "2 devices, topology-aware, 40,000 pods", _cluster(NODES * DEVICES_PER_NODE), a_pod(2, "topology-aware"), base
    )
    yield _figure("2 instances, MIG, nothing running", _mig_cluster(0), a_pod(2), base)
    yield _figure("2 instances, MIG, 20,000 running", _mig_cluster(NODES * DEVICES_PER_NODE // 2), a_pod(2), base)


def _figure(path: str, columns: ClusterColumns, pod: Object, base: float) -> Figure:
    cost = best_ms(columns, pod)
    return Figure(path, cost, "CPU ms", round(cost / base, 2))


def best_ms(columns: ClusterColumns, pod: Object) -> float:
    """The least CPU time of several decisions; raises ``ValueError`` if a node refuses, which would be less work."""
    costs, names = [], fleet.node_names(NODES)
    for _ in range(CALLS):
        began = time.process_time()
        # The columns are not changed by a decision, so that every call finds the same state.
        answer = decide(columns, pod, names, SchedulingPolicy())
        costs.append(time.process_time() - began)
        # A refusal ends a node's walk early.
        if not isinstance(answer, Decision) or answer.failed_nodes():
            raise ValueError("a node refused the pod: the benchmark needs a cluster on which every node fits")
    # Other work on the machine only ever adds time, so the least is nearest to the cost itself.
    return min(costs) * 1e3


def a_pod(count: int, policy: str = "binpack") -> Object:
    limits = {"nvidia.com/gpu": count, "nvidia.com/gpumem": 5_000}
    return {
        "metadata": {"namespace": "llm", "name": "train", "uid": "uid-train",
                     "annotations": {"hami.io/gpu-scheduler-policy": policy}},
        "spec": {"containers": [{"name": "worker", "resources": {"limits": limits}}]},
    }  # fmt: skip


def _cluster(pods: int) -> ClusterColumns:
    """The fleet with a score for each pair of devices; in each node two groups of four are linked."""
    return _columns(pods, lambda number: {"hami.io/node-nvidia-score": _scores(number)}, lambda pod: pod)


def _scores(node: int) -> str:
    devices = [fleet.device_uuid(node, device) for device in range(DEVICES_PER_NODE)]
    return json.dumps([{"uuid": uuid, "score": _scores_of(uuid, devices)} for uuid in devices])


def _scores_of(one: str, devices: list[str]) -> dict[str, int]:
    half = devices.index(one) // 4
    return {device: LINKED if place // 4 == half else APART for place, device in enumerate(devices) if device != one}


def _mig_cluster(pods: int) -> ClusterColumns:
    """The same fleet with MIG devices. A pod holds one instance of one slice, at one of seven places."""
    return _columns(pods, lambda _: {}, _on_an_instance, mode="mig", migProfiles=MIG_PROFILES)


def _on_an_instance(pod: Object) -> Object:
    annotations = pod["metadata"]["annotations"]
    uuid = annotations["hami.io/vgpu-devices-allocated"].split(",")[0]
    place = Placement(int(pod["metadata"]["name"].removeprefix("job-")) % 7, 1)
    instance = MigAllocation(0, 0, uuid, "1g.10gb", place)
    annotations["hami.io/vgpu-devices-allocated"] = f"{uuid},NVIDIA,9728,14:;"
    annotations["hami.io/vgpu-mig-allocations"] = encode_mig([instance])
    return pod


def _columns(
    pods: int, more_annotations: Callable[[int], dict[str, str]], change: Callable[[Object], Object], **changed: Any
) -> ClusterColumns:
    columns, fleet_of = ClusterColumns(), fleet.manifest(NODES, pods)
    for number, node in enumerate(fleet_of.nodes.values()):
        annotations = node["metadata"]["annotations"]
        registered = json.loads(annotations["hami.io/node-nvidia-register"])
        annotations["hami.io/node-nvidia-register"] = json.dumps([device | changed for device in registered])
        annotations |= more_annotations(number)
        columns.apply_node(node)
    for pod in fleet_of.pods.values():
        columns.apply_pod(change(pod))
    return columns
