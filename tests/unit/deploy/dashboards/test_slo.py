"""Objectives: the rules parse, ask for metrics that there are, and come to the numbers worked out by hand."""

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.dashboards.slo import OBJECTIVES, build_rules, write_rules
from tests.support.metrics_page import read_labels
from tests.support.promql import Numbers, evaluate, list_selected, parse

Rule = dict[str, Any]

RULES: list[Rule] = [rule for group in build_rules()["spec"]["groups"] for rule in group["rules"]]
RECORDED = {rule["record"]: rule["expr"] for rule in RULES if "record" in rule}
ALERTS = [rule for rule in RULES if "alert" in rule]
DELAY = "schedulerlog_api_decision_delay_seconds"


def burn(name: str, *rates: tuple[str, dict[str, str], float]) -> float | None:
    """Evaluate the burn rate of an hour."""
    return evaluate(RECORDED[f"slo:schedulerlog_{name}:burn_rate1h"], Numbers(rates=rates))


def build_delays(all_of_them: float, within_5_s: float, source: str = "scheduler") -> list[Any]:
    return [
        (f"{DELAY}_count", {"source": source}, all_of_them),
        (f"{DELAY}_bucket", {"source": source, "le": "2.5"}, within_5_s / 2),
        (f"{DELAY}_bucket", {"source": source, "le": "5.0"}, within_5_s),
        (f"{DELAY}_bucket", {"source": source, "le": "+Inf"}, all_of_them),
    ]


def test_the_rules_are_yaml_of_a_prometheus_rule() -> None:
    manifest = yaml.safe_load(write_rules())
    assert (manifest["apiVersion"], manifest["kind"]) == ("monitoring.coreos.com/v1", "PrometheusRule")
    assert json.loads(json.dumps(manifest)) == json.loads(json.dumps(build_rules()))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.get("record") or rule["alert"])
def test_a_rule_parses_and_asks_for_series_that_there_are(rule: Rule) -> None:
    labels = read_labels()
    for series in list_selected(parse(rule["expr"])):
        if series.name in RECORDED:
            assert not series.labels
        else:
            assert series.labels <= labels[series.name], series


def test_each_objective_has_a_rule_for_every_window_that_an_alert_asks_for() -> None:
    selected = {series.name for alert in ALERTS for series in list_selected(parse(alert["expr"]))}
    assert selected == set(RECORDED)


@pytest.mark.parametrize("expression", RECORDED.values(), ids=RECORDED)
def test_the_bound_of_an_objective_is_a_bucket_of_its_histogram(expression: str) -> None:
    for name, bound in re.findall(r'(\w+)_bucket\{[^}]*le="([^"]+)"', expression):
        module = {"schedulerlog_api": "api/metrics.py", "schedulerlog_index": "pipeline/metrics.py"}
        source = Path(module["_".join(name.split("_")[:2])]).read_text()
        (buckets,) = re.findall(r"^_DELAY_BUCKETS_SECONDS: Final = \((.*)\)$", source, re.MULTILINE)
        assert bound in [bucket.strip() for bucket in buckets.split(",")]


# 1,000 decisions a second, of which 2 are late: twice the 1 in 1,000 that may be.
def test_two_late_decisions_in_a_thousand_use_up_the_budget_twice_as_fast_as_it_lasts() -> None:
    assert burn("decision_to_api", *build_delays(1000, 998)) == pytest.approx(2)


def test_decisions_that_were_read_from_a_log_do_not_count() -> None:
    read = build_delays(500, 0, source="hami-log")
    assert burn("decision_to_api", *build_delays(1000, 998), *read) == pytest.approx(2)


def test_three_late_documents_in_a_hundred_use_up_the_budget_three_times_as_fast() -> None:
    name = "schedulerlog_index_attempt_delay_seconds"
    accepted, visible = (f"{name}_count", dict[str, str](), 100.0), (f"{name}_bucket", {"le": "10.0"}, 97.0)
    assert burn("accepted_to_visible", accepted, visible) == pytest.approx(3)


def an_answer_rate(route: str, status: str, rate: float) -> tuple[str, dict[str, str], float]:
    return "schedulerlog_api_requests_total", {"route": route, "status": status}, rate


def test_statuses_of_500_and_above_count_as_failures_and_those_of_callers_do_not() -> None:
    burn_rate = burn(
        "api_availability",
        an_answer_rate("/p", "200", 97),
        an_answer_rate("/p", "404", 2),
        an_answer_rate("/p", "503", 1),
    )
    assert burn_rate == pytest.approx(10)  # 1 in 100, where 1 in 1,000 may fail


def test_probes_do_not_count() -> None:
    assert burn("api_availability", an_answer_rate("/p", "200", 100), an_answer_rate("/readyz", "503", 100)) == 0


def test_without_a_failure_there_is_a_value_and_it_is_zero() -> None:
    assert burn("api_availability", an_answer_rate("/p", "200", 100)) == 0


def test_without_any_decision_there_is_no_value_to_compare() -> None:
    assert math.isnan(burn("decision_to_api", *build_delays(0, 0)) or 0.0)
    assert burn("decision_to_api") is None


def is_firing(objective: str, severity: str, **burns: float) -> bool:
    """Tell whether the alert fires, where the windows have these burn rates and all others none."""
    windows = ("5m", "30m", "1h", "2h", "6h", "1d", "3d")
    gauges = {f"slo:schedulerlog_{objective}:burn_rate{w}": burns.get(f"of_{w}", 0.0) for w in windows}
    alert = next(candidate.alert for candidate in OBJECTIVES if candidate.name == objective)
    (rule,) = [item for item in ALERTS if (item["alert"], item["labels"]["severity"]) == (alert, severity)]
    return evaluate(rule["expr"], Numbers(gauges=gauges)) is not None


# The table of the workbook: 2 % of thirty days' budget in one hour is 0.02 x 720 h = 14.4 times the steady rate; 5 % in
# six hours 6 times; 10 % in one day 3 times; 10 % in three days once.
@pytest.mark.parametrize(
    ("severity", "long", "short", "rate"),
    [
        ("critical", "of_1h", "of_5m", 0.02 * 720 / 1),
        ("critical", "of_6h", "of_30m", 0.05 * 720 / 6),
        ("warning", "of_1d", "of_2h", 0.10 * 720 / 24),
        ("warning", "of_3d", "of_6h", 0.10 * 720 / 72),
    ],
)
@pytest.mark.parametrize("objective", [objective.name for objective in OBJECTIVES])
def test_an_alert_needs_the_long_window_and_the_short_one(
    objective: str, severity: str, long: str, short: str, rate: float
) -> None:
    above, below = rate * 1.01, rate * 0.99
    assert is_firing(objective, severity, **{long: above, short: above})
    assert not is_firing(objective, severity, **{long: above, short: below})
    assert not is_firing(objective, severity, **{long: below, short: above})
