"""Policies of index state management: which, for how long, and for which indices."""

import json
from datetime import timedelta
from typing import Any

import pytest
from typer.testing import CliRunner

from pipeline.__main__ import app
from pipeline.admin import policies as module
from pipeline.admin.policies import BY_POLICY, make_policies, to_policies
from pipeline.settings import RetentionSettings
from runtime.errors import SettingError, UnreachableError
from schemas.indices import DEVICES, OCCUPANCY, POD_STATES
from tests.support.fakes.index_state_management import FakeIndexStateManagement
from tests.support.harness.api_app import index_of, refuse

ATTEMPTS, TODAY, EARLIER = (
    "schedulerlog-attempts",
    "schedulerlog-attempts-2026.11.23",
    "schedulerlog-attempts-2026.11.1",
)


def build_settings(**fields: Any) -> RetentionSettings:
    return RetentionSettings.model_validate({"opensearch_url": "http://index:9200", **fields})


async def make_and_report(
    ism: FakeIndexStateManagement, monkeypatch: pytest.MonkeyPatch, **fields: Any
) -> dict[str, str]:
    """Make the policies, and return the line about each."""
    monkeypatch.setattr(module, "create_client", lambda _: index_of(ism.answer))
    lines: list[str] = []
    await make_policies(build_settings(**fields), lines.append)
    ism.run()
    return dict(line.removeprefix("policy ").split(": ", 1) for line in lines)


def test_a_policy_deletes_an_index_a_day_after_it_is_kept_no_longer() -> None:
    assert to_policies(build_settings())["schedulerlog-devices"] == {
        "description": "schedulerlog-devices: kept for 7 days",
        "default_state": "kept",
        "ism_template": [{"index_patterns": ["schedulerlog-devices-*"], "priority": 100}],
        "states": [
            {
                "name": "kept",
                "actions": [],
                "transitions": [{"state_name": "expired", "conditions": {"min_index_age": "8d"}}],
            },
            {"name": "expired", "actions": [{"delete": {}}], "transitions": []},
        ],
    }
    of_setting = to_policies(build_settings(retention=timedelta(days=60)))["schedulerlog-devices"]
    assert of_setting["states"][0]["transitions"][0]["conditions"] == {"min_index_age": "61d"}


def test_a_policy_of_whole_months_counts_the_week_in_which_they_are_made_ahead() -> None:
    policy = to_policies(build_settings())["schedulerlog-devices-months"]
    assert policy["ism_template"] == [{"index_patterns": ["schedulerlog-devices-*.00"], "priority": 101}]
    # Made at most 7 days before its month of 31 days, and kept for 7 days after it.
    assert policy["states"][0]["transitions"][0]["conditions"] == {"min_index_age": "45d"}
    assert {name for name in to_policies(build_settings()) if name.endswith("-months")} == {
        f"schedulerlog-{family}-months" for family in ("attempts", "devices", "node-states")
    }


async def test_whole_months_get_the_policy_of_months_and_their_days_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    month = f"{ATTEMPTS}-2026.12.00"
    ism = FakeIndexStateManagement({TODAY: None, month: None})
    reported = await make_and_report(ism, monkeypatch)
    assert reported[ATTEMPTS] == "written, given to 1 indices"
    assert reported[f"{ATTEMPTS}-months"] == "written, given to 1 indices"
    assert ism.indices == {TODAY: (ATTEMPTS, 0), month: (f"{ATTEMPTS}-months", 0)}


def test_what_index_state_management_can_not_keep_is_left_to_retention() -> None:
    assert not {OCCUPANCY.alias, POD_STATES.alias} & to_policies(build_settings()).keys()
    assert len(BY_POLICY) == 6
    with pytest.raises(SettingError, match="SCHEDULERLOG_KEPT_CLUSTERS"):
        to_policies(build_settings(kept_clusters="archive"))


async def test_policies_are_made_once_and_given_to_indices_that_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    ism = FakeIndexStateManagement({TODAY: None, EARLIER: None, "payroll": None})
    reported = await make_and_report(ism, monkeypatch)
    assert reported[ATTEMPTS] == "written, given to 2 indices"
    assert {name: content for name, (_, content) in ism.policies.items()} == to_policies(build_settings())
    assert ism.indices == {TODAY: (ATTEMPTS, 0), EARLIER: (ATTEMPTS, 0), "payroll": None}
    ism.writes.clear()
    assert (await make_and_report(ism, monkeypatch))[ATTEMPTS] == "is as it should be, given to 0 indices"
    assert {write.partition("/")[0] for write in ism.writes} == {"POST add"}


async def test_a_longer_retention_holds_for_indices_that_are_there_and_not_for_those_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    days = {f"{ATTEMPTS}-2026.10.{day:02}": None for day in range(1, 31)}
    ism = FakeIndexStateManagement({**days, TODAY: ("cold-storage", 7)})
    await make_and_report(ism, monkeypatch)
    reported = await make_and_report(ism, monkeypatch, retention="1440h")
    assert reported[ATTEMPTS] == "written, given to 30 indices; 1 have another policy, which is left to them"
    assert {ism.indices[name] for name in days} == {(ATTEMPTS, 1)}
    assert ism.indices[TODAY] == ("cold-storage", 7)


async def test_without_the_plugin_or_opensearch_the_cause_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "create_client", lambda _: index_of(refuse))
    with pytest.raises(UnreachableError, match="OpenSearch at http://index:9200: "):
        await make_policies(build_settings(), print)


def test_they_can_be_printed_for_those_who_write_them_themselves() -> None:
    done = CliRunner().invoke(app, ["policies", "--print", "--opensearch-url", "http://index:9200"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.output) == {
        name: {"policy": content} for name, content in to_policies(build_settings()).items()
    }
    assert DEVICES.alias in json.loads(done.output)


def test_a_time_of_a_family_is_that_of_its_policy() -> None:
    policies = to_policies(build_settings(retention="720h", retention_by_family="devices=72h"))
    assert policies["schedulerlog-devices"]["description"] == "schedulerlog-devices: kept for 3 days"
    assert policies["schedulerlog-trends"]["description"] == "schedulerlog-trends: kept for 30 days"
