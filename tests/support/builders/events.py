"""Events for tests: a test names only what it is about, the rest is ordinary."""

import random
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from schemas.events import (
    AttemptRepeated,
    AttemptSummarized,
    DevicesJudged,
    NodesJudged,
    PodRef,
    Refusal,
    Request,
    TrendsCounted,
)

STARTED = datetime(2026, 11, 21, 3, 6, 23, 217054, tzinfo=UTC)
ATTEMPT: dict[str, Any] = {
    "attempt_id": "0f" * 16,
    "pod": PodRef(namespace="llm", name="deepseek-a", uid="6e1c"),
    "scheduler": "hami-scheduler",
    "started_at": STARTED,
}


def a_request(**fields: Any) -> Request:
    return Request.model_validate({"container": "worker", "vendor": "NVIDIA", "count": 2, "memory_mib": 20480} | fields)


def a_refusal(devices: int = 8, **counts: int) -> Refusal:
    return Refusal(counts=counts, devices=devices)


def a_summary(nodes: Sequence[str] = ("node1", "node2"), **fields: Any) -> AttemptSummarized:
    """All nodes refused for the first of ``refusals``, unless ``fields`` change that."""
    count = len(nodes)
    plain = {
        "version": 1,
        "status": "failed",
        "requests": [a_request()],
        "offered_nodes": count,
        "fit_nodes": 0,
        "judged_devices": 8 * count,
        "verdicts": ["refused", "fits", "picked"],
        "refusals": [a_refusal(CardInsufficientMemory=8)],
        "nodes": list(nodes),
        "verdict": [0] * count,
        "score": [0.0] * count,
        "refused_by": [0] * count,
        "refusal": [0] * count,
    }
    return AttemptSummarized.model_validate(ATTEMPT | plain | fields)


def a_repetition(**fields: Any) -> AttemptRepeated:
    """Of an attempt that began a minute earlier and was the first of its episode."""
    earlier = STARTED - timedelta(minutes=1)
    plain = {
        "version": 1,
        "status": "failed",
        "ended_at": STARTED,
        "repeats": "1e" * 16,
        "repeats_started_at": earlier,
        "episode": "1e" * 16,
        "episode_started_at": earlier,
    }
    return AttemptRepeated.model_validate(ATTEMPT | plain | fields)


def some_trends(**fields: Any) -> TrendsCounted:
    names = ("namespace", "result", "dimension", "value", "attempts", "pods", "nodes", "devices")
    plain: dict[str, Any] = {"started_at": STARTED.replace(second=0, microsecond=0), "partition": 0, "version": 1}
    return TrendsCounted.model_validate(plain | {name: [] for name in names} | fields)


def nodes_judged(nodes: Sequence[str] = ("node1",), **fields: Any) -> NodesJudged:
    count = len(nodes)
    plain = {
        "part": 0,
        "containers": ["worker"],
        "verdicts": ["refused", "fits"],
        "refusals": [a_refusal(CardInsufficientMemory=8)],
        "nodes": list(nodes),
        "node_index": list(range(count)),
        "verdict": [0] * count,
        "score": [0.0] * count,
        "refused_by": [0] * count,
        "refusal": [0] * count,
    }
    return NodesJudged.model_validate(ATTEMPT | plain | fields)


def devices_judged(nodes: Sequence[str] = ("node1",), *, each: int = 8, seed: int = 0, **fields: Any) -> DevicesJudged:
    """``each`` devices on every node with random UUIDs and random use, refused for various reasons."""
    draw = random.Random(seed)
    rows = len(nodes) * each
    plain = {
        "part": 0,
        "container": 0,
        "request": a_request(),
        "verdicts": ["CardInsufficientMemory", "CardInsufficientCore", "CardTimeSlicingExhausted", "NumaNotFit"],
        "kinds": [
            {"model": "NVIDIA A100-SXM4-80GB", "memory_mib": 81920, "cores_percent": 100, "slots": 10},
            {"model": "NVIDIA-Tesla T4", "memory_mib": 15360, "cores_percent": 100, "slots": 10},
        ],
        "nodes": list(nodes),
        "node_index": list(range(len(nodes))),
        "devices": [each] * len(nodes),
        "rows": [each] * len(nodes),
        "uuid": [f"GPU-{uuid.UUID(int=draw.getrandbits(128))}" for _ in range(rows)],
        "verdict": draw.choices(range(4), weights=[80, 10, 5, 5], k=rows),
        "kind": [draw.randrange(2)] * rows,
        "numa": [row % each // max(each // 2, 1) for row in range(rows)],
        "memory_used_mib": [1024 * draw.randrange(61, 81) for _ in range(rows)],
        "cores_used_percent": [10 * draw.randrange(11) for _ in range(rows)],
        "slots_used": [draw.randrange(11) for _ in range(rows)],
    }
    return DevicesJudged.model_validate(ATTEMPT | plain | fields)
