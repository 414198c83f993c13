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
    MessageEmitted,
    NodeChecked,
    NodeProblem,
    PodRef,
)

BEGAN = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
TRAINER = PodRef(namespace="ml", name="trainer", uid="uid-1")


def at(minute: float) -> datetime:
    return BEGAN + timedelta(minutes=minute)


def minute(moment: datetime) -> float:
    return (moment - BEGAN) / timedelta(minutes=1)


def rules(folder: Path, *lines: str) -> list[Rule]:
    """One rule called R of these lines."""
    text = "rules:\n  - name: R\n" + "".join(f"    {line}\n" for line in lines)
    path = folder / "rules.yaml"
    path.write_text(text)
    return load(path)


def a_message(time: float, code: str = "NumaNotFit", pod: PodRef = TRAINER, **fields: Any) -> MessageEmitted:
    common = {
        "cluster": "default",
        "scheduler": "hami-scheduler",
        "severity": "Warning",
        "reason": "FilteringFailed",
        "message": "…",
    }
    own = {"attempt_id": f"a{time}", "pod": pod, "code": code, "started_at": at(time), "reported_at": at(time)}
    return MessageEmitted.model_validate(common | own | fields)


def a_refusal(time: float, *codes: str, pod: PodRef = TRAINER) -> list[MessageEmitted]:
    """The messages of an attempt that found no node."""
    return [a_message(time, code, pod) for code in (*(codes or ("NumaNotFit",)), "")]


def a_success(time: float, reason: str = "FilteringSucceed", pod: PodRef = TRAINER) -> MessageEmitted:
    return a_message(time, "", pod, severity="Normal", reason=reason)


def a_bind(time: float, node: str = "node1", error: str = "") -> BindConcluded:
    moments = {"started_at": at(time), "bind_started_at": at(time), "ended_at": at(time)}
    common = {
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
        cluster="default", node=node, observed_at=at(time), scheduler="hami-scheduler", problems=problems
    )


def a_finding(time: float, finding: str = "Overcommitted", node: str = "node1") -> FindingReported:
    common = {
        "cluster": "default",
        "attempt_id": f"f{time}",
        "pod": TRAINER,
        "scheduler": "hami-scheduler",
        "started_at": at(time),
    }
    return FindingReported.model_validate(common | {"finding": finding, "found_at": at(time), "node": node})


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
    """All alerts of a timeline from minute ``start`` to ``until``."""
    state, timeline = AlertState(rules, published, at(published_until)), Timeline(at(start))
    for number, (time, event) in enumerate(inputs):
        timeline.put(at(time), ("topic", 0, number), [event])
    alerts: list[AlertChanged] = []
    for step in timeline.advance(at(until)):
        if isinstance(step, datetime):
            alerts += state.tick(step)
        else:
            state.observe(step)
    return alerts


def shown(alerts: Iterable[AlertChanged]) -> list[ShownAlert]:
    return [(alert.state, minute(alert.changed_at), alert.labels) for alert in alerts]
