"""Objectives, and their rules for Prometheus. Pure.

An alert fires when the error budget of thirty days is used up too fast, over a long window and over a short one, as in
the workbook of Google's site reliability engineers: the long one keeps a brief disturbance from paging anybody, the
short one ends the alert soon after its cause.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import yaml

from schemas.json_types import Json

RUNBOOK: Final = "docs/runbooks.md#"
"""Page of this repository; runbooks.yaml of deploy/kustomize and the chart put an address before the section."""
_HEAD: Final = (
    "# Written by `make generate` from deploy/dashboards/slo.py; change it there.\n"
    "# docs/runbooks.md explains each objective, and what to do when one is missed.\n"
)


@dataclass(frozen=True, slots=True)
class Objective:
    name: str
    alert: str
    failure: str
    """Failure in words, for the summary of the alert."""
    target: float
    """Share of good events."""
    errors: str
    """Share of bad events in the window ``WINDOW``, in PromQL."""


@dataclass(frozen=True, slots=True)
class Burn:
    """Limit of the speed at which errors use up the budget: ``rate`` times as fast as it would last thirty days."""

    rate: float
    long: str
    short: str
    severity: str


def _write_late_share(seconds: str, histogram: str, labels: str = "") -> str:
    """Write the share of observations above a bucket's bound."""
    selector = f"{{{labels}}}" if labels else ""
    within = f'sum(rate({histogram}_bucket{{{labels}{"," if labels else ""}le="{seconds}"}}[WINDOW]))'
    return f"1 - {within} / sum(rate({histogram}_count{selector}[WINDOW]))"


_FAILED: Final = ',status=~"5.."'


def _write_answer_rate(status: str = "") -> str:
    # Probes and scrapes are not people's requests, and readiness answers 503 by design.
    routes = 'route!~"/healthz|/readyz|/metrics"'
    return f"sum(rate(schedulerlog_api_requests_total{{{routes}{status}}}[WINDOW]))"


OBJECTIVES: Final = (
    Objective(
        "decision_to_api",
        "DecisionsReachApiLate",
        "decisions reach the API later than 5 s",
        0.999,
        # Only of a scheduler that publishes its decisions itself: a log may be read long after it was written.
        _write_late_share("5.0", "schedulerlog_api_decision_delay_seconds", 'source="scheduler"'),
    ),
    Objective(
        "accepted_to_visible",
        "AttemptsVisibleLate",
        "attempts that Kafka has are in OpenSearch later than 10 s",
        0.99,
        _write_late_share("10.0", "schedulerlog_index_attempt_delay_seconds"),
    ),
    Objective(
        "api_availability",
        "ApiFails",
        "requests to the API are answered with a status of 500 or above",
        0.999,
        # Without any failed request there is no series of such a status.
        f"({_write_answer_rate(_FAILED)} or vector(0)) / {_write_answer_rate()}",
    ),
)
BURNS: Final = (
    # 2 % of the budget within an hour, 5 % within six, 10 % within a day, 10 % within three.
    Burn(14.4, "1h", "5m", "critical"),
    Burn(6, "6h", "30m", "critical"),
    Burn(3, "1d", "2h", "warning"),
    Burn(1, "3d", "6h", "warning"),
)
WINDOWS: Final = ("5m", "30m", "1h", "2h", "6h", "1d", "3d")


def name_series(objective: Objective, window: str) -> str:
    """Name the recorded series of the budget's burn rate: at 1 the budget lasts for exactly thirty days."""
    return f"slo:schedulerlog_{objective.name}:burn_rate{window}"


def build_rules() -> Json:
    """Build a PrometheusRule of the Prometheus operator."""
    labels = {"app.kubernetes.io/name": "schedulerlog", "app.kubernetes.io/part-of": "schedulerlog"}
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "schedulerlog-slo", "namespace": "schedulerlog", "labels": labels},
        "spec": {"groups": [_build_group(objective) for objective in OBJECTIVES]},
    }


def write_rules() -> str:
    return _HEAD + yaml.safe_dump(build_rules(), sort_keys=False, width=1000)


def _build_group(objective: Objective) -> Json:
    return {
        "name": f"schedulerlog-slo-{objective.name}",
        "rules": [*_iterate_recording_rules(objective), *_iterate_alerts(objective)],
    }


def _iterate_recording_rules(objective: Objective) -> Iterator[Json]:
    budget = round(1 - objective.target, 6)
    for window in WINDOWS:
        errors = objective.errors.replace("WINDOW", window)
        yield {"record": name_series(objective, window), "expr": f"({errors}) / {budget}"}


def _write_condition(objective: Objective, burn: Burn) -> str:
    long, short = name_series(objective, burn.long), name_series(objective, burn.short)
    return f"({long} > {burn.rate:g} and {short} > {burn.rate:g})"


def _iterate_alerts(objective: Objective) -> Iterator[Json]:
    for severity in ("critical", "warning"):
        burns = [_write_condition(objective, burn) for burn in BURNS if burn.severity == severity]
        share = f"{objective.target:.1%}".replace(".0%", "%")
        summary = (
            f"Too many {objective.failure}: the budget of thirty days ({share} good) is used up "
            "{{ $value | humanize }} times too fast."
        )
        yield {
            "alert": objective.alert,
            "expr": " or ".join(burns),
            "labels": {"severity": severity},
            "annotations": {"summary": summary, "runbook_url": RUNBOOK + objective.alert.lower()},
        }
