"""CPU of a recorded week that is replayed: as many pods come and leave as a cluster of 100 nodes has room for."""

import random
import time
from datetime import UTC, datetime, timedelta
from typing import Final

import orjson

from dev.bench.report import Figure, Result
from engine.capacity.replay import NO_CHANGE, ReplayChange, replay_range
from engine.fit import device_config
from engine.fit.devices.as_of import rebuild_columns
from engine.fit.judge.decide import decide_requests
from engine.fit.judge.decision import SchedulingPolicy
from engine.suggestions.ask import Ask
from schemas.answers.replays import RecordedNode, RecordedPod, Recording
from schemas.codec.records import encode_value
from schemas.events import NodeStateChanged, PodRef, Request

NODES: Final = 100
DEVICES: Final = 8
PODS: Final = 10_000
SINCE: Final = datetime(2026, 11, 20, tzinfo=UTC)
WEEK: Final = timedelta(days=7)
MEAN_HOLD: Final = timedelta(hours=5.5)
"""With 3 devices a pod, more than 100 nodes have."""
POLICY: Final = SchedulingPolicy()


def measure_replay() -> Result:
    """Measure a replay as it was and one under another policy, next to as many decisions alone."""
    states = [_build_state(f"node-{number}") for number in range(NODES)]
    recording, vendors = _record(states), device_config.read_shipped()
    seconds, decisions, waits = [], [], []
    for change in (NO_CHANGE, ReplayChange(node_policy="spread")):
        started = time.process_time()
        replayed = replay_range(recording, change, vendors)
        seconds.append(time.process_time() - started)
        decisions.append(replayed.decisions)
        waits.append(sum(times.waited > 0 for times in replayed.pods.values()))
    columns = rebuild_columns(states, vendors)
    asks = [
        Ask.from_attempt(PodRef(namespace=pod.namespace, name=pod.name, uid=pod.uid), pod.requests, {}, vendors)
        for pod in recording.pods
    ]
    started = time.process_time()
    for ask in asks:
        decide_requests(columns, ask.requests, ask.metadata, columns.node_names, POLICY)
    alone = time.process_time() - started
    return Result(
        "replay",
        "A week of pods replayed as it was and under another policy, next to one decision for each pod alone",
        f"{NODES} nodes of {DEVICES} devices, {PODS:,} pods; goal: 60 s for 10,000 attempts",
        (
            Figure(f"{PODS:,} decisions alone", round(alone, 2), "CPU s"),
            *(
                Figure(
                    name, round(value, 2), "CPU s", round(value / alone, 2), f"{number:,} decisions, {waiting:,} waited"
                )
                for name, value, number, waiting in zip(
                    ("replayed as it was", "replayed with spread"), seconds, decisions, waits, strict=True
                )
            ),
        ),
    )


def _build_state(node: str) -> NodeStateChanged:
    """Build a node of eight A100, of which nothing is in use."""
    kind = {"model": "NVIDIA A100", "vendor": "NVIDIA", "mode": "hami-core"}
    amounts = {"memory_mib": 81_920, "cores_percent": 100, "slots": 10}
    zeros = [0] * DEVICES
    return NodeStateChanged.model_validate(
        {
            "node": node, "observed_at": SINCE, "cluster": "bench", "scheduler": "hami-scheduler", "epoch": 1,
            "revision": 1, "kinds": [kind | amounts], "uuid": [f"GPU-{node}-{index}" for index in range(DEVICES)],
            "kind": zeros, "index": list(range(DEVICES)), "numa": zeros, "healthy": [True] * DEVICES,
            "cordoned": [False] * DEVICES, "memory_used_mib": zeros, "cores_used_percent": zeros, "slots_used": zeros,
        }
    )  # fmt: skip


def _record(states: list[NodeStateChanged]) -> Recording:
    draw = random.Random(7)
    pods = [_draw_pod(draw, number) for number in range(PODS)]
    return Recording(
        cluster="bench",
        since=SINCE,
        until=SINCE + WEEK,
        nodes=[RecordedNode(since=SINCE, state=orjson.loads(encode_value(state))) for state in states],
        offers=[[state.node for state in states]],
        pods=sorted(pods, key=lambda pod: pod.waits_since),
    )


def _draw_pod(draw: random.Random, number: int) -> RecordedPod:
    comes = SINCE + WEEK * draw.random()
    request = Request(
        container="main",
        vendor="NVIDIA",
        count=draw.choice((1, 1, 2, 2, 4, 8)),
        memory_mib=draw.choice((20_000, 80_000)),
    )
    return RecordedPod(
        namespace=f"team-{number % 20}",
        name=f"pod-{number}",
        uid=f"uid-{number}",
        workload=f"Job/job-{number // 8}",
        priority=draw.choice((0, 0, 0, 10)),
        waits_since=comes,
        bound_at=comes,
        left_at=comes + MEAN_HOLD * draw.expovariate(1),
        node=f"node-{number % NODES}",
        allocations=[],
        requests=[request],
        constraints={},
        node_policy="binpack",
        device_policy="spread",
        offered=0,
    )
