"""docs/questions.md: commands that need no server run, the others exist with the options that it names."""

import re
import shlex
from functools import cache
from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner

from cli.command import app
from schemas.index_fields import STORED
from schemas.indices import ATTEMPTS

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/questions.md").read_text("utf-8")
ROWS = [tuple(line.strip("| ").split(" | ", 1)) for line in TEXT.splitlines() if re.match(r"\| (?!question|---)", line)]
OPEN = ("**several**", "**missing**")
COMMANDS = sorted({span for _, step in ROWS for span in re.findall(r"`(schedulerlog [^`]+)`", step)})
PATHS = sorted({span for _, step in ROWS for span in re.findall(r"`GET (/[^`]+)`", step)})
LOG = "tests/unit/ingest/readers/hami/cases/scheduler-event-proposal.log"
FIGURES = {
    "fits --gpu 1 --model A40": "there is room for 17 on 6 nodes",
    "--add-node like:node3=4": "19 of 20 start now",
    "drain node9": "default/notebook-4",
    "buy --cluster": "No pod waits.",
    "nodes --by model": "1,492,818",
    "nodes --by namespace": "llm",
    "simulate -f examples/pods/1-gpu-pod.yaml": "It would go to node node9",
    "fits -f examples/pods/2-gpu-pod-default.yaml --cluster": "What lets more start",
}
"""Part of an answer about the examples' cluster, by a part of the command."""


def count_questions(rows: list[tuple[str, ...]]) -> int:
    """Count the questions; a row may be about a later one, too."""
    return sum(1 + ("(also N" in row[0]) for row in rows)


def test_the_page_has_all_questions_and_counts_those_with_one_step() -> None:
    assert count_questions(ROWS) == 53
    numbers = {int(number) for question, _ in ROWS for number in re.findall(r"\bN(\d+)\b", question)}
    assert numbers == set(range(1, 23))
    in_one_step = [row for row in ROWS if not row[1].startswith(OPEN)]
    assert "53 questions" in TEXT
    assert f"{count_questions(in_one_step)} are answered in one step" in " ".join(TEXT.split())


@pytest.mark.parametrize("line", [line for line in COMMANDS if "--cluster examples/" in line or "hami.log" in line])
def test_a_command_that_needs_no_server_answers(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    done = CliRunner().invoke(app, shlex.split(line.replace("hami.log", LOG))[1:], env={"COLUMNS": "200"})
    assert done.exit_code in (0, 1), done.output
    assert done.stdout
    for part, figure in FIGURES.items():
        assert part not in line or figure in done.stdout


def test_each_figure_belongs_to_a_command() -> None:
    assert [part for part in FIGURES if not any(part in line for line in COMMANDS)] == []


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_exists_with_its_options(line: str) -> None:
    words = shlex.split(line)[1:]
    done = CliRunner().invoke(app, [words[0], "--help"], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    options = [word for word in words if re.match(r"--?[a-zA-Z]", word)]
    assert [option for option in options if not re.search(rf"(?<![\w-]){option}(?![\w-])", done.stdout)] == []


@cache
def read_operations() -> dict[str, set[str]]:
    """Read the parameters of each path of the API."""
    paths = orjson.loads((ROOT / "api/openapi.json").read_bytes())["paths"]
    return {
        path.removeprefix("/api/v1"): {
            parameter["name"] for parameter in item["get"].get("parameters", ()) if "name" in parameter
        }
        for path, item in paths.items()
        if "get" in item
    }


@pytest.mark.parametrize("path", PATHS)
def test_a_call_exists_with_its_parameters(path: str) -> None:
    bare, _, query = path.partition("?")
    assert bare in read_operations()
    assert {part.partition("=")[0] for part in query.split("&") if part} <= read_operations()[bare]


def test_the_fields_of_attempts_are_those_of_the_index() -> None:
    section = (ROOT / "docs/dashboards.md").read_text("utf-8").partition("## Fields of the indices")[2]
    fields = re.findall(r"^\| `([^`]+)` \|", section.partition("\n## ")[0], re.MULTILINE)
    assert fields == [name for name, mapping in ATTEMPTS.properties.items() if mapping != STORED]
