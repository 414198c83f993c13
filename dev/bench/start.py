"""Time until commands that read a file answer, next to the time of only Python and its libraries."""

import os
import resource
import subprocess
import sys
from typing import Final

from dev.bench.report import Figure, Result

RUNS: Final = 10
"""The least of so many: everything above it is the machine's."""
LOG: Final = "tests/unit/ingest/readers/hami/cases/scheduler-event-proposal.log"
COMMANDS: Final = {
    "python": ("-c", "pass"),
    "typer": ("-c", "import typer"),
    "typer, pydantic, numpy, orjson": ("-c", "import typer, numpy, orjson; from pydantic import BaseModel"),
    "--help": ("-m", "schedulerlog", "--help"),
    "--version": ("-m", "schedulerlog", "--version"),
    "why --help": ("-m", "schedulerlog", "why", "--help"),
    "explain --help": ("-m", "schedulerlog", "explain", "--help"),
    "ingest hami-log --help": ("-m", "schedulerlog", "ingest", "hami-log", "--help"),
    "explain LOG": ("-m", "schedulerlog", "explain", LOG),
    "explain LOG POD": ("-m", "schedulerlog", "explain", LOG, "llm/deepseek-5996b8569d-kgwgx"),
    "explain LOG POD --full": (
        "-m", "schedulerlog", "explain", LOG, "llm/deepseek-5996b8569d-kgwgx", "-o", "json", "--full",
    ),
    "doctor --help": ("-m", "schedulerlog", "doctor", "--help"),
    "scheduler simulate": (
        "-m", "schedulerlog", "scheduler", "simulate",
        "--cluster", "examples/cluster.yaml", "--pod", "examples/pods/1-gpu-pod.yaml",
    ),
    "scheduler serve --help": ("-m", "schedulerlog", "scheduler", "serve", "--help"),
}  # fmt: skip


def measure_start() -> Result:
    """Measure the CPU seconds of complete commands, each as a separate process."""
    least = dict.fromkeys(COMMANDS, float("inf"))
    # In turns, so that what else the machine does meets all of them.
    for _ in range(RUNS + 1):
        for name, words in COMMANDS.items():
            least[name] = min(least[name], _measure_cpu_seconds(words))
    first = least["python"]
    return Result(
        "start",
        "CPU time of a command from its start to its end, beside Python that does nothing",
        f"the least of {RUNS} runs, with compiled modules",
        tuple(Figure(name, seconds, "s", round(seconds / first, 1)) for name, seconds in least.items()),
    )


def _measure_cpu_seconds(words: tuple[str, ...]) -> float:
    # As installed: pip compiles the modules, and a checkout may forbid it.
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    # As every command sets them (schedulerlog/__init__.py): numpy and pydantic alone would take longer than within one.
    environment |= {"OPENBLAS_NUM_THREADS": "1", "PYDANTIC_DISABLE_PLUGINS": "__all__"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run([sys.executable, *words], env=environment, check=False, capture_output=True)
    # 1 is the answer that a pod waits, not a failure.
    if run.returncode not in (0, 1):
        raise subprocess.CalledProcessError(run.returncode, run.args, run.stdout, run.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
