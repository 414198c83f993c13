"""A reader that goes away (``| head``) ends a command quietly, as it ends other programs."""

import os
import subprocess
import sys

from runtime.cli.lazy_commands import CLOSED_OUTPUT

LOG = "tests/unit/ingest/readers/hami/cases/scheduler-event-proposal.log"


def run_command(*words: str) -> tuple[int, str]:
    """Return exit code and standard error of a command whose output is no longer read."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "schedulerlog", *words]
    with os.fdopen(writing, "wb") as output:
        done = subprocess.run(command, stdout=output, stderr=subprocess.PIPE, text=True, check=False)
    return done.returncode, done.stderr


def test_a_command_whose_output_is_no_longer_read_ends_quietly_as_by_sigpipe() -> None:
    assert run_command("explain", LOG) == (CLOSED_OUTPUT, "")
    assert run_command("explain", LOG, "-o", "json") == (CLOSED_OUTPUT, "")
    assert CLOSED_OUTPUT == 141  # what a shell shows of a program that SIGPIPE ended


def test_so_does_a_command_of_a_group() -> None:
    cluster = ["--cluster", "examples/cluster.yaml", "--pod", "examples/pods/1-gpu-pod.yaml"]
    assert run_command("scheduler", "simulate", *cluster) == (CLOSED_OUTPUT, "")
