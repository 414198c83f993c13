import csv
from typing import Any, Final

import pytest
from typer.testing import CliRunner

from cli.client.problems import NotAllowed, Problem
from cli.terminal.kubectl import app
from cli.terminal.options import Asking
from page.views.translations import get_meaning
from schemas.json_types import Json

NO_WAIT: Json = {"pods": 0, "gpu_hours": 0, "causes": []}
USAGE: Json = {
    "namespace": "llm", "devices": 12, "held_gpu_hours": 96.25, "waiting_pods": 3, "waiting_gpu_hours": 4.5,
    "placed_gpu_hours": 0.5,
}  # fmt: skip
REPORT: Json = {
    "cluster": "default", "namespace": None, "since": "2026-11-16T00:00:00Z", "until": "2026-11-23T00:00:00Z",
    "language": "en", "attempts": 5_000, "failed": 1_234, "failed_before": 900,
    "bind_failed": 34, "bind_failed_before": 2,
    "reasons": [
        {
            "code": "CardInsufficientMemory", "attempts": 1_000, "attempts_before": None, "devices": 8_000,
            "meaning": "…", "remedy": "Ask for less memory.", "who_acts": ["you", "wait"],
        }
    ],
    "waiting": {
        "pods": 12, "gpu_hours": 340.25, "causes": [{"cause": "", "pods": 12, "gpu_hours": 340.25}]
    },
    "best_change": {
        "sentence": {"en": "Uncordon the device of m-one: then 2 pods fit.", "zh": "解除 m-one 的隔离。"},
        "who_acts": "administrator",
    },
    "placed": NO_WAIT, "usage": [USAGE], "findings": [],
    "time_to_placement": {"pods": 3, "p50_seconds": 12.5, "p90_seconds": 400.0, "p99_seconds": None},
}  # fmt: skip


CSV: Final = b'"section","value"\r\n"attempts",8\r\n'


class Reporting:
    """Answers every question with the report, or with the problem."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.problem: Problem | None = None

    def get(self, path: str, query: Any) -> Json | Problem:
        self.requests.append((path, query))
        return self.problem or REPORT

    def get_text(self, path: str, query: Any) -> bytes | Problem:
        self.requests.append((path, query))
        return self.problem or (CSV if query["format"] == "csv" else b"# Failures\n")

    def get_namespace(self) -> str:
        return "llm"


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Reporting:
    reporting = Reporting()
    monkeypatch.setattr(Asking, "create_transport", lambda _: reporting)
    return reporting


def test_the_report_begins_with_how_many_failed(api: Reporting) -> None:
    lines = CliRunner().invoke(app, ["report", "-A"], env={"COLUMNS": "80"}).stdout.splitlines()
    assert lines[0] == "1,234 of 5,000 attempts failed, 900 in the range before."
    assert lines[1] == "Of them, 34 had a node and failed to be bound to it, 2 in the range before."
    assert "  Uncordon the device of m-one: then 2 pods fit. (an administrator)" in lines
    assert "CardInsufficientMemory, by you or waiting" in lines
    assert "Waiting now: 12 pods, 340.2 GPU-hours" in lines
    assert "Time to placement of 3 pods: p50 12s, p90 6m40s" in lines
    assert ["llm", "12", "96.2", "3", "4.5", "0.50"] in [line.split() for line in lines]
    assert api.requests == [("/reports/failures", {"namespace": "", "since": "7d", "until": "", "lang": "en"})]


def test_a_document_is_written_as_the_api_gives_it(api: Reporting) -> None:
    done = CliRunner().invoke(app, ["report", "--format", "markdown", "--lang", "zh"])
    assert done.stdout == "# Failures\n"
    query = {"namespace": "llm", "since": "7d", "until": "", "lang": "zh", "format": "markdown"}
    assert api.requests == [("/reports/failures", query)]


def test_a_table_has_no_mark_of_a_line_end_in_its_cells(api: Reporting) -> None:
    done = CliRunner().invoke(app, ["report", "--format", "csv"])
    assert list(csv.reader(done.stdout.splitlines())) == [["section", "value"], ["attempts", "8"]]


@pytest.mark.parametrize("options", [[], ["--format", "csv"]])
def test_who_asks_for_chinese_reads_in_chinese_why_there_is_no_report(api: Reporting, options: list[str]) -> None:
    api.problem = NotAllowed("bob may not read pods of namespace llm", "Ask for it.")
    done = CliRunner().invoke(app, ["report", "--lang", "zh", *options])
    assert done.exit_code == 4
    english = ["bob may not read pods of namespace llm.", "Ask for it."]
    assert done.stderr.splitlines() == [get_meaning("Forbidden", "zh"), *english]
    assert CliRunner().invoke(app, ["report", *options]).stderr.splitlines() == english


def test_pods_whose_wait_is_not_known_are_counted_apart(api: Reporting, monkeypatch: pytest.MonkeyPatch) -> None:
    placed = {"pods": 19, "gpu_hours": 8.25, "causes": []}
    monkeypatch.setitem(REPORT, "placed", placed)
    text = CliRunner().invoke(app, ["report", "-A"]).stdout
    assert "Placed in this time: 19 pods. How long they waited is known of 3: 8.2 GPU-hours" in text
    # No cause is known: no table without a row.
    assert "8.2 GPU-hours\n\nBy namespace" in text
    monkeypatch.setitem(REPORT, "placed", placed | {"pods": 3})
    text = CliRunner().invoke(app, ["report", "-A"]).stdout
    assert "Placed in this time: 3 pods, after 8.2 GPU-hours of waiting\n" in text
