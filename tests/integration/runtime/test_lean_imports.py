"""Commands that read a log or a file start at once: what is slow to import is imported by the commands that need it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

CLIENTS = {"kubernetes", "faust", "mode", "aiokafka", "opensearchpy", "grpc", "aiohttp", "httpx"}
SERVERS = {"starlette", "uvicorn", "prometheus_client"}
HEAVY = {*CLIENTS, *SERVERS, "schemas.events", "summaries", "numpy", "rich", "yaml"}
KAI_LOG = "tests/unit/ingest/readers/kai/cases/v0.13-console-log.log"
LOG = "tests/unit/ingest/readers/hami/cases/scheduler-event-proposal.log"
EXPLAIN = f"explain {LOG} -o json"
HAMI_LOG_ALONE, KAI_LOG_ALONE = f"explain {LOG}", f"explain {KAI_LOG}"
SIMULATE = "scheduler simulate --cluster examples/cluster.yaml --pod examples/pods/1-gpu-pod.yaml"
SCRIPT = """
import json, sys
from typer.testing import CliRunner
from cli.command import app
for line in sys.stdin:
    done = CliRunner().invoke(app, line.split())
    assert done.exit_code == 0, done.output
    print(json.dumps(sorted({'.'.join(name.split('.')[:parts]) for name in sys.modules for parts in (1, 2)})))
"""
HELP: dict[str, set[str]] = {
    "--help": HEAVY | {"pydantic"},
    "ingest --help": HEAVY,
    "ingest hami-log --help": HEAVY,
    "ingest kai-log --help": HEAVY,
    "ingest sniffer --help": HEAVY,
    "ingest raw-logs --help": HEAVY,
    "ingest kube-events --help": HEAVY,
    "scheduler --help": HEAVY,
    "scheduler simulate --help": HEAVY,
    "scheduler serve --help": CLIENTS | SERVERS,
    "pipeline --help": CLIENTS | SERVERS - {"prometheus_client"},
    "pipeline provision --help": CLIENTS | SERVERS - {"prometheus_client"},
    "pipeline worker --help": CLIENTS | SERVERS - {"prometheus_client"},
    "pipeline events --help": CLIENTS | SERVERS - {"prometheus_client"},
    "pipeline placements --help": CLIENTS | SERVERS - {"prometheus_client"},
    "pipeline dead-letters list --help": CLIENTS | SERVERS - {"prometheus_client"},
}
"""Command to what it may not import. Those that may import less come first: one process runs one after the other."""


def list_imported(*commands: str) -> list[set[str]]:
    """List the modules that one process has imported after each command, by the first two parts of their names."""
    script, lines = [sys.executable, "-c", SCRIPT], "".join(f"{command}\n" for command in commands)
    done = subprocess.run(script, input=lines, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [set(json.loads(line)) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("command", [EXPLAIN, SIMULATE], ids=["explain", "simulate"])
def test_a_command_that_reads_files_needs_no_client_and_no_server(command: str) -> None:
    [imported] = list_imported(command)
    assert imported.isdisjoint({*CLIENTS, *SERVERS, "rich"})


@pytest.mark.parametrize(
    ("log", "other"), [(HAMI_LOG_ALONE, "ingest.readers.kai"), (KAI_LOG_ALONE, "ingest.readers.hami")]
)
def test_explain_imports_the_reader_of_the_log_and_no_event_loop(log: str, other: str) -> None:
    [imported] = list_imported(log)
    assert imported.isdisjoint(
        {*CLIENTS, *SERVERS, "asyncio", "http", "yaml", "runtime.kubernetes.client", "ingest.reading.pump", other}
    )


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted as Linux shows them")
def test_a_command_that_reads_a_file_starts_no_threads_of_numpy() -> None:
    script = f"""
import os, sys
from schedulerlog import main
sys.argv = ["schedulerlog", *{HAMI_LOG_ALONE.split()}]
try:
    main()
except SystemExit as end:
    assert not end.code
assert "numpy" in sys.modules
print(len(os.listdir("/proc/self/task")))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "1"


def test_the_help_of_a_command_needs_no_client_no_server_and_no_reader() -> None:
    imported = list_imported(*HELP)
    heavy_modules = {command: names & HELP[command] for command, names in zip(HELP, imported, strict=True)}
    assert {command: names for command, names in heavy_modules.items() if names} == {}
