"""``schedulerlog alerts`` at the golden API, on which one alert fires."""

from datetime import UTC, datetime, timedelta

import orjson
import pytest

from cli.terminal.alerts import _describe_late, _show
from cli.terminal.answers import get_language_of_terminal
from cli.terminal.screen import Screen
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


def test_the_summary_is_in_the_language_that_is_asked_for(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    answer = orjson.loads(run("alerts", "-A", "-o", "json").stdout)
    english, chinese = answer["items"][0]["summary"], "llm/deepseek-0 已被拒绝 30 分钟"
    # The golden alert is of a version that had English summaries only.
    assert english[:30] in run("alerts", "-A", "--lang", "zh", COLUMNS="160").stdout
    answer["items"][0]["summary_zh"] = chinese
    for language, summary in (("zh", chinese), ("en", english[:30])):
        _show(Screen(), answer, "firing", "", language, is_wide=False)
        assert summary in capsys.readouterr().out


@pytest.mark.parametrize(
    ("variables", "language"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LC_MESSAGES": "en_US.UTF-8"}, "en"),
        ({"LC_MESSAGES": "en_US.UTF-8", "LC_ALL": "zh_TW"}, "zh"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
    ],
)
def test_the_terminals_language_is_that_of_its_first_variable(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], language: str
) -> None:
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert get_language_of_terminal() == language
