"""Recorded ranges of time with nodes of one device, to be replayed."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import orjson

from schemas.answers.replays import RecordedNode, RecordedPod, Recording
from schemas.codec.records import encode_value
from schemas.events import DeviceKind, Request
from tests.support.builders.node_states import a_node_state

SINCE: Final = datetime(2026, 11, 20, tzinfo=UTC)
KIND: Final = DeviceKind(
    model="NVIDIA A100", vendor="NVIDIA", mode="hami-core", memory_mib=10_000, cores_percent=100, slots=10
)


def add_hours(hours: float) -> datetime:
    return SINCE + timedelta(hours=hours)


def a_node(name: str, hours: float = 0) -> RecordedNode:
    """Build a node with one device of 10,000 MiB and 10 slots."""
    state = a_node_state(name, 1, kinds=[KIND], observed_at=add_hours(hours))
    return RecordedNode(since=add_hours(hours), state=orjson.loads(encode_value(state)))


def a_pod(name: str, comes: float, starts: float | None, ends: float | None, **more: Any) -> RecordedPod:
    """Build a pod by the hours at which it came, was bound and left; it asks for one device with 6,000 MiB."""
    request = Request(container="main", vendor="NVIDIA", count=1, memory_mib=more.pop("memory", 6_000))
    plain = {
        "namespace": "llm", "name": name, "uid": f"uid-{name}", "workload": "", "priority": 0, "node": "n1",
        "waits_since": add_hours(comes), "bound_at": None if starts is None else add_hours(starts),
        "left_at": None if ends is None else add_hours(ends), "allocations": [], "constraints": {}, "node_policy": "",
        "device_policy": "", "offered": 0,
        "requests": [request],
    }  # fmt: skip
    return RecordedPod.model_validate(plain | more)


def record(nodes: Sequence[RecordedNode], pods: Sequence[RecordedPod], offers: Sequence[list[str]]) -> Recording:
    """Record twelve hours."""
    return Recording(
        cluster="main", since=SINCE, until=add_hours(12), nodes=list(nodes), offers=list(offers), pods=list(pods)
    )  # fmt: skip


ONE_AFTER_THE_OTHER = record(
    [a_node("n1")],
    [a_pod("a", 0, 0, 2), a_pod("b", 0.5, 2, 5), a_pod("c", 1, 5, 6)],
    [["n1"]],
)
"""6,000 of 10,000 MiB fit once: b waits for the end of a, and c for that of b, which comes 3 h after its start."""
