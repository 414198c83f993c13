"""A large generated cluster of a realistic shape: Kubernetes objects with HAMi's annotations.

It is seeded, so that two runs judge the same devices. The devices are so full that every node refuses a request for two
devices with 20 GiB and 20 cores each, for several reasons on each node.
"""

import json
import random
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from engine.fit.devices.cluster_state import ClusterColumns
from engine.fit.events.attempt import AttemptRef, Identity
from engine.fit.events.event_builder import Circumstances, build_events
from engine.fit.events.state_builder import Life, StateBuilder
from engine.fit.judge.decide import decide
from engine.fit.judge.decision import Decision, SchedulingPolicy
from schemas.codec.records import EncodedRecord, encode
from schemas.events import PodRef
from schemas.ids import count_microseconds

Object = dict[str, Any]
TOTAL_MIB = 81559
DEVICES_PER_NODE = 8


def nodes_and_pods(nodes: int) -> Iterator[Object]:
    """``nodes`` nodes with eight devices each, each followed by the pod that uses its devices."""
    # Seeded by the size: the same size is the same cluster in every run and on every machine.
    chance = random.Random(nodes)
    for number in range(nodes):
        name = f"gpu-node-{number:05d}"
        uuids = [f"GPU-{uuid.UUID(int=chance.getrandbits(128))}" for _ in range(DEVICES_PER_NODE)]
        yield _node(name, uuids, broken=chance.randrange(DEVICES_PER_NODE * 4))
        yield running_pod(name, number, [(device, *_use(chance)) for device in uuids])


def _use(chance: random.Random) -> tuple[int, int]:
    """Memory (MiB) and cores (percent) in use, so that less than 20 GiB or less than 20 cores are free."""
    # Two kinds of full devices, so that several reasons occur on one node, as on a real cluster.
    if chance.random() < 0.7:
        return chance.randrange(TOTAL_MIB - 20_000, TOTAL_MIB), chance.randrange(0, 100)
    return chance.randrange(1_000, TOTAL_MIB - 30_000), chance.randrange(81, 100)


def _node(name: str, uuids: list[str], broken: int) -> Object:
    devices = [
        {"id": id_, "index": i, "count": 10, "devmem": TOTAL_MIB, "devcore": 100, "type": "NVIDIA H100 80GB HBM3"}
        | {"numa": i // 4, "mode": "hami-core", "health": i != broken}
        for i, id_ in enumerate(uuids)
    ]
    annotations = {"hami.io/node-nvidia-register": json.dumps(devices)}
    resources = {"nvidia.com/gpu": str(10 * len(uuids))}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": f"uid-{name}", "annotations": annotations},
        "status": {"capacity": resources, "allocatable": resources},
    }


def running_pod(node: str, number: int, uses: list[tuple[str, int, int]]) -> Object:
    """A pod with a container for each device that it uses: UUID, memory in MiB, cores in percent."""
    held = "".join(f"{device},NVIDIA,{memory},{cores}:;" for device, memory, cores in uses)
    annotations = {"hami.io/vgpu-node": node, "hami.io/vgpu-devices-allocated": held, "hami.io/bind-phase": "success"}
    # What a pod did not ask for does not count, whatever its annotations name.
    asked = {"limits": {"nvidia.com/gpu": 1}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": "batch",
            "name": f"job-{number}",
            "uid": str(uuid.UUID(int=number)),
            "annotations": annotations,
        },
        "spec": {"nodeName": node, "containers": [{"name": f"c{i}", "resources": asked} for i in range(len(uses))]},
        "status": {"phase": "Running"},
    }


def a_hopeless_pod(number: int = 0) -> Object:
    """A pod that requests more than any node has free."""
    limits = {"nvidia.com/gpu": 2, "nvidia.com/gpumem": 20480, "nvidia.com/gpucores": 20}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": "llm", "name": f"hopeless-{number}", "uid": str(uuid.UUID(int=2**64 + number))},
        "spec": {"containers": [{"name": "worker", "resources": {"limits": limits}}]},
    }


def columns(nodes: int) -> ClusterColumns:
    columns = ClusterColumns()
    for found in nodes_and_pods(nodes):
        (columns.apply_node if found["kind"] == "Node" else columns.apply_pod)(found)
    return columns


