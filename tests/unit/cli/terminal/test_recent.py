"""``schedulerlog recent``: one list by time of what four lists of the API have."""

from collections.abc import Mapping
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner, Result

from cli.command import app
from cli.terminal.options import Asking
from cli.terminal.values import parse_since
from schemas.json_types import Json
from tests.unit.cli.terminal.conftest import Run

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
POD = {"namespace": "llm", "name": "finetune"}
ANSWERS: dict[str, Json] = {
    "/schedulerlogs": {
        "total": 300,
        "items": [POD | {"started_at": "2026-11-25T11:55:00Z", "status": "succeeded", "chosen": "node10",
                         "reasons": []},
                  POD | {"started_at": "2026-11-25T11:51:00Z", "status": "failed", "chosen": None,
                         "reasons": ["CardInsufficientMemory"]}],
    },
    "/pods": {
        "total": 2,
        "items": [POD | {"name": "pretrain", "node": "node10", "ended_at": "2026-11-25T11:54:00Z",
                         "ended_by": "Succeeded", "devices": [{"uuid": "GPU-1"}, {"uuid": "GPU-1"}, {"uuid": "GPU-2"}]},
                  POD | {"name": "old", "node": "node1", "ended_at": "2026-11-25T11:00:00Z", "ended_by": "deleted",
                         "devices": []}],
    },
    "/findings": {
        "total": 1,
        "items": [POD | {"found_at": "2026-11-25T11:53:00Z", "finding": "Overcommitted",
                         "numbers": {"held_mib": 9000}}],
    },
    "/alerts": {
        "total": 2, "is_current": True,
        "items": [{"changed_at": "2026-11-25T11:52:00Z", "state": "firing", "rule": "RegistrationLost",
                   "summary": "node7 registers no device"},
                  {"changed_at": "2026-11-24T12:00:00Z", "state": "resolved", "rule": "Old", "summary": "yesterday"}],
    },
}  # fmt: skip
QUERIES: list[Mapping[str, str]] = []


def answer(path: str, query: Mapping[str, str]) -> Json:
    QUERIES.append({**query, "path": path})
    return ANSWERS[path]


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Run:
    QUERIES.clear()
    transport = SimpleNamespace(get=answer, get_namespace=lambda: "llm")
    monkeypatch.setattr(Asking, "create_transport", lambda _: transport)

    def ask(*words: str) -> Result:
        return CliRunner().invoke(app, ["recent", *words], env={"COLUMNS": "200"})

    return ask


def test_what_happened_is_one_list_with_the_latest_first(ask: Run) -> None:
    lines = ask("-A", "--since", "2026-11-25T11:50:00Z").stdout.splitlines()
    assert lines[0] == "5 records since 2026-11-25 11:50:00 UTC."
    assert [line.split("  ", 1)[0] + line.split("  ", 1)[1].rstrip() for line in lines[3:8]] == [
        "2026-11-25 11:55:00attempt       llm/finetune      placed on node10",
        "2026-11-25 11:54:00end           llm/pretrain      Succeeded on node10, held 2 devices",
        "2026-11-25 11:53:00finding       llm/finetune      Overcommitted: held_mib 9,000",
        "2026-11-25 11:52:00alert firing  RegistrationLost  node7 registers no device",
        "2026-11-25 11:51:00attempt       llm/finetune      refused, CardInsufficientMemory",
    ]
    assert "Of 300 attempts the latest 2 were read." in lines
    assert {query["path"]: query.get("since") for query in QUERIES}["/alerts"] is None
    assert {query["namespace"] for query in QUERIES} == {""}


def test_only_the_namespace_of_the_question_is_asked_for(ask: Run) -> None:
    done = ask("--since", "2026-11-25T11:59:00Z")
    assert {query["namespace"] for query in QUERIES} == {"llm"}
    assert [query["since"] for query in QUERIES if "since" in query] == ["2026-11-25T11:59:00Z"] * 3
    assert done.exit_code == 0


def test_a_time_that_is_none_is_a_mistake(ask: Run) -> None:
    done = ask("--since", "yesterday")
    assert (done.exit_code, "'yesterday' is not a time, write 10m" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("10m", datetime(2026, 11, 25, 11, 50, tzinfo=UTC)),
        ("2h", datetime(2026, 11, 25, 10, tzinfo=UTC)),
        ("7d", datetime(2026, 11, 18, 12, tzinfo=UTC)),
        ("2026-11-25T12:00:00+01:00", datetime(2026, 11, 25, 11, tzinfo=UTC)),
        ("10", None),
        ("", None),
    ],
)
def test_a_beginning_is_a_duration_or_a_time(text: str, moment: datetime | None) -> None:
    assert parse_since(text, NOW) == moment


def test_the_golden_api_answers_it(run: Run) -> None:
    done = run("recent", "-A", "--since", "2026-04-22T00:00:00Z", COLUMNS="200")
    assert done.exit_code == 0, done.output
    assert "llm/deepseek-5996b8569d-kgwgx" in done.stdout
    assert "PodPendingForLong" in done.stdout
