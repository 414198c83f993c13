"""``schedulerlog alerts`` at the golden API, on which one alert fires."""

from datetime import UTC, datetime, timedelta

import orjson

from cli.terminal.alerts import _describe_late
from tests.unit.cli.terminal.conftest import Run


def test_an_alert_that_fires_has_its_sentence_and_ends_with_1(run: Run) -> None:
    done = run("alerts", "-A", COLUMNS="160")
    assert done.exit_code == 1, done.output
    head, _, columns, row = done.stdout.splitlines()
    assert head == "1 alert."
    assert columns.split() == ["SEVERITY", "RULE", "SINCE", "SUMMARY"]
    assert row.startswith("warning")
    assert "llm/deepseek-0 has been refused for 30 minutes for CardInsufficientMemory" in row


def test_a_namespace_without_alerts_has_a_sentence(run: Run) -> None:
    done = run("alerts", "-n", "other")
    assert (done.exit_code, done.stdout) == (0, "No alert fires in namespace other.\n")


def test_the_document_is_the_answer_of_the_api(run: Run) -> None:
    answer = orjson.loads(run("alerts", "-A", "-o", "json").stdout)
    assert [alert["rule"] for alert in answer["items"]] == ["PodPendingForLong"]


def test_an_empty_list_without_evaluation_is_no_good_news() -> None:
    now = datetime.now(UTC)
    late = {"evaluated_until": (now - timedelta(minutes=7)).isoformat()}
    assert _describe_late(late, now).startswith("The rules were last evaluated 7m ago, and alerts that began since")
    assert _describe_late({"evaluated_until": None}, now).startswith("No process evaluates the rules")
