"""Binds, sightings and words about nodes for tests, with what a test does not name filled in; times are seconds."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from engine.summaries.placement_audit import Placed
from schemas.events import NodeChecked, NodeProblem, NodeRegistered, PodObserved, PodRef
from tests.support.builders.attempts import STARTED

SCHEDULER = "hami-scheduler"


def to_time(seconds: float) -> datetime:
    return STARTED + timedelta(seconds=seconds)


def a_pod(name: str = "trainer", uid: str | None = None) -> PodRef:
    return PodRef(namespace="ml", name=name, uid=f"uid-{name}" if uid is None else uid)


def a_placed(
    name: str = "trainer", node: str = "node1", *, started_at: float = 0, bound: float = 1, **fields: Any
) -> Placed:
    """A pod that was judged at one time and bound at another, with the first device of its node."""
    plain: dict[str, Any] = {
        "attempt_id": f"attempt-{name}-{started_at:g}",
        "pod": a_pod(name),
        "cluster": "default",
        "scheduler": SCHEDULER,
        "started_at": to_time(started_at),
        "node": node,
        "bound_at": to_time(bound),
        "devices": (f"GPU-{node}-0",),
        "vendors": frozenset({"NVIDIA"}),
    }
    return Placed(**(plain | fields))


def a_sighting(time: float, node: str = "node1", name: str = "trainer", **fields: Any) -> PodObserved:
    plain = {
        "cluster": "default",
        "pod": a_pod(name),
        "observed_at": to_time(time),
        "phase": "Running" if node else "Pending",
        "node": node,
    }
    return PodObserved(**(plain | fields))


def a_problem(code: str = "HandshakeTooOld", vendor: str = "NVIDIA", **fields: Any) -> NodeProblem:
    return NodeProblem(code=code, vendor=vendor, message=f"the message of {code}", **fields)


def a_check(time: float, *problems: NodeProblem, node: str = "node1", scheduler: str = SCHEDULER) -> NodeChecked:
    return NodeChecked(
        cluster="default", node=node, observed_at=to_time(time), scheduler=scheduler, problems=list(problems)
    )


def a_registration(
    time: float, memory_mib: Mapping[str, int], node: str = "node1", scheduler: str = SCHEDULER
) -> NodeRegistered:
    numbers = np.zeros(len(memory_mib), np.int64)
    words = [""] * len(memory_mib)
    return NodeRegistered(cluster="default",
        node=node, observed_at=to_time(time), scheduler=scheduler, registered=bool(memory_mib), uuid=list(memory_mib),
        model=words, mode=words, index=numbers, memory_mib=np.array(list(memory_mib.values()), np.int64),
        cores_percent=numbers, slots=numbers, numa=numbers, healthy=[True] * len(memory_mib),
    )  # fmt: skip
