"""Commands that read a log or a file start at once: what is slow to import is imported by the commands that need it."""

import json
import subprocess
import sys

import pytest

CLIENTS = ("kubernetes", "faust", "mode", "aiokafka", "opensearchpy", "grpc", "aiohttp", "httpx")
SERVERS = ("fastapi", "starlette", "uvicorn", "prometheus_client")
OWN = ("schemas.events", "summaries")
LOG = "tests/unit/ingest/hami/cases/scheduler-event-proposal.log"
EXPLAIN = ("ingest", "hami-log", LOG, "--explain", "llm/deepseek-5996b8569d-kgwgx")
SIMULATE = ("scheduler", "simulate", "--cluster", "examples/cluster.yaml", "--pod", "examples/pods/1-gpu-pod.yaml")
READERS = ("hami-log", "kai-log", "sniffer", "raw-logs", "kube-events")
HELP = [("ingest",), *(("ingest", name) for name in READERS), ("scheduler",), ("scheduler", "simulate")]


def imported_by(*words: str) -> set[str]:
    """The modules that the command has imported when it has ended, by the first one and two parts of their names."""
    script = (
        "import json, sys\n"
        "from typer.testing import CliRunner\n"
        "from cli.command import app\n"
        f"done = CliRunner().invoke(app, {list(words)!r})\n"
        "assert done.exit_code == 0, done.output\n"
        "print(json.dumps(sorted({'.'.join(name.split('.')[:parts]) for name in sys.modules for parts in (1, 2)})))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("words", [EXPLAIN, SIMULATE], ids=["explain", "simulate"])
def test_a_command_that_reads_files_needs_no_client_and_no_server(words: tuple[str, ...]) -> None:
    assert imported_by(*words).isdisjoint({*CLIENTS, *SERVERS, "rich"})


def test_the_help_of_everything_needs_nothing() -> None:
    assert imported_by("--help").isdisjoint({*CLIENTS, *SERVERS, *OWN, "rich", "pydantic", "numpy", "yaml"})


@pytest.mark.parametrize("words", HELP, ids=" ".join)
def test_the_help_of_a_command_that_reads_files_needs_no_reader(words: tuple[str, ...]) -> None:
    heavy = {*CLIENTS, *SERVERS, *OWN, "numpy", "rich", "yaml"}
    assert imported_by(*words, "--help").isdisjoint(heavy)


@pytest.mark.parametrize(
    "words",
    [(), ("provision",), ("worker",), ("events",), ("placements",), ("dead-letters", "list")],
    ids=" ".join,
)
def test_the_help_of_the_pipeline_needs_no_client(words: tuple[str, ...]) -> None:
    assert imported_by("pipeline", *words, "--help").isdisjoint({*CLIENTS, *SERVERS} - {"prometheus_client"})


def test_the_help_of_the_scheduler_needs_no_client_and_no_server() -> None:
    assert imported_by("scheduler", "serve", "--help").isdisjoint({*CLIENTS, *SERVERS})
