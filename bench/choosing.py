"""Deciding alone, where the choice among a node's cards is the work: topology-aware pods, and cards cut by MIG."""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

from bench import fleet
from bench.cluster import CARDS, Object
from bench.report import Figure, Result
from hami.allocation import MigAllocation, encode_mig
from hami.mig import Placement
from scheduler.devices.cluster_state import ClusterColumns
from scheduler.judge.decide import decide
from scheduler.judge.decision import Decision, SchedulingPolicy

NODES = 5_000
CALLS = 10
LINKED, APART = 100, 10
MIG_PROFILES = [
    {"name": "1g.10gb", "memoryMB": 9_728, "core": 14, "sliceCount": 1,
     "placements": [{"start": start, "size": 1} for start in range(7)]},
    {"name": "3g.40gb", "memoryMB": 39_936, "core": 42, "sliceCount": 3,
     "placements": [{"start": 0, "size": 4}, {"start": 4, "size": 4}]},
    {"name": "7g.80gb", "memoryMB": 80_384, "core": 100, "sliceCount": 7, "placements": [{"start": 0, "size": 8}]},
]  # fmt: skip


def choosing() -> Result:
    """CPU of one decision on nodes that all fit, nothing recorded."""
    return Result(
        "choosing",
        "One decision on nodes that all fit, nothing recorded; ratio: to the first",
        f"{NODES:,} nodes of {CARDS} cards, best of {CALLS}",
        tuple(_figures()),
    )


def _figures() -> Iterator[Figure]:
    linked = _cluster(0)
    base = best_ms(linked, a_pod(2))
    yield Figure("2 cards, any", base, "CPU ms")
    for count in (1, 2, 4):
        yield _figure(f"{count} cards, topology-aware", linked, a_pod(count, "topology-aware"), base)
    yield _figure("2 cards, topology-aware, 40,000 pods", _cluster(NODES * CARDS), a_pod(2, "topology-aware"), base)
    yield _figure("2 instances, MIG, nothing running", _mig_cluster(0), a_pod(2), base)
    yield _figure("2 instances, MIG, 20,000 running", _mig_cluster(NODES * CARDS // 2), a_pod(2), base)


def _figure(path: str, columns: ClusterColumns, pod: Object, base: float) -> Figure:
    cost = best_ms(columns, pod)
    return Figure(path, cost, "CPU ms", round(cost / base, 2))


def best_ms(columns: ClusterColumns, pod: Object) -> float:
    """The least CPU time of some decisions; raises `ValueError` where not every node fits, as then it is no measure."""
    costs, names = [], fleet.node_names(NODES)
    for _ in range(CALLS):
        began = time.process_time()
        answer = decide(columns, pod, names, SchedulingPolicy())
        costs.append(time.process_time() - began)
        if not isinstance(answer, Decision) or answer.failed_nodes():
            raise ValueError("every node was meant to fit")
    return min(costs) * 1e3


def a_pod(count: int, policy: str = "binpack") -> Object:
    limits = {"nvidia.com/gpu": count, "nvidia.com/gpumem": 5_000}
    return {
        "metadata": {"namespace": "llm", "name": "train", "uid": "uid-train",
                     "annotations": {"hami.io/gpu-scheduler-policy": policy}},
        "spec": {"containers": [{"name": "worker", "resources": {"limits": limits}}]},
    }  # fmt: skip


def _cluster(pods: int) -> ClusterColumns:
    """The fleet with a score for each pair of cards: four of a node are linked, and the other four."""
    return _columns(pods, lambda number: {"hami.io/node-nvidia-score": _scores(number)}, lambda pod: pod)


def _scores(node: int) -> str:
    cards = [fleet.card_uuid(node, card) for card in range(CARDS)]
    return json.dumps([{"uuid": one, "score": _scores_of(one, cards)} for one in cards])


def _scores_of(one: str, cards: list[str]) -> dict[str, int]:
    half = cards.index(one) // 4
    return {card: LINKED if place // 4 == half else APART for place, card in enumerate(cards) if card != one}


def _mig_cluster(pods: int) -> ClusterColumns:
    """The same fleet cut by MIG. A pod holds one instance of one slice, at one of the seven places."""
    return _columns(pods, lambda _: {}, _on_an_instance, mode="mig", migProfiles=MIG_PROFILES)


def _on_an_instance(pod: Object) -> Object:
    said = pod["metadata"]["annotations"]
    uuid = said["hami.io/vgpu-devices-allocated"].split(",")[0]
    place = Placement(int(pod["metadata"]["name"].removeprefix("job-")) % 7, 1)
    instance = MigAllocation(0, 0, uuid, "1g.10gb", place)
    said["hami.io/vgpu-devices-allocated"] = f"{uuid},NVIDIA,9728,14:;"
    said["hami.io/vgpu-mig-allocations"] = encode_mig([instance])
    return pod


def _columns(
    pods: int, said_of: Callable[[int], dict[str, str]], change: Callable[[Object], Object], **cards: Any
) -> ClusterColumns:
    columns, fleet_of = ClusterColumns(), fleet.manifest(NODES, pods)
    for number, node in enumerate(fleet_of.nodes.values()):
        said = node["metadata"]["annotations"]
        told = json.loads(said["hami.io/node-nvidia-register"])
        said["hami.io/node-nvidia-register"] = json.dumps([card | cards for card in told])
        said |= said_of(number)
        columns.apply_node(node)
    for pod in fleet_of.pods.values():
        columns.apply_pod(change(pod))
    return columns
