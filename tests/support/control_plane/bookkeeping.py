"""Two books of what was placed where: what the API server shows, and what the records in Kafka tell.

Each is read by rules of its own, so that they can be held against each other. Nothing of the scheduler is used here.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRecord

from schemas.codec.records import Rejected, decode
from schemas.events import AttemptConcluded, BindConcluded, DevicesJudged
from schemas.events.base import PICKED, Event
from schemas.topics import DECISIONS
from tests.support.control_plane.objects import (
    ALLOCATED,
    CARD_CORES,
    CARD_MEMORY_MIB,
    CARD_SLOTS,
    CHOSEN,
    Json,
    annotations_of,
)


@dataclass(frozen=True, slots=True, order=True)
class Share:
    """What one container holds of one card."""

    card: str
    memory_mib: int
    cores_percent: int


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a pod went and what it holds there."""

    node: str
    shares: tuple[Share, ...]


def shares_in(annotation: str) -> tuple[Share, ...]:
    """``GPU-a,NVIDIA,20480,20:GPU-b,NVIDIA,20480,20:;``: cards end with a colon, containers with a semicolon."""
    words = [device.split(",") for slot in annotation.split(";") for device in slot.split(":") if device]
    return tuple(sorted(Share(uuid, int(memory), int(cores)) for uuid, _, memory, cores in words))


def shown(pods: Iterable[Json]) -> dict[str, Placement]:
    """By pod name, what the API server says of the pods that are bound."""
    bound = [pod for pod in pods if pod["spec"].get("nodeName")]
    return {
        pod["metadata"]["name"]: Placement(pod["spec"]["nodeName"], shares_in(annotations_of(pod).get(ALLOCATED, "")))
        for pod in bound
    }


def astray(pods: Iterable[Json]) -> list[str]:
    """Bound pods whose devices are those of another node than the one that they are on."""
    bound = [pod for pod in pods if pod["spec"].get("nodeName")]
    return [pod["metadata"]["name"] for pod in bound if annotations_of(pod).get(CHOSEN) != pod["spec"]["nodeName"]]


def overbooked(placements: Iterable[Placement]) -> dict[str, str]:
    """By card, what it holds more than it has; a card is as the tests' nodes register it."""
    held: dict[str, list[Share]] = defaultdict(list)
    for placement in placements:
        for share in placement.shares:
            held[share.card].append(share)
    sums = {
        card: (sum(s.memory_mib for s in shares), sum(s.cores_percent for s in shares), len(shares))
        for card, shares in held.items()
    }
    room = (CARD_MEMORY_MIB, CARD_CORES, CARD_SLOTS)
    return {
        card: f"{used} of {room}" for card, used in sums.items() if any(u > r for u, r in zip(used, room, strict=True))
    }


@dataclass(slots=True)
class Told:
    """What Kafka says about one pod."""

    chosen: dict[str, str | None] = field(default_factory=dict)
    """By attempt: the node that the filter chose; None where none fits."""
    picked: dict[str, set[tuple[str, str]]] = field(default_factory=lambda: defaultdict(set))
    """By attempt: node and card of every device that was picked; on nodes that were not chosen too."""
    bound: dict[str, str] = field(default_factory=dict)
    """By attempt that ended with the pod being bound: the node."""
    bind_errors: list[str] = field(default_factory=list)


async def told(bootstrap_servers: str, namespace: str) -> dict[str, Told]:
    """By pod name, what Kafka holds by now about the pods of a namespace."""
    found: dict[str, Told] = defaultdict(Told)
    prefix = f"{namespace}/".encode()
    async for record in _records(bootstrap_servers):
        # Only records that say which device was taken are read as a whole: thousands of nodes were judged in the rest.
        if record.key.startswith(prefix) and (_type_of(record) != DevicesJudged.TYPE or b'"picked"' in record.value):
            _enter(found, decode(record.value, record.headers))
    return dict(found)


async def _records(bootstrap_servers: str) -> AsyncIterator[ConsumerRecord]:
    """All decisions that are there when it is called."""
    consumer = AIOKafkaConsumer(
        DECISIONS.name, bootstrap_servers=bootstrap_servers, auto_offset_reset="earliest", group_id=None
    )
    async with consumer:
        ends: dict[Any, int] = await consumer.end_offsets(consumer.assignment())
        while any([await consumer.position(partition) < end for partition, end in ends.items()]):
            for records in (await consumer.getmany(timeout_ms=200)).values():
                for record in records:
                    yield record


def _type_of(record: ConsumerRecord) -> str:
    types = [value.decode() for key, value in record.headers if key == "ce_type"]
    return str(types[0])


def _enter(found: dict[str, Told], event: Event | Rejected) -> None:
    match event:
        case AttemptConcluded():
            found[event.pod.name].chosen[event.attempt_id] = event.chosen
        case DevicesJudged():
            rows = ((row.node, row.uuid) for row in event.each_device() if row.verdict == PICKED)
            found[event.pod.name].picked[event.attempt_id].update(rows)
        case BindConcluded() if event.bound:
            found[event.pod.name].bound[event.attempt_id] = event.node
        case BindConcluded():
            found[event.pod.name].bind_errors.append(event.error)


def differences(pods: list[Json], books: Mapping[str, Told]) -> list[str]:
    """Where the two books disagree about these pods; none when each bound pod is told with its node and its cards."""
    placements = shown(pods)
    found = []
    for name, placement in placements.items():
        book = books.get(name, Told())
        if sorted(book.bound.values()) != [placement.node]:
            found.append(f"{name} is on {placement.node}, told to be bound to {sorted(book.bound.values())}")
        cards = {share.card for share in placement.shares}
        picked = [{card for node, card in book.picked[attempt] if node == placement.node} for attempt in book.bound]
        if cards not in picked:
            found.append(f"{name} holds {sorted(cards)}, told {picked}")
    waiting = {pod["metadata"]["name"] for pod in pods} - set(placements)
    return found + [
        f"{name} is not bound, told to be on {books[name].bound}"
        for name in waiting
        if name in books and books[name].bound
    ]


async def agreed(
    bootstrap_servers: str, namespace: str, pods: list[Json], timeout_seconds: float = 40
) -> dict[str, Told]:
    """Kafka's book as soon as it agrees with what the API server shows; fails with the differences after the time."""
    deadline = time.monotonic() + timeout_seconds
    while differs := differences(pods, books := await told(bootstrap_servers, namespace)):
        assert time.monotonic() < deadline, f"{len(differs)} differences:\n" + "\n".join(differs[:20])
        await asyncio.sleep(0.5)
    return books
