"""Events for tests: a test names only what it is about, the rest is ordinary."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from schemas.events import (
    AttemptCounted,
    AttemptRepeated,
    AttemptSummarized,
    AttemptUnchanged,
    Contribution,
    DevicesJudged,
    NodesJudged,
    ObjectProblem,
    Owner,
    PodDescription,
    PodHistoryChanged,
    PodRef,
    PublishedAttempt,
    Refusal,
    Report,
    Request,
    SchedulerObserved,
    TrendsCounted,
    WorkloadObserved,
)
from tests.support.builders.node_states import A100, EPOCH, REVISION

STARTED = datetime(2026, 11, 21, 3, 6, 23, 217054, tzinfo=UTC)
ATTEMPT: dict[str, Any] = {
    "attempt_id": "0f" * 16,
    "pod": PodRef(namespace="llm", name="deepseek-a", uid="6e1c"),
    "cluster": "default",
    "scheduler": "hami-scheduler",
    "started_at": STARTED,
}


def a_request(**fields: Any) -> Request:
    return Request.model_validate({"container": "worker", "vendor": "NVIDIA", "count": 2, "memory_mib": 20480} | fields)


def a_refusal(devices: int = 8, **counts: int) -> Refusal:
    return Refusal(counts=counts, devices=devices)


def a_report(**fields: Any) -> Report:
    """A report of the scheduler itself."""
    plain = {"source": "scheduler", "attempt_id": ATTEMPT["attempt_id"], "started_at": STARTED, "ended_at": STARTED}
    return Report.model_validate(plain | fields)


OF_A_JOB: Final = PodDescription(owners=[Owner(kind="Job", name="train")])
"""Description of a pod of ``Job/train``."""


def a_summary(nodes: Sequence[str] = ("node1", "node2"), **fields: Any) -> AttemptSummarized:
    """All nodes refused for the first of ``refusals``, unless ``fields`` change that."""
    count = len(nodes)
    plain = {
        "version": 1,
        "status": "failed",
        "requests": [a_request()],
        "offered_nodes": count,
        "fit_nodes": 0,
        "reports": [a_report()],
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


def an_unchanged_attempt(**fields: Any) -> AttemptUnchanged:
    """The end of an attempt that ended as one a minute earlier."""
    plain = {"ended_at": STARTED, "repeats": "1e" * 16, "repeats_started_at": STARTED - timedelta(minutes=1)}
    return AttemptUnchanged.model_validate(ATTEMPT | plain | fields)


def a_repetition(**fields: Any) -> AttemptRepeated:
    """A repetition of an attempt that began a minute earlier and was the first of its episode."""
    earlier = STARTED - timedelta(minutes=1)
    plain = {
        "version": 1,
        "status": "failed",
        "ended_at": STARTED,
        "repeats": "1e" * 16,
        "repeats_started_at": earlier,
        "episode": "1e" * 16,
        "episode_started_at": earlier,
        "reports": [a_report()],
        "offered_nodes": 2,
        "fit_nodes": 0,
        "judged_devices": 16,
        "reasons": ["CardInsufficientMemory"],
        "text": "no available node, 2 nodes do not meet",
    }
    return AttemptRepeated.model_validate(ATTEMPT | plain | fields)


def build_trends(**fields: Any) -> TrendsCounted:
    names = ("namespace", "result", "dimension", "value", "attempts", "pods", "nodes", "devices")
    minute = STARTED.replace(second=0, microsecond=0)
    plain: dict[str, Any] = {"started_at": minute, "partition": 0, "recorded_at": minute, "version": 1}
    plain["cluster"] = "default"
    return TrendsCounted.model_validate(plain | {name: [] for name in names} | fields)


def a_contribution(**fields: Any) -> Contribution:
    """A contribution of an attempt on two nodes of eight devices, all refused."""
    plain = {
        "version": 1,
        "status": "failed",
        "dimension": ["all", "reason"],
        "value": ["", "CardInsufficientMemory"],
        "nodes": [2, 2],
        "devices": [16, 16],
    }
    return Contribution.model_validate(plain | fields)


def an_attempt_counted(**fields: Any) -> AttemptCounted:
    return AttemptCounted.model_validate(ATTEMPT | {"recorded_at": STARTED, "adds": a_contribution()} | fields)


def a_published_attempt(**fields: Any) -> PublishedAttempt:
    """The first of its episode, published as a whole."""
    plain = {
        "attempt_id": ATTEMPT["attempt_id"],
        "pod_uid": ATTEMPT["pod"].uid,
        "started_at": STARTED,
        "version": 1,
        "status": "failed",
        "is_refused": True,
        "reports": [{"source": "scheduler", "attempt_id": ATTEMPT["attempt_id"], "version": 1, "started_at": STARTED}],
        "first_judged_at": STARTED,
        "verdict_digest": "0a" * 16,
        "detail_digest": "0b" * 16,
        "episode": ATTEMPT["attempt_id"],
        "episode_started_at": STARTED,
        "may_get_more": False,
        "whole": {"attempt_id": ATTEMPT["attempt_id"], "started_at": STARTED, "partition": 3, "offsets": [7]},
    }
    return PublishedAttempt.model_validate(plain | fields)


def a_pod_history(**fields: Any) -> PodHistoryChanged:
    plain = {
        "pod": ATTEMPT["pod"],
        "cluster": "default",
        "scheduler": ATTEMPT["scheduler"],
        "published_until": 41,
        "attempts": [a_published_attempt()],
    }
    return PodHistoryChanged.model_validate(plain | fields)


def a_workload_observed(**fields: Any) -> WorkloadObserved:
    """A Job that a quota keeps from making its pods."""
    problem = ObjectProblem(reason="FailedCreate", message="exceeded quota", at=STARTED, reported_by="job-controller")
    plain = {"cluster": "default", "namespace": "llm", "workload": Owner(kind="Job", name="train")}
    return WorkloadObserved.model_validate(plain | {"observed_at": STARTED, "problem": problem} | fields)


def a_scheduler_observed(**fields: Any) -> SchedulerObserved:
    plain = {"cluster": "default", "scheduler": "hami-scheduler", "observed_at": STARTED, "settings_digest": "0a" * 8}
    return SchedulerObserved.model_validate(plain | fields)


def build_nodes_judged(nodes: Sequence[str] = ("node1",), **fields: Any) -> NodesJudged:
    count = len(nodes)
    plain = {
        "part": 0,
        "containers": ["worker"],
        "verdicts": ["refused", "fits"],
        "refusals": [a_refusal(CardInsufficientMemory=8)],
        "nodes": list(nodes),
        "verdict": [0] * count,
        "score": [0.0] * count,
        "refused_by": [0] * count,
        "refusal": [0] * count,
    }
    return NodesJudged.model_validate(ATTEMPT | plain | fields)


def build_devices_judged(
    nodes: Sequence[str] = ("node1",), *, per_node: int = 8, seed: int = 0, **fields: Any
) -> DevicesJudged:
    """Build ``per_node`` devices a node, refused for various reasons; ``build_states`` makes their states."""
    draw = random.Random(seed)
    rows = len(nodes) * per_node
    plain = {
        "part": 0,
        "container": 0,
        "request": a_request(),
        "epoch": EPOCH,
        "models": {A100.model: rows} if rows else {},
        "verdicts": ["CardInsufficientMemory", "CardInsufficientCore", "CardTimeSlicingExhausted", "NumaNotFit"],
        "nodes": list(nodes),
        "revision": [REVISION] * len(nodes),
        "devices": [per_node] * len(nodes),
        "rows": [per_node] * len(nodes),
        "verdict": draw.choices(range(4), weights=[80, 10, 5, 5], k=rows),
    }
    return DevicesJudged.model_validate(ATTEMPT | plain | fields)
