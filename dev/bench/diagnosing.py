"""Cost of the suggestions for a pod that no node of a large cluster takes."""

import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from dev.bench import cluster
from dev.bench.report import Figure, Result
from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.devices.pod_usage import PodUse
from engine.fit.judge.decide import decide
from engine.fit.judge.decision import SchedulingPolicy
from engine.suggestions.acts import Holders, list_nodes_to_empty
from engine.suggestions.ask import Ask
from engine.suggestions.exclusion import find_excluding_constraints
from engine.suggestions.suggest import suggest
from engine.suggestions.trial import Trial

NODES = 5_000
CALLS = 200
"""Number of calls, so that two of them are slower than the p99."""


def measure_diagnosis() -> Result:
    """Measure wall time and CPU of all suggestions and the excluding constraints, from columns in memory."""
    return Result(
        "diagnosis",
        "Suggestions and the constraints that exclude every node; ratio: CPU to the decision that refuses the pod",
        f"{NODES:,} nodes of {cluster.DEVICES_PER_NODE} devices that all refuse, {CALLS} calls",
        tuple(_iterate_figures()),
    )


def _iterate_figures() -> Iterator[Figure]:
    columns = ClusterColumns()
    running: dict[str, dict[str, PodUse]] = {}
    for object_ in cluster.iterate_objects(NODES):
        if object_["kind"] == "Node":
            columns.apply_node(object_)
            continue
        columns.apply_pod(object_)
        uid = object_["metadata"]["uid"]
        if use := columns.get_pod_use(uid):
            running.setdefault(use.node, {})[uid] = use
    for name, pod in _list_pods().items():
        ask = Ask.from_pod(pod, columns.vendors)
        decided, _ = _measure(partial(decide, columns, pod, columns.node_names, SchedulingPolicy()))
        cpu, wall = _measure(partial(_diagnose, columns, ask, running))
        ratio = round(statistics.fmean(cpu) / statistics.fmean(decided), 1)
        yield Figure(f"{name}: CPU", round(statistics.fmean(cpu), 1), "ms", ratio)
        # A call waits for nothing: beside other work its time is what it had to wait for a core.
        yield Figure(f"{name}: CPU, p99", round(_take_percentile(cpu, 0.99), 1), "ms")
        yield Figure(f"{name}: p99", round(_take_percentile(wall, 0.99), 1), "ms")


def _list_pods() -> Mapping[str, dict[str, Any]]:
    bound = {"nvidia.com/numa-bind": "true"}
    return {
        "2 devices, memory and cores": _build_pod(2, 20_480, 20, {}),
        "and a type that is not there": _build_pod(2, 20_480, 20, {"nvidia.com/use-gputype": "A100", **bound}),
        "8 whole devices on one NUMA node": _build_pod(8, 81_000, 100, bound),
    }


def _build_pod(count: int, memory: int, cores: int, annotations: dict[str, str]) -> dict[str, Any]:
    limits = {"nvidia.com/gpu": count, "nvidia.com/gpumem": memory, "nvidia.com/gpucores": cores}
    return {
        "metadata": {"namespace": "llm", "name": "train", "uid": "uid-train", "annotations": annotations},
        "spec": {"containers": [{"name": "worker", "resources": {"limits": limits}}]},
    }


def _diagnose(columns: ClusterColumns, ask: Ask, running: Holders) -> None:
    # A new one for each call, as each request has: it remembers the ids of the nodes that are asked about.
    trial = Trial(columns, columns.node_names, SchedulingPolicy())
    holders = {node: running.get(node, {}) for node in list_nodes_to_empty(trial, ask)}
    suggest(trial, ask, holders)
    find_excluding_constraints(trial, ask)


def _measure(call: Callable[[], object]) -> tuple[list[float], list[float]]:
    """Measure CPU and wall time of each call in milliseconds."""
    cpu, wall = [], []
    for _ in range(CALLS):
        cpu_began, began = time.process_time(), time.perf_counter()
        call()
        cpu.append((time.process_time() - cpu_began) * 1e3)
        wall.append((time.perf_counter() - began) * 1e3)
    return cpu, wall


def _take_percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[math.ceil(len(values) * share) - 1]
