"""Imports of short commands. They stand for the CPU time, which `make bench ARGS=start` measures."""

import json
import os
import subprocess
import sys
from typing import Final

LOG: Final = "tests/unit/ingest/readers/hami/cases/scheduler-event-proposal.log"
POD: Final = "llm/deepseek-5996b8569d-kgwgx"
NEVER: Final = frozenset({"rich", "asyncio", "kubernetes", "aiokafka", "aiohttp", "faust", "opensearchpy", "jsonpatch"})
"""Each takes 10 ms or more of CPU, and none is needed to answer into a pipe."""
SCRIPT: Final = """
import json
import sys
import schedulerlog
for words in json.loads(sys.argv[1]):
    sys.argv = ["schedulerlog", *words]
    print("ANSWER")
    try:
        schedulerlog.main()
    except SystemExit:
        pass
print("LOADED", *sys.modules)
"""


def list_loaded(*lines: list[str]) -> set[str]:
    """List the modules that a process has loaded after running these commands into a pipe."""
    environment = {name: text for name, text in os.environ.items() if name != "COLUMNS"}
    command = [sys.executable, "-c", SCRIPT, json.dumps(lines)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert not done.stderr
    answers, _, modules = done.stdout.rpartition("LOADED")
    before, *texts = answers.split("ANSWER\n")
    assert not before
    assert len([answer for answer in texts if answer.strip()]) == len(lines)
    return set(modules.split())


def test_explain_imports_only_what_this_log_needs() -> None:
    modules = list_loaded(["explain", LOG], ["explain", LOG, POD], ["explain", LOG, POD, "-o", "json"])
    assert "ingest.readers.hami.reader" in modules
    assert not modules & NEVER
    # The reader of objects, registrations of nodes that this log does not have, and what judges pods on objects.
    assert not modules & {
        "ingest.readers.kube.reader",
        "engine.cases.pod_facts",
        "engine.cases.judging",
        "engine.filters",
    }
    assert not modules & {"engine.hami.registration", "engine.hami.mig", "engine.simulation"}
    # What asks the API, and what unpacks a log.
    assert not modules & {
        "cli.terminal.options",
        "tarfile",
        "zstandard",
    }


def test_help_and_version_import_no_model() -> None:
    modules = list_loaded(["--help"], ["--version"])
    assert not modules & (NEVER | {"pydantic", "numpy", "schemas"})


def test_help_of_a_command_imports_neither_numpy_nor_events() -> None:
    modules = list_loaded(["doctor", "--help"], ["why", "--help"], ["simulate", "--help"])
    assert not modules & (NEVER | {"numpy", "schemas.events"})
