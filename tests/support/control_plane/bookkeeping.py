"""Placements of pods from two sources: the API server, and the records in Kafka.

Each is read by its own rules, so that a test can compare them. Nothing of the scheduler is used here.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRecord

from schemas.codec.records import Rejected, decode
from schemas.events import AttemptConcluded, BindConcluded, DevicesJudged, NodeStateChanged
from schemas.events.base import PICKED, Event
from schemas.events.node_states import build_state_id
from schemas.json_types import Json
from schemas.topics import DECISIONS, NODE_STATES, Topic
from tests.support.control_plane.objects import (
    ALLOCATED,
    CHOSEN,
    DEVICE_CORES,
    DEVICE_MEMORY_MIB,
    DEVICE_SLOTS,
    get_annotations,
)


@dataclass(frozen=True, slots=True, order=True)
class Share:
    """Share of one device that one container holds."""

    device: str
    memory_mib: int
    cores_percent: int


@dataclass(frozen=True, slots=True)
class Placement:
    """Node of a pod, and the shares that it holds there."""

    node: str
    shares: tuple[Share, ...]


def parse_shares(annotation: str) -> tuple[Share, ...]:
    """Parse ``GPU-a,NVIDIA,20480,20:GPU-b,NVIDIA,20480,20:;``: a colon ends a device, a semicolon a container."""
    words = [device.split(",") for slot in annotation.split(";") for device in slot.split(":") if device]
    return tuple(sorted(Share(uuid, int(memory), int(cores)) for uuid, _, memory, cores in words))


def list_placements(pods: Iterable[Json]) -> dict[str, Placement]:
    """Collect by pod name the placement that the API server shows for each bound pod."""
    bound = [pod for pod in pods if pod["spec"].get("nodeName")]
    return {
        pod["metadata"]["name"]: Placement(
            pod["spec"]["nodeName"], parse_shares(get_annotations(pod).get(ALLOCATED, ""))
        )
        for pod in bound
    }


def list_astray(pods: Iterable[Json]) -> list[str]:
    """Bound pods whose devices are those of another node than the one that they are on."""
    bound = [pod for pod in pods if pod["spec"].get("nodeName")]
    return [pod["metadata"]["name"] for pod in bound if get_annotations(pod).get(CHOSEN) != pod["spec"]["nodeName"]]


def find_overbooked(placements: Iterable[Placement]) -> dict[str, str]:
    """Find by device the use that exceeds its size; a device is as the tests' nodes register it."""
    held: dict[str, list[Share]] = defaultdict(list)
    for placement in placements:
        for share in placement.shares:
            held[share.device].append(share)
    sums = {
        device: (sum(s.memory_mib for s in shares), sum(s.cores_percent for s in shares), len(shares))
        for device, shares in held.items()
    }
    capacity = (DEVICE_MEMORY_MIB, DEVICE_CORES, DEVICE_SLOTS)
    return {
        device: f"{used} of {capacity}"
        for device, used in sums.items()
        if any(u > r for u, r in zip(used, capacity, strict=True))
    }


@dataclass(slots=True)
class PodRecords:
    """The records in Kafka about one pod."""

    chosen: dict[str, str | None] = field(default_factory=dict)
    """By attempt: the node that the filter chose; None where none fits."""
    picked: dict[str, set[tuple[str, str]]] = field(default_factory=lambda: defaultdict(set))
    """By attempt: node and device of every device that was picked; on nodes that were not chosen too."""
    taken: dict[str, set[str]] = field(default_factory=dict)
    """By attempt: the devices that its conclusion names."""
    bound: dict[str, str] = field(default_factory=dict)
    """By attempt that ended with the pod being bound: the node."""
    bind_errors: list[str] = field(default_factory=list)


async def read_pod_records(bootstrap_servers: str, namespace: str) -> dict[str, PodRecords]:
    """Read by pod name the records that Kafka has now about the pods of a namespace."""
    records_by_pod: dict[str, PodRecords] = defaultdict(PodRecords)
    prefix = f"default/{namespace}/".encode()
    decisions = [
        decode(record.value, record.headers)
        async for record in _iterate_records(bootstrap_servers, DECISIONS)
        # Only records with a picked device are decoded: the rest are about thousands of refused nodes.
        if record.key.startswith(prefix) and (_get_type(record) != DevicesJudged.TYPE or b'"picked"' in record.value)
    ]
    # After the decisions: the states that they refer to were written before them.
    states = {_get_id(record): record async for record in _iterate_records(bootstrap_servers, NODE_STATES)}
    for event in decisions:
        _enter(records_by_pod, event, states)
    return dict(records_by_pod)


