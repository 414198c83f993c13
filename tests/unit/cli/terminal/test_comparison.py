"""Two pods side by side by their names, as the API compares their latest attempts."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.client.problems import NotFound, Problem
from cli.command import app
from cli.terminal.options import Asking
from schemas.json_types import Json

IDS = {"placed": "aa", "refused": "bb", "new": ""}


def a_verdict(verdict: str, score: float = 0.0) -> Json:
    return {"node": "n1", "verdict": verdict, "score": score, "terms": [], "containers": []}


def answer(path: str, query: Mapping[str, str]) -> Json | Problem:
    """Answer as the API does about an earlier attempt ``aa`` and a later one ``bb``."""
    if path.startswith("/attempts/"):
        assert sorted([path.split("/")[2], query["with"]]) == ["aa", "bb"]
        return {
            "before": "/api/v1/attempts/aa", "after": "/api/v1/attempts/bb", "before_started_at": "",
            "after_started_at": "", "fields": {"requests": ["1 GPU", "8 GPU"]},
            "nodes": [{"before": a_verdict("picked", 0.854), "after": a_verdict("refused")},
                      {"before": None, "after": a_verdict("fits", 0.5)}], "unchanged_nodes": 3,
        }  # fmt: skip
    name = path.split("/")[4]
    if name not in IDS:
        return NotFound(f"nothing is recorded of pod {name}", "Is the name right?")
    return {"episodes": [{"attempt_ids": [IDS[name]]}] if IDS[name] else [], "continue": None}


@pytest.fixture
def _transport(monkeypatch: pytest.MonkeyPatch) -> None:
    transport = SimpleNamespace(get=answer, get_namespace=lambda: "ml")
    monkeypatch.setattr(Asking, "create_transport", lambda _: transport)


def compare(*names: str) -> Any:
    return CliRunner().invoke(app, ["compare", *names], env={"COLUMNS": "200"})


@pytest.mark.usefixtures("_transport")
@pytest.mark.parametrize("names", [("ml/placed", "ml/refused"), ("ml/refused", "ml/placed")])
def test_each_column_has_the_pod_of_its_attempt_whichever_is_named_first(names: tuple[str, str]) -> None:
    lines = [line.split() for line in compare(*names).stdout.splitlines()]
    assert lines[0][:3] == ["ml/placed", "and", "ml/refused:"]
    assert ["DIFFERENCE", "ml/placed", "ml/refused"] in lines
    assert ["requests", "1", "GPU", "8", "GPU"] in lines
    assert ["n1", "picked,", "score", "0.85", "refused"] in lines
    assert ["n1", "not", "judged", "fits,", "score", "0.50"] in lines


@pytest.mark.usefixtures("_transport")
@pytest.mark.parametrize(("name", "message"), [("ml/new", "no attempt of ml/new is known"), ("ml/x", "nothing is rec")])
def test_a_pod_without_attempts_is_named(name: str, message: str) -> None:
    done = compare("ml/placed", name)
    assert (done.exit_code, message in done.stderr) == (3, True)
