"""Help comes at once: clients and Faust, which take seconds to import, are imported by the commands that need them."""

import json
import subprocess
import sys

import pytest

SLOW = ("kubernetes", "faust", "mode", "aiokafka", "opensearchpy", "grpc", "aiohttp", "uvicorn")
OTHERS = ("pydantic_settings", "numpy", "prometheus_client", "schemas", "summaries")


def imported_by(package: str, *words: str) -> set[str]:
    """The top-level modules that a process has imported when it has shown the help."""
    script = (
        "import json, sys\n"
        "from importlib import import_module\n"
        "from typer.testing import CliRunner\n"
        f"shown = CliRunner().invoke(import_module('{package}.__main__').app, {[*words, '--help']!r})\n"
        "assert shown.exit_code == 0, shown.output\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("words", [(), ("hami-log",), ("kai-log",), ("sniffer",), ("raw-logs",), ("kube-events",)])
def test_the_help_of_ingest_needs_no_client_and_no_reader(words: tuple[str, ...]) -> None:
    assert imported_by("ingest", *words).isdisjoint({*SLOW, *OTHERS})


@pytest.mark.parametrize(
    "words", [(), ("provision",), ("worker",), ("events",), ("placements",), ("dead-letters", "list")]
)
def test_the_help_of_the_pipeline_needs_no_client(words: tuple[str, ...]) -> None:
    assert imported_by("pipeline", *words).isdisjoint(SLOW)


@pytest.mark.parametrize("words", [(), ("serve",), ("simulate",)])
def test_the_help_of_the_scheduler_needs_no_client_and_no_server(words: tuple[str, ...]) -> None:
    assert imported_by("scheduler", *words).isdisjoint(SLOW)


def test_a_simulation_needs_no_client() -> None:
    script = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from scheduler.__main__ import app\n"
        "words = ['simulate', '--cluster', 'examples/cluster.yaml', '--pod', 'examples/pods/1-gpu-pod.yaml']\n"
        "done = CliRunner().invoke(app, words)\n"
        "assert done.exit_code == 0, done.output\n"
        f"assert not {{*{SLOW!r}}} & set(sys.modules), {{*{SLOW!r}}} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
