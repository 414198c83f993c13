"""Alerts: what fires, for whom, and whether the rules are evaluated at all."""

from datetime import UTC, datetime, timedelta

import pytest

from schemas.answers.alerts import Alerts
from schemas.answers.attempts import Error
from tests.support.builders.alerts import an_alert
from tests.support.harness.api_app import Caller

PATH = "/api/v1/alerts"


async def ask(caller: Caller, query: str = "") -> Alerts:
    answer = await caller.get(PATH + query)
    assert answer.status_code == 200, answer.text
    return Alerts.model_validate_json(answer.content)


async def test_alerts_that_fire_are_sorted_by_severity_then_time() -> None:
    caller = Caller()
    caller.publish(
        an_alert("Old", 60),
        an_alert("New", 1),
        an_alert("Worst", 90, severity="critical"),
        an_alert("Least", 0, severity="info"),
        an_alert("Own", 0, severity="page"),
        an_alert("Ended", 3, state="resolved"),
        evaluated_until=datetime.now(UTC),
    )
    answer = await ask(caller)
    assert [alert.rule for alert in answer.items] == ["Worst", "New", "Old", "Least", "Own"]
    assert (answer.total, answer.is_current) == (5, True)
    assert [alert.rule for alert in (await ask(caller, "?state=resolved")).items] == ["Ended"]
    assert (await ask(caller, "?state=all&limit=1")).total == 6
    assert [alert.rule for alert in (await ask(caller, "?rule=Old")).items] == ["Old"]


async def test_an_alert_that_ended_no_longer_fires_and_is_forgotten_after_a_day() -> None:
    caller = Caller()
    caller.publish(an_alert("A", 60), an_alert("B", 1_500), evaluated_until=datetime.now(UTC))
    caller.publish(
        an_alert("A", 2, state="resolved"), an_alert("B", 1_441, state="resolved"), evaluated_until=datetime.now(UTC)
    )
    assert (await ask(caller)).items == []
    assert [alert.rule for alert in (await ask(caller, "?state=all")).items] == ["A"]


@pytest.mark.parametrize(("age", "is_current"), [(timedelta(minutes=1), True), (timedelta(minutes=3), False)])
async def test_an_empty_list_says_whether_the_rules_are_evaluated(age: timedelta, is_current: bool) -> None:
    caller = Caller()
    caller.publish(evaluated_until=datetime.now(UTC) - age)
    answer = await ask(caller)
    assert (answer.items, answer.is_current) == ([], is_current)


async def test_rules_that_were_never_evaluated_are_not_current() -> None:
    caller = Caller()
    caller.publish()
    answer = await ask(caller)
    assert (answer.evaluated_until, answer.is_current) == (None, False)


async def test_before_the_topic_is_read_there_is_no_answer() -> None:
    answer = await Caller().get(PATH)
    assert answer.status_code == 503
    assert "not read yet" in Error.model_validate_json(answer.content).error


async def test_alerts_of_another_cluster_are_that_clusters() -> None:
    caller = Caller()
    caller.publish(an_alert(cluster="east"), evaluated_until=datetime.now(UTC))
    assert (await ask(caller)).items == []
    answer = await caller.get("/api/v1/clusters/east/alerts")
    assert Alerts.model_validate_json(answer.content).total == 1
