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
from engine.fit.events.event_builder import Circumstances, build_events, build_unchanged
from engine.fit.events.state_builder import Life, StateBuilder
from engine.fit.judge.decide import decide
from engine.fit.judge.decision import Decision, SchedulingPolicy
from schemas.codec.records import EncodedRecord, encode
from schemas.events import PodRef
from schemas.ids import count_microseconds

Object = dict[str, Any]
TOTAL_MIB = 81559
DEVICES_PER_NODE = 8


def iterate_objects(nodes: int) -> Iterator[Object]:
    """Iterate over ``nodes`` nodes with eight devices each, each followed by the pod that uses its devices."""
    # Seeded by the size: the same size is the same cluster in every run and on every machine.
    chance = random.Random(nodes)
    for number in range(nodes):
        name = f"gpu-node-{number:05d}"
        uuids = [f"GPU-{uuid.UUID(int=chance.getrandbits(128))}" for _ in range(DEVICES_PER_NODE)]
        yield _build_node(name, uuids, broken=chance.randrange(DEVICES_PER_NODE * 4))
        yield build_running_pod(name, number, [(device, *_draw_use(chance)) for device in uuids])


def _draw_use(chance: random.Random) -> tuple[int, int]:
    """Draw memory (MiB) and cores (percent) in use, so that less than 20 GiB or less than 20 cores are free."""
    # Two kinds of full devices, so that several reasons occur on one node, as on a real cluster.
    if chance.random() < 0.7:
        return chance.randrange(TOTAL_MIB - 20_000, TOTAL_MIB), chance.randrange(0, 100)
    return chance.randrange(1_000, TOTAL_MIB - 30_000), chance.randrange(81, 100)


def _build_node(name: str, uuids: list[str], broken: int) -> Object:
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


def build_running_pod(node: str, number: int, uses: list[tuple[str, int, int]]) -> Object:
    """Build a pod with a container for each device that it uses: UUID, memory in MiB, cores in percent."""
    held = "".join(f"{device},NVIDIA,{memory},{cores}:;" for device, memory, cores in uses)
    annotations = {"hami.io/vgpu-node": node, "hami.io/vgpu-devices-allocated": held, "hami.io/bind-phase": "success"}
    # What a pod did not ask for does not count, whatever its annotations name.
    resources = {"limits": {"nvidia.com/gpu": 1}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": "batch",
            "name": f"job-{number}",
            "uid": str(uuid.UUID(int=number)),
            "annotations": annotations,
        },
        "spec": {"nodeName": node, "containers": [{"name": f"c{i}", "resources": resources} for i in range(len(uses))]},
        "status": {"phase": "Running"},
    }


def build_hopeless_pod(number: int = 0) -> Object:
    """Build a pod that requests more than any node has free."""
    limits = {"nvidia.com/gpu": 2, "nvidia.com/gpumem": 20480, "nvidia.com/gpucores": 20}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": "llm", "name": f"hopeless-{number}", "uid": str(uuid.UUID(int=2**64 + number))},
        "spec": {"containers": [{"name": "worker", "resources": {"limits": limits}}]},
    }


def build_columns(nodes: int) -> ClusterColumns:
    columns = ClusterColumns()
    for object_ in iterate_objects(nodes):
        (columns.apply_node if object_["kind"] == "Node" else columns.apply_pod)(object_)
    return columns


def write_cluster(nodes: int, path: Path) -> list[str]:
    """Write a cluster file for ``python -m scheduler serve --cluster``; returns the names of its nodes."""
    objects = list(iterate_objects(nodes))
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return [object_["metadata"]["name"] for object_ in objects if object_["kind"] == "Node"]


LIFE: Final = Life(Identity("default", "bench"), 1_795_230_000_000_000)
_NOTHING_MORE: Final = Circumstances()
WARM_UP: Final = 1_000_000
"""The number of the first pod of the warm-up."""


