"""CPU of plans on a large cluster: pods that start of several shapes, a drain, moves; and of names of its pods."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from api.memory.known_names import find_matches, find_similar
from dev.bench.cluster import iterate_objects
from dev.bench.cpu import measure_milliseconds
from dev.bench.report import Figure, Result
from engine.capacity.defragment import plan_defragmentation
from engine.capacity.drain import plan_drain
from engine.capacity.per_node import measure_capacity
from engine.capacity.shapes import Shape, build_template
from engine.fit import device_config
from engine.fit.manifests import Manifest
from engine.hami.releases import LATEST
from engine.simulation.cluster import SimulationCluster, build_cluster
from engine.simulation.setting import SimulationSetting

NODES: Final = 5_000
SHAPES: Final = tuple(Shape(devices, memory) for devices in (1, 2, 4, 8) for memory in (10_000, 20_000, 40_000))
MOVED: Final = Shape(8, 36_000)
"""Shape that no node takes, so that moves are searched."""
NAMES: Final = 100_000
CALLS: Final = 3
_MILLISECONDS: Final = 1_000


def measure_plans() -> Result:
    """Measure twelve shapes on one cluster, the drain of one of its nodes, moves for a pod, and names."""
    cluster, setting = _build_cluster(), SimulationSetting(datetime.now(UTC))

    def count_all() -> None:
        for shape in SHAPES:
            measure_capacity(cluster, build_template(shape, cluster.vendors), setting)

    shapes = _measure(count_all)
    drain = _measure(lambda: plan_drain(cluster, cluster.columns.node_names[0], setting))
    moved = build_template(MOVED, cluster.vendors)
    moves = _measure(lambda: plan_defragmentation(cluster, moved, 1, setting))
    names = [f"team-{number % 50}/job-{number // 8}-{number % 8}" for number in range(NAMES)]
    completion = _measure(lambda: find_matches(names, "job-99"))
    similar = _measure(lambda: find_similar(names, "team-1", "job-12x45-3"))
    return Result(
        "plans",
        "Pods that start now of twelve shapes, a drain and moves by the filters and HAMi's fit, and names of pods",
        f"{NODES:,} nodes of 8 devices, as many pods; goals: 300 ms and 1 s; median of {CALLS} calls",
        (
            Figure(f"{len(SHAPES)} shapes counted", shapes, "CPU ms"),
            Figure("one node drained", drain, "CPU ms", round(drain / shapes, 2)),
            Figure("moves searched for a pod", moves, "CPU ms", round(moves / shapes, 2)),
            Figure(f"{NAMES:,} names completed", completion, "CPU ms", round(completion / shapes, 2)),
            Figure(f"{NAMES:,} names compared", similar, "CPU ms", round(similar / shapes, 2)),
        ),
    )


def _build_cluster() -> SimulationCluster:
    manifest = Manifest()
    for item in iterate_objects(NODES):
        name = item["metadata"]["name"]
        if item["kind"] == "Node":
            manifest.nodes[name] = item
        else:
            manifest.pods[item["metadata"]["namespace"], name] = item
    return build_cluster(manifest, device_config.read_shipped(), LATEST)


def _measure(call: Callable[[], object]) -> float:
    """Measure the median CPU time of a call, in milliseconds."""
    return round(measure_milliseconds(call, CALLS), 1)
