"""What short commands import. It stands for their CPU time, which `make bench ARGS=start` measures."""

import os
import subprocess
import sys
from typing import Final

import pytest

LOG: Final = "tests/unit/ingest/hami/cases/scheduler-event-proposal.log"
POD: Final = "llm/deepseek-5996b8569d-kgwgx"
NEVER: Final = frozenset({"rich", "asyncio", "kubernetes", "aiokafka", "aiohttp", "faust", "opensearchpy", "jsonpatch"})
"""Each takes 10 ms or more of CPU, and none is needed to answer into a pipe."""
SCRIPT: Final = """
import sys
import schedulerlog
sys.argv = ["schedulerlog", *sys.argv[1:]]
try:
    schedulerlog.main()
except SystemExit:
    pass
print("LOADED", *sys.modules)
"""


def loaded(*words: str) -> set[str]:
    """The modules of a process that runs this command into a pipe."""
    environment = {name: text for name, text in os.environ.items() if name != "COLUMNS"}
    command = [sys.executable, "-c", SCRIPT, *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert not done.stderr
    answer, _, modules = done.stdout.rpartition("LOADED")
    assert answer.strip()
    return set(modules.split())


@pytest.mark.parametrize("words", [(LOG,), (LOG, POD), (LOG, POD, "-o", "json")])
def test_explain_imports_only_what_this_log_needs(words: tuple[str, ...]) -> None:
    modules = loaded("explain", *words)
    assert "ingest.hami.reader" in modules
    assert not modules & NEVER
    # The other reader, and the vendors of nodes that this log does not register.
    assert not modules & {"ingest.kai", "hami.vendors", "hami.registration", "hami.mig"}
    # What asks the API, what lists the nodes of its answers, and what unpacks a log.
    assert not modules & {"terminal.options", "views.node_groups", "schemas.answers.attempts", "tarfile", "zstandard"}


@pytest.mark.parametrize("words", [("--help",), ("--version",)])
def test_help_and_version_import_no_model(words: tuple[str, ...]) -> None:
    modules = loaded(*words)
    assert not modules & (NEVER | {"pydantic", "numpy", "schemas"})


@pytest.mark.parametrize("words", [("doctor", "--help"), ("why", "--help"), ("simulate", "--help")])
def test_help_of_a_command_imports_neither_numpy_nor_events(words: tuple[str, ...]) -> None:
    modules = loaded(*words)
    assert not modules & (NEVER | {"numpy", "schemas.events"})