def write(nodes: int, path: Path) -> list[str]:
    """Write a cluster file for ``python -m scheduler serve --cluster``; returns the names of its nodes."""
    objects = list(nodes_and_pods(nodes))
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return [object_["metadata"]["name"] for object_ in objects if object_["kind"] == "Node"]


LIFE: Final = Life(Identity("default", "bench"), 1_795_230_000_000_000)
_NOTHING_MORE: Final = Circumstances()
WARM_UP: Final = 1_000_000
"""The number of the first pod of the warm-up."""


def warm_up(nodes: int, count: int, *, changing: float = 0) -> Iterator[list[EncodedRecord]]:
    """Attempts for the warm-up. With ``changing`` no device has a state that occurs in ``attempts``."""
    return attempts(nodes, count, changing=changing, first=WARM_UP, less=5_000 if changing else 0)


def attempts(
    nodes: int, count: int, *, changing: float = 0, first: int = 0, less: int = 0
) -> Iterator[list[EncodedRecord]]:
    """The decisions of `attempts_and_states`."""
    return (decisions for _, decisions in attempts_and_states(nodes, count, changing=changing, first=first, less=less))


def states_of(nodes: int, count: int, changing: float) -> Iterator[EncodedRecord]:
    """All states that ``attempts`` and ``warm_up`` of as many attempts, or of fewer, refer to."""
    return (state for states, _ in attempts_and_states(nodes, count, changing=changing) for state in states)


def attempts_and_states(
    nodes: int, count: int, *, changing: float = 0, first: int = 0, less: int = 0
) -> Iterator[tuple[list[EncodedRecord], list[EncodedRecord]]]:
    """The records of ``count`` attempts of different pods (from number ``first`` on), which all ``nodes`` nodes refuse:
    the states that the attempt is the first to refer to, and its decisions.

    ``changing``: of this share of the nodes (1 or True: all) the free memory of every device shrinks by 1 MiB between
    two attempts. ``less``: it is smaller by so many MiB from the start.
    """
    whole, chance = columns(nodes), random.Random(nodes)
    # Row 0 of the columns stands for no device.
    whole.devices["used_memory"][1:] += less
    for number in range(first, first + count):
        # Every attempt is of another pod: an unchanged retry would be written as a reference (decision 0010).
        decisions = attempt(whole, number)
        yield states(whole), decisions
        change(whole, chance.sample(whole.node_names, round(changing * nodes)))


def change(whole: ClusterColumns, nodes: Sequence[str]) -> None:
    """Let every device of these nodes have 1 MiB less free."""
    ids = whole.look_up_ids(nodes)
    for entry in whole.get_entries(ids.tolist()):
        whole.devices["used_memory"][entry.rows_slice] += 1
    for node in ids.tolist():
        whole.revisions.advance(node)


def states(whole: ClusterColumns) -> list[EncodedRecord]:
    """The states that changed since the last call."""
    now, due = datetime.now(UTC), whole.revisions.list_due(0)
    records = [encode(state) for state in StateBuilder(LIFE, whole).build_states(due, now)]
    whole.revisions.record_written(due, count_microseconds(now))
    return records


def attempt(whole: ClusterColumns, number: int, circumstances: Circumstances = _NOTHING_MORE) -> list[EncodedRecord]:
    """The decisions of an attempt at this moment to schedule the hopeless pod of this number."""
    pod = a_hopeless_pod(number)
    decision = decide(whole, pod, whole.node_names, SchedulingPolicy())
    if not isinstance(decision, Decision) or decision.chosen:
        raise RuntimeError("a node took the pod: the benchmark needs a cluster on which every node refuses it")
    metadata = pod["metadata"]
    now = datetime.now(UTC)
    pod_ref = PodRef(namespace="llm", name=metadata["name"], uid=metadata["uid"])
    attempt_ref = AttemptRef.start(LIFE.identity, pod_ref, now)
    return [
        encode(event)
        for event in build_events(attempt_ref, decision, now, epoch=LIFE.epoch, circumstances=circumstances)
    ]