def iterate_warm_up(nodes: int, count: int, *, changing: float = 0) -> Iterator[list[EncodedRecord]]:
    """Iterate over attempts for the warm-up. With ``changing`` no device has a state that occurs in
    ``iterate_attempts``."""
    return iterate_attempts(nodes, count, changing=changing, first=WARM_UP, less=5_000 if changing else 0)


def iterate_attempts(
    nodes: int, count: int, *, changing: float = 0, first: int = 0, less: int = 0
) -> Iterator[list[EncodedRecord]]:
    """Iterate over the decisions of `iterate_attempts_and_states`."""
    return (
        decisions
        for _, decisions in iterate_attempts_and_states(nodes, count, changing=changing, first=first, less=less)
    )


def iterate_states(nodes: int, count: int, changing: float) -> Iterator[EncodedRecord]:
    """Iterate over all states that ``iterate_attempts`` and ``iterate_warm_up`` of as many attempts, or of fewer, refer
    to."""
    return (state for states, _ in iterate_attempts_and_states(nodes, count, changing=changing) for state in states)


def iterate_attempts_and_states(
    nodes: int, count: int, *, changing: float = 0, first: int = 0, less: int = 0
) -> Iterator[tuple[list[EncodedRecord], list[EncodedRecord]]]:
    """Iterate over the records of ``count`` attempts of different pods (from number ``first`` on), which all ``nodes``
    nodes refuse: the states that the attempt is the first to refer to, and its decisions.

    ``changing``: of this share of the nodes (1 or True: all) the free memory of every device shrinks by 1 MiB between
    two attempts. ``less``: it is smaller by so many MiB from the start.
    """
    columns, chance = build_columns(nodes), random.Random(nodes)
    # Row 0 of the columns stands for no device.
    columns.devices["used_memory"][1:] += less
    for number in range(first, first + count):
        # Every attempt is of another pod: an unchanged retry would be written as a reference (decision 0010).
        decisions = encode_attempt(columns, number)
        yield encode_states(columns), decisions
        change_nodes(columns, chance.sample(columns.node_names, round(changing * nodes)))


def change_nodes(columns: ClusterColumns, nodes: Sequence[str]) -> None:
    """Let every device of these nodes have 1 MiB less free."""
    ids = columns.look_up_ids(nodes)
    for entry in columns.get_entries(ids.tolist()):
        columns.devices["used_memory"][entry.rows_slice] += 1
    for node in ids.tolist():
        columns.revisions.advance(node)


def encode_states(columns: ClusterColumns) -> list[EncodedRecord]:
    """Encode the states that changed since the last call."""
    now, due = datetime.now(UTC), columns.revisions.list_due(0)
    records = [encode(state) for state in StateBuilder(LIFE, columns).build_states(due, now)]
    columns.revisions.record_written(due, count_microseconds(now))
    return records


def encode_attempt(
    columns: ClusterColumns,
    number: int,
    circumstances: Circumstances = _NOTHING_MORE,
    *,
    started_at: datetime | None = None,
) -> list[EncodedRecord]:
    """Encode the decisions of an attempt, at this moment or at ``started_at``, to schedule the hopeless pod of this
    number."""
    pod = build_hopeless_pod(number)
    decision = decide(columns, pod, columns.node_names, SchedulingPolicy())
    if not isinstance(decision, Decision) or decision.chosen:
        raise RuntimeError("a node took the pod: the benchmark needs a cluster on which every node refuses it")
    attempt = _refer(number, started_at or datetime.now(UTC))
    return [
        encode(event)
        for event in build_events(attempt, decision, attempt.started_at, epoch=LIFE.epoch, circumstances=circumstances)
    ]


def encode_unchanged(number: int, first: datetime, started_at: datetime) -> EncodedRecord:
    """Encode an attempt to schedule the hopeless pod of this number that found what the one at ``first`` had found."""
    return encode(build_unchanged(_refer(number, started_at), _refer(number, first), started_at))


def _refer(number: int, started_at: datetime) -> AttemptRef:
    metadata = build_hopeless_pod(number)["metadata"]
    pod = PodRef(namespace="llm", name=metadata["name"], uid=metadata["uid"])
    return AttemptRef.start(LIFE.identity, pod, started_at)
