"""The pages for operators: every shipped alert has its section, every named setting and command exists."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from pipeline.__main__ import app
from runtime.settings.variables import PREFIX, read_variable_names
from schemas.indices import INDICES
from tests.support.metrics_page import read_names

PAGE = "\n".join(
    Path("docs", name).read_text() for name in ("operations.md", "sizing.md", "recovery.md", "runbooks.md")
)
RULES = [
    str(rule["name"])
    for path in sorted(Path("pipeline/alerts").glob("*.yaml"))
    for rule in yaml.safe_load(path.read_text())["rules"]
]
PROMETHEUS = yaml.safe_load(Path("deploy/kustomize/components/prometheus/rules.yaml").read_text())["spec"]["groups"]
ALERTS = {str(rule["alert"]): rule for group in PROMETHEUS for rule in group["rules"] if "alert" in rule}
# What their expressions ask for is tested in tests/unit/deploy/dashboards/test_slo.py.
OBJECTIVES = {
    str(rule["alert"]): rule
    for group in yaml.safe_load(Path("deploy/kustomize/components/prometheus/slo.yaml").read_text())["spec"]["groups"]
    for rule in group["rules"]
    if "alert" in rule
}
_SECTION = re.compile(r"^### (\w+)\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
_METRIC = re.compile(r"schedulerlog_\w+")
SECTIONS = dict(_SECTION.findall(PAGE.partition("## Alerts")[2]))


def test_every_shipped_alert_has_its_section_and_no_other_has() -> None:
    assert sorted(SECTIONS) == sorted({*RULES, *ALERTS, *OBJECTIVES})


def test_no_cause_fires_an_alert_of_the_topics_and_one_of_prometheus() -> None:
    assert len(RULES) > 5
    assert len(ALERTS) > 5
    assert set(RULES) & set(ALERTS) == set()


def test_every_alert_has_a_case_for_promtool() -> None:
    text = Path("deploy/kustomize/components/prometheus/rules_test.yaml").read_text()
    fires = re.findall(r"alertname: (\w+)\n\s+eval_time: \w+\n\s+exp_alerts:\n", text)
    assert {*re.findall(r'__name__="ALERTS", alertname="(\w+)"', text), *fires} == {*ALERTS, *OBJECTIVES}


@pytest.mark.parametrize("name", ALERTS | OBJECTIVES)
def test_an_alert_of_prometheus_links_to_its_section(name: str) -> None:
    assert (ALERTS | OBJECTIVES)[name]["annotations"]["runbook_url"] == f"docs/runbooks.md#{name.lower()}"


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_of_prometheus_asks_for_metrics_that_there_are(name: str) -> None:
    metrics = read_names()
    queried = {
        re.sub("_seconds_(bucket|count|sum)$", "_seconds", word) for word in _METRIC.findall(ALERTS[name]["expr"])
    }
    assert queried
    assert queried <= metrics


@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_says_what_to_do(name: str) -> None:
    assert len(SECTIONS[name].split()) > 20


@pytest.mark.parametrize("name", sorted(set(re.findall(rf"{PREFIX}([A-Z_]*[A-Z])", PAGE))))
def test_a_setting_that_the_page_names_is_one(name: str) -> None:
    assert f"{PREFIX}{name}" in read_variable_names()


def test_the_table_of_retention_names_every_index_with_its_days() -> None:
    rows = re.findall(r"^\| (`schedulerlog-.*?) \| (\d+) days", PAGE, re.MULTILINE)
    days_by_alias = {name: int(days) for names, days in rows for name in re.findall(r"`([\w-]+)`", names)}
    assert days_by_alias == {index.alias: index.retention.days for index in INDICES}


COMMANDS = sorted(set(re.findall(r"(?:python -m|schedulerlog) pipeline ([a-z][a-z -]*[a-z])", PAGE)))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_the_page_names_is_one(command: str) -> None:
    command_group: Any = get_command(app)
    for word in command.split(" --")[0].split():
        command_group = command_group.commands[word]
