"""The history of a workload over its pods."""

from collections.abc import Mapping
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from cli.command import app
from cli.terminal.options import Asking
from schemas.json_types import Json


def an_attempt(name: str, time: str, status: str, chosen: str | None = None, *reasons: str) -> Json:
    return {"name": name, "started_at": time, "status": status, "chosen": chosen, "reasons": list(reasons)}


ATTEMPTS = [
    an_attempt("train-b", "2026-11-02T10:05:00Z", "failed", None, "CardInsufficientMemory"),
    an_attempt("train-a", "2026-11-01T10:00:00Z", "failed", None, "CardInsufficientCore"),
    an_attempt("train-a", "2026-11-01T10:07:00Z", "succeeded", "n1"),
    an_attempt("train-b", "2026-11-02T10:00:00Z", "failed", None, "CardInsufficientCore"),
]


def test_runs_of_a_job_are_rows_with_wait_result_and_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    queries: list[Mapping[str, str]] = []

    def answer(path: str, query: Mapping[str, str]) -> Json:
        queries.append(query)
        return {"items": ATTEMPTS, "total": 9, "path": path}

    transport = SimpleNamespace(get=answer, get_namespace=lambda: "ml")
    monkeypatch.setattr(Asking, "create_transport", lambda _: transport)
    lines = CliRunner().invoke(app, ["history", "job/train"], env={"COLUMNS": "200"}).stdout.splitlines()
    assert (queries[0]["namespace"], queries[0]["workload"]) == ("ml", "Job/train")
    assert lines[0] == "ml/Job/train: 4 attempts of 2 pods, the latest first."
    rows = [line.split() for line in lines[3:5]]
    assert rows[0] == [
        "2026-11-02", "10:00:00", "5m", "2", "refused", "train-b", "CardInsufficientMemory,", "CardInsufficientCore",
    ]  # fmt: skip
    assert rows[1] == ["2026-11-01", "10:00:00", "7m", "2", "placed", "n1", "train-a", "CardInsufficientCore"]
    assert lines[-1].startswith("There are older ones")
