"""A big cluster, made up but shaped like a real one: Kubernetes objects with HAMi's annotations.

Seeded: two runs judge the same devices. Every card is used so much that a request for two cards with 20 GiB and 20
cores each is refused on every node, for several reasons on each.
"""

import json
import random
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from scheduler.devices.cluster_state import ClusterColumns
from scheduler.judge.decide import decide
from scheduler.judge.decision import Decision, SchedulingPolicy
from scheduler.publish.attempt import AttemptRef
from scheduler.publish.event_builder import events_of
from schemas.codec.records import Record, encode
from schemas.events import PodRef

Object = dict[str, Any]
TOTAL_MIB = 81559
CARDS = 8


def nodes_and_pods(nodes: int) -> Iterator[Object]:
    """``nodes`` nodes with eight cards each, every one followed by the pod that uses its cards."""
    chance = random.Random(nodes)
    for number in range(nodes):
        name = f"gpu-node-{number:05d}"
        uuids = [f"GPU-{uuid.UUID(int=chance.getrandbits(128))}" for _ in range(CARDS)]
        yield _node(name, uuids, broken=chance.randrange(CARDS * 4))
        yield running_pod(name, number, [(card, *_use(chance)) for card in uuids])


def _use(chance: random.Random) -> tuple[int, int]:
    """Memory (MiB) and cores (percent) so that 20 GiB or 20 cores are not left."""
    if chance.random() < 0.7:
        return chance.randrange(TOTAL_MIB - 20_000, TOTAL_MIB), chance.randrange(0, 100)
    return chance.randrange(1_000, TOTAL_MIB - 30_000), chance.randrange(81, 100)


def _node(name: str, uuids: list[str], broken: int) -> Object:
    devices = [
        {"id": each, "index": i, "count": 10, "devmem": TOTAL_MIB, "devcore": 100, "type": "NVIDIA H100 80GB HBM3"}
        | {"numa": i // 4, "mode": "hami-core", "health": i != broken}
        for i, each in enumerate(uuids)
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
    """A pod with a container for each card that it uses: UUID, memory in MiB, cores in percent."""
    held = "".join(f"{card},NVIDIA,{memory},{cores}:;" for card, memory, cores in uses)
    annotations = {"hami.io/vgpu-node": node, "hami.io/vgpu-devices-allocated": held, "hami.io/bind-phase": "success"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": "batch",
            "name": f"job-{number}",
            "uid": str(uuid.UUID(int=number)),
            "annotations": annotations,
        },
        "spec": {"nodeName": node, "containers": [{"name": f"c{i}"} for i in range(len(uses))]},
        "status": {"phase": "Running"},
    }


def a_hopeless_pod(number: int = 0) -> Object:
    """Asks for what no node has left."""
    limits = {"nvidia.com/gpu": 2, "nvidia.com/gpumem": 20480, "nvidia.com/gpucores": 20}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": "llm", "name": f"hopeless-{number}", "uid": str(uuid.UUID(int=2**64 + number))},
        "spec": {"containers": [{"name": "worker", "resources": {"limits": limits}}]},
    }


def columns(nodes: int) -> ClusterColumns:
    whole = ClusterColumns()
    for each in nodes_and_pods(nodes):
        (whole.apply_node if each["kind"] == "Node" else whole.apply_pod)(each)
    return whole


def write(nodes: int, path: Path) -> list[str]:
    """A cluster file for ``python -m scheduler serve --cluster``; the names of its nodes."""
    objects = list(nodes_and_pods(nodes))
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return [each["metadata"]["name"] for each in objects if each["kind"] == "Node"]


WARM_UP: Final = 1_000_000
"""The number of the first pod of those that warm a worker up."""


def warm_up(nodes: int, count: int, *, changing: bool = False) -> Iterator[list[Record]]:
    """Attempts before those that are measured. What is ``changing`` is never as any of ``attempts`` has it."""
    return attempts(nodes, count, changing=changing, first=WARM_UP, less=5_000 if changing else 0)


def attempts(
    nodes: int, count: int, *, changing: bool = False, first: int = 0, less: int = 0
) -> Iterator[list[Record]]:
    """The records of ``count`` attempts of different pods (from number ``first`` on), refused by all ``nodes`` nodes.

    ``changing``: from one attempt to the next every card has a MiB less, so that no record says what one before said.
    ``less``: so many MiB less it has at first.
    """
    whole = columns(nodes)
    whole.devices["used_memory"][1:] += less
    for number in range(first, first + count):
        yield attempt(whole, number)
        if changing:
            whole.devices["used_memory"][1:] += 1


def attempt(whole: ClusterColumns, number: int) -> list[Record]:
    """The records of an attempt, made now, of the hopeless pod of this number."""
    pod = a_hopeless_pod(number)
    decision = decide(whole, pod, whole.node_names, SchedulingPolicy())
    if not isinstance(decision, Decision) or decision.chosen:
        raise RuntimeError("the benchmark's cluster was to refuse the pod on every node")
    about = pod["metadata"]
    now = datetime.now(UTC)
    told = AttemptRef.of("bench", PodRef(namespace="llm", name=about["name"], uid=about["uid"]), now)
    return [encode(event) for event in events_of(told, decision, now)]
