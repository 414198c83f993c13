"""Kubernetes objects that hold the devices of recorded node states: the input of `python -m scheduler simulate`.

A Node has its devices in HAMi's annotations. One Pod on each node holds everything that was in use: a state has the
sums and not the pods. Only NVIDIA's devices are written; the result names devices of other vendors as left out.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import orjson

from engine.hami import annotations
from engine.hami.allocation import AllocatedDevice, MigAllocation, encode_devices, encode_mig
from engine.hami.mig import Placement
from engine.hami.vendors import NVIDIA
from schemas.events import NOT_REPORTED, DeviceKind, MigUse, NodeStateChanged
from schemas.json_types import Json

NAMESPACE: Final = "schedulerlog"
"""Namespace of the pods that hold what was in use."""


@dataclass(frozen=True, slots=True)
class ClusterObjects:
    objects: list[Json]
    left_out: list[str]
    """Descriptions of the parts of the states that the objects lack."""


def build_cluster_objects(states: Iterable[NodeStateChanged], without_devices: Iterable[str] = ()) -> ClusterObjects:
    """Build the nodes and pods of ``states``, one state per node, and the nodes ``without_devices``."""
    objects: list[Json] = []
    left_out: list[str] = []
    for state in states:
        rows = [row for row, code in enumerate(state.kind.tolist()) if _is_nvidia(state.kinds[code])]
        if other := len(state.uuid) - len(rows):
            left_out.append(f"{state.node}: {other} devices of other vendors than {NVIDIA.word}")
        if any(state.kinds[state.kind[row]].slots is None for row in rows):
            left_out.append(
                f"{state.node}: all devices, because its source does not report how many pods may share them"
            )
            rows = []
        objects.append(_build_node(state, rows))
        objects += _build_pods(state, rows)
    objects += [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}} for name in without_devices]
    return ClusterObjects(objects, left_out)


def _is_nvidia(kind: DeviceKind) -> bool:
    return kind.vendor in ("", NVIDIA.word)


def _build_node(state: NodeStateChanged, rows: Sequence[int]) -> Json:
    written: dict[str, str] = {}
    if rows:
        written[annotations.REGISTER] = orjson.dumps([_build_device(state, row) for row in rows]).decode()
    if scores := _list_pair_scores(state, rows):
        written[annotations.PAIR_SCORES] = orjson.dumps(scores).decode()
    if cordoned := [state.uuid[row] for row in rows if state.cordoned[row]]:
        written[annotations.CORDONED_DEVICES] = ",".join(cordoned)
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": state.node, "annotations": written}}


def _build_device(state: NodeStateChanged, row: int) -> Json:
    """Build the device's entry as a device plugin registers it."""
    kind = state.kinds[state.kind[row]]
    profiles = [
        {
            "name": profile.name,
            "memoryMB": profile.memory_mib,
            "core": profile.cores_percent,
            "sliceCount": profile.slices,
            "placements": [{"start": start, "size": size} for start, size in profile.placements],
        }
        for profile in kind.mig_profiles
    ]
    device = {
        "id": state.uuid[row],
        "index": int(state.index[row]),
        "count": kind.slots or 0,
        "devmem": kind.memory_mib or 0,
        "devcore": kind.cores_percent or 0,
        "type": kind.model,
        "numa": int(state.numa[row]),
        "mode": kind.mode,
        "health": state.healthy[row],
    }
    return device | ({"migprofiles": profiles} if profiles else {})


def _list_pair_scores(state: NodeStateChanged, rows: Sequence[int]) -> list[Json]:
    size = len(state.uuid)
    if not state.pair_scores.size:
        return []
    table = state.pair_scores.reshape(size, size)
    return [
        {"uuid": state.uuid[row], "score": {state.uuid[peer]: int(table[row, peer]) for peer in rows}} for row in rows
    ]


def _build_pods(state: NodeStateChanged, rows: Sequence[int]) -> list[Json]:
    """Build the pods that hold what was in use of the devices; no pod where nothing was in use."""
    held: list[AllocatedDevice] = []
    instances: list[MigAllocation] = []
    # A pod's shares of one device count as one, which has an instance or has none: what is not known needs its own pod.
    without_instance: list[AllocatedDevice] = []
    uses = {use.device: use for use in state.mig}
    for row in rows:
        use, shares = uses.get(row), _divide_use(state, row)
        if use and use.spans and use.unknown and len(shares) > len(use.spans):
            without_instance.append(shares.pop())
        instances += _list_instances(state, row, use, len(held))
        held += shares
    return [
        *([_build_pod(state, f"in-use-on-{state.node}", held, instances)] if held else []),
        *([_build_pod(state, f"also-in-use-on-{state.node}", without_instance, [])] if without_instance else []),
    ]


def _build_pod(
    state: NodeStateChanged, name: str, held: Sequence[AllocatedDevice], instances: Sequence[MigAllocation]
) -> Json:
    written = {
        annotations.ASSIGNED_NODE: state.node,
        annotations.DEVICES_ALLOCATED: encode_devices([list(held)]),
    }
    if instances:
        written[annotations.MIG_ALLOCATIONS] = encode_mig(instances)
    metadata = {"name": name, "namespace": NAMESPACE, "annotations": written}
    containers = [{"name": "in-use", "resources": {"limits": {annotations.GPU_COUNT: str(len(held))}}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeName": state.node, "containers": containers},
        "status": {"phase": "Running"},
    }


def _divide_use(state: NodeStateChanged, row: int) -> list[AllocatedDevice]:
    """Divide the use of a device into a share per slot; the first share has all of the memory and cores."""
    memory, cores, slots = (
        max(int(column[row]), 0) for column in (state.memory_used_mib, state.cores_used_percent, state.slots_used)
    )
    # A source may report memory in use and no slots.
    if state.slots_used[row] == NOT_REPORTED and (memory or cores):
        slots = 1
    first = [AllocatedDevice(state.uuid[row], NVIDIA.word, memory, cores)] if slots else []
    return first + [AllocatedDevice(state.uuid[row], NVIDIA.word, 0, 0)] * (slots - 1)


def _list_instances(state: NodeStateChanged, row: int, use: MigUse | None, first_device: int) -> list[MigAllocation]:
    """List the MIG instances on the device; unknown ones have no entry, as on a cluster."""
    kind = state.kinds[state.kind[row]]
    allocations = []
    for position, span in enumerate(use.spans if use else []):
        names = [profile.name for profile in kind.mig_profiles if (span.start, span.size) in profile.placements]
        placement = Placement(span.start, span.size)
        # Where two profiles have this placement, either blocks the same slices.
        allocations.append(
            MigAllocation(0, first_device + position, state.uuid[row], names[0] if names else "unknown", placement)
        )
    return allocations