async def _iterate_records(bootstrap_servers: str, topic: Topic) -> AsyncIterator[ConsumerRecord]:
    """Iterate over all records of a topic that are there when it is called."""
    consumer = AIOKafkaConsumer(
        topic.name, bootstrap_servers=bootstrap_servers, auto_offset_reset="earliest", group_id=None
    )
    async with consumer:
        ends: dict[Any, int] = await consumer.end_offsets(consumer.assignment())
        while any([await consumer.position(partition) < end for partition, end in ends.items()]):
            for records in (await consumer.getmany(timeout_ms=200)).values():
                for record in records:
                    yield record


def _get_type(record: ConsumerRecord) -> str:
    return _get_header(record, "ce_type")


def _get_id(record: ConsumerRecord) -> str:
    return _get_header(record, "ce_id")


def _get_header(record: ConsumerRecord, name: str) -> str:
    values = [value.decode() for key, value in record.headers if key == name]
    return str(values[0])


def _enter(
    records_by_pod: dict[str, PodRecords], event: Event | Rejected, states: Mapping[str, ConsumerRecord]
) -> None:
    match event:
        case AttemptConcluded():
            records_by_pod[event.pod.name].chosen[event.attempt_id] = event.chosen
            records_by_pod[event.pod.name].taken[event.attempt_id] = {device.uuid for device in event.picked}
        case DevicesJudged():
            rows = event.iterate_devices(lambda node, revision: _find_state(states, event, node, revision))
            picked = {(row.node, row.uuid) for row in rows if row.verdict == PICKED}
            records_by_pod[event.pod.name].picked[event.attempt_id].update(picked)
        case BindConcluded() if event.bound:
            records_by_pod[event.pod.name].bound[event.attempt_id] = event.node
        case BindConcluded():
            records_by_pod[event.pod.name].bind_errors.append(event.error)


def _find_state(
    states: Mapping[str, ConsumerRecord], event: DevicesJudged, node: str, revision: int
) -> NodeStateChanged | None:
    record = states.get(build_state_id(event.cluster, event.scheduler, node, event.epoch, revision))
    state = decode(record.value, record.headers) if record else None
    return state if isinstance(state, NodeStateChanged) else None


def list_differences(pods: list[Json], encode_parts: Mapping[str, PodRecords]) -> list[str]:
    """List where the two sources disagree about these pods; empty if each bound pod has its records."""
    placements = list_placements(pods)
    disagreements = []
    for name, placement in placements.items():
        records = encode_parts.get(name, PodRecords())
        if sorted(records.bound.values()) != [placement.node]:
            disagreements.append(f"{name} is on {placement.node}, but its records say {sorted(records.bound.values())}")
        devices = {share.device for share in placement.shares}
        picked = [
            {device for node, device in records.picked[attempt] if node == placement.node} for attempt in records.bound
        ]
        if devices not in picked:
            disagreements.append(f"{name} holds {sorted(devices)}, but its records show {picked}")
        taken = [records.taken.get(attempt, set()) for attempt in records.bound]
        if devices not in taken:
            disagreements.append(f"{name} holds {sorted(devices)}, but its conclusions name {taken}")
    waiting = {pod["metadata"]["name"] for pod in pods} - set(placements)
    return disagreements + [
        f"{name} is not bound, but its records say {encode_parts[name].bound}"
        for name in waiting
        if name in encode_parts and encode_parts[name].bound
    ]


async def wait_for_agreement(
    bootstrap_servers: str, namespace: str, pods: list[Json], timeout_seconds: float = 40
) -> dict[str, PodRecords]:
    """Return the records as soon as they agree with the API server; fail with the differences after the time."""
    deadline = time.monotonic() + timeout_seconds
    while differs := list_differences(pods, encode_parts := await read_pod_records(bootstrap_servers, namespace)):
        assert time.monotonic() < deadline, f"{len(differs)} differences:\n" + "\n".join(differs[:20])
        await asyncio.sleep(0.5)
    return encode_parts
