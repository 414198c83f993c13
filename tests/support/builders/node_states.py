"""States of nodes for tests: what the device records of the other builders refer to."""

import random
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from schemas.events import DeviceKind, DevicesJudged, NodeStateChanged
from schemas.events.devices import NO_STATE, StateOf

EPOCH = 1_795_230_000_000_000
"""Start of the tests' scheduler: 2026-11-21T03:00:00Z, some minutes before the builders' attempts."""
REVISION = 7
OBSERVED = datetime(2026, 11, 21, 3, 6, 20, tzinfo=UTC)
A100 = DeviceKind(
    model="NVIDIA A100-SXM4-80GB", vendor="NVIDIA", mode="hami-core", memory_mib=81920, cores_percent=100, slots=10
)
USED_MEMORY_MIB, USED_CORES_PERCENT, USED_SLOTS = 1024, 10, 1
"""Amounts of every device, unless a test says otherwise."""


def write_uuid(node: str, device: int) -> str:
    return f"GPU-{node}-{device}"


def a_node_state(node: str = "node1", devices: int = 8, **fields: Any) -> NodeStateChanged:
    """A node with so many A100 that each have one user."""
    plain = {
        "node": node,
        "observed_at": OBSERVED,
        "cluster": "default",
        "scheduler": "hami-scheduler",
        "epoch": EPOCH,
        "revision": REVISION,
        "kinds": [A100] if devices else [],
        "uuid": [write_uuid(node, device) for device in range(devices)],
        "kind": [0] * devices,
        "index": list(range(devices)),
        "numa": [0] * devices,
        "healthy": [True] * devices,
        "cordoned": [False] * devices,
        "memory_used_mib": [USED_MEMORY_MIB] * devices,
        "cores_used_percent": [USED_CORES_PERCENT] * devices,
        "slots_used": [USED_SLOTS] * devices,
    }
    return NodeStateChanged.model_validate(plain | fields)


def a_random_state(node: str = "node1", devices: int = 8, *, seed: int = 0, **fields: Any) -> NodeStateChanged:
    """Random UUIDs and random use, as on a cluster that is in use."""
    draw = random.Random(f"{node}/{seed}")
    plain = {
        "uuid": [f"GPU-{uuid.UUID(int=draw.getrandbits(128))}" for _ in range(devices)],
        "numa": [device // max(devices // 2, 1) for device in range(devices)],
        "memory_used_mib": [1024 * draw.randrange(61, 81) for _ in range(devices)],
        "cores_used_percent": [10 * draw.randrange(11) for _ in range(devices)],
        "slots_used": [draw.randrange(11) for _ in range(devices)],
    }
    return a_node_state(node, devices, **(plain | fields))


def build_states(*records: Any, **fields: Any) -> list[NodeStateChanged]:
    """Build the states that the device records among ``records`` refer to, each once, in the order of the references.

    ``fields`` are the same in each; every node has as many devices as the records need.
    """
    needed: dict[tuple[str, str, int, int], int] = {}
    observed: dict[tuple[str, str, int, int], datetime] = {}
    for event in (record for record in records if isinstance(record, DevicesJudged)):
        for index, revision in enumerate(event.revision.tolist()):
            if revision != NO_STATE:
                key = (event.scheduler, event.nodes[index], event.epoch, revision)
                needed[key] = max(needed.get(key, 0), *_list_devices(event, index))
                observed.setdefault(key, event.started_at)
    states = []
    for key, devices in needed.items():
        scheduler, node, epoch, revision = key
        plain = {
            "cluster": "default",
            "scheduler": scheduler,
            "epoch": epoch,
            "revision": revision,
            "observed_at": observed[key],
        }
        states.append(a_node_state(node, devices, **(plain | fields)))
    return states


def _list_devices(event: DevicesJudged, index: int) -> tuple[int, ...]:
    rows = event.rows.tolist()
    first = sum(rows[:index])
    positions = event.device[first : first + rows[index]].tolist() or [rows[index] - 1]
    return int(event.devices[index]), max(positions) + 1


def build_lookup(states: Sequence[NodeStateChanged]) -> StateOf:
    """Build what ``iterate_devices`` asks for the state of a node by its name and revision."""
    states_by_revision = {(state.node, state.revision): state for state in states}
    return lambda node, revision: states_by_revision.get((node, revision))
