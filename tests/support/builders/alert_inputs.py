"""Inputs of alert rules by the minute, and the alerts that follow from them."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pipeline.alerts.inputs import AlertInput
from pipeline.alerts.rules import Rule, load
from pipeline.alerts.state import AlertState
from pipeline.alerts.timeline import Timeline
from schemas.events import (
    AlertChanged,
    BindConcluded,
    FindingReported,
    NodeChecked,
    NodeProblem,
    PodMessage,
    PodRef,
)

BEGAN = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
TRAINER = PodRef(namespace="ml", name="trainer", uid="uid-1")


def to_time(minute: float) -> datetime:
    return BEGAN + timedelta(minutes=minute)


def to_minute(moment: datetime) -> float:
    return (moment - BEGAN) / timedelta(minutes=1)


def load_rules(folder: Path, *lines: str) -> list[Rule]:
    """Write and load one rule called R of these lines."""
    text = "rules:\n  - name: R\n" + "".join(f"    {line}\n" for line in lines)
    path = folder / "rules.yaml"
    path.write_text(text)
    return load(path)


def a_message(time: float, code: str = "NumaNotFit", pod: PodRef = TRAINER, **fields: Any) -> PodMessage:
    common: dict[str, Any] = {
        "cluster": "default",
        "scheduler": "hami-scheduler",
        "severity": "Warning",
        "reason": "FilteringFailed",
        "message": "…",
        "workload": "",
    }
    fields_of_attempt = {
        "attempt_id": f"a{time}",
        "pod": pod,
        "code": code,
        "reported_at": to_time(time),
    }
    return PodMessage(**(common | fields_of_attempt | fields))


def a_refusal(time: float, *codes: str, pod: PodRef = TRAINER) -> list[PodMessage]:
    """The messages of an attempt that found no node."""
    return [a_message(time, code, pod) for code in (*(codes or ("NumaNotFit",)), "")]


def a_success(time: float, reason: str = "FilteringSucceed", pod: PodRef = TRAINER) -> PodMessage:
    return a_message(time, "", pod, severity="Normal", reason=reason)


def a_bind(time: float, node: str = "node1", error: str = "") -> BindConcluded:
    moments = {"started_at": to_time(time), "bind_started_at": to_time(time), "ended_at": to_time(time)}
    common: dict[str, Any] = {
        "cluster": "default",
        "attempt_id": f"b{time}",
        "pod": TRAINER,
        "scheduler": "hami-scheduler",
        "node": node,
    }
    return BindConcluded.model_validate(common | moments | {"bound": not error, "error": error})


def a_check(time: float, *codes: str, node: str = "node1") -> NodeChecked:
    problems = [NodeProblem(code=code, message=f"found {code}") for code in codes]
    return NodeChecked(
        cluster="default", node=node, observed_at=to_time(time), scheduler="hami-scheduler", problems=problems
    )


def a_finding(time: float, finding: str = "Overcommitted", node: str = "node1") -> FindingReported:
    common: dict[str, Any] = {
        "cluster": "default",
        "attempt_id": f"f{time}",
        "pod": TRAINER,
        "scheduler": "hami-scheduler",
        "started_at": to_time(time),
    }
    return FindingReported.model_validate(common | {"finding": finding, "found_at": to_time(time), "node": node})


ShownAlert = tuple[str, float, dict[str, str]]
"""State, minute, labels."""


def run(
    rules: Sequence[Rule],
    inputs: Iterable[tuple[float, AlertInput]],
    until: float,
    *,
    published: Sequence[AlertChanged] = (),
    published_until: float = -10_000,
    start: float = 0,
) -> list[AlertChanged]:
    """Return all alerts of a timeline from minute ``start`` to ``until``."""
    state, timeline = AlertState(rules, published, to_time(published_until)), Timeline(to_time(start))
    for number, (time, event) in enumerate(inputs):
        timeline.put(to_time(time), ("topic", 0, number), [event])
    alerts: list[AlertChanged] = []
    for step in timeline.advance(to_time(until)):
        if isinstance(step, datetime):
            alerts += state.tick(step)
        else:
            state.observe(step)
    return alerts


def list_shown(alerts: Iterable[AlertChanged]) -> list[ShownAlert]:
    return [(alert.state, to_minute(alert.changed_at), alert.labels) for alert in alerts]
