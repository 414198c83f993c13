"""Ctrl-C in each phase of a command at a terminal: one line, exit code 130, no traceback, and at once."""

import os
import pty
import re
import select
import sys
import time
from pathlib import Path

import pytest

LOG = Path("tests/conformance/cases/logs/048.log")
KUBECTL = """#!{python}
import socket, sys, time
address = next((word.partition("=")[2] for word in sys.argv if word.startswith("--unix-socket=")), "")
if "config" in sys.argv:
    sys.exit()
if address:
    server = socket.socket(socket.AF_UNIX)
    server.bind(address)
    server.listen(50)
time.sleep(60)
"""
"""A kubectl whose proxy opens its socket and never answers."""


def press_in(words: list[str], seconds: float, text: str = "", **environment: str) -> tuple[int, float, str]:
    """Press Ctrl-C after so many seconds on a terminal, and not before the text is there.

    Returns the exit code, the seconds until the end, and the output.
    """
    process, terminal = pty.fork()
    if not process:
        os.environ.update(environment)
        os.execv(sys.executable, [sys.executable, "-m", "schedulerlog", *words])  # noqa: S606 - a terminal of its own
    begun, pressed, output = time.monotonic(), 0.0, b""
    while True:
        if select.select([terminal], [], [], 0.05)[0]:
            try:
                output += os.read(terminal, 65536)
            except OSError:
                break
        if not pressed and time.monotonic() - begun > seconds and text.encode() in output:
            os.write(terminal, b"\x03")
            pressed = time.monotonic()
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    return code, time.monotonic() - pressed, output.decode()


@pytest.mark.parametrize("words", [["why", "ml/train-0"], ["watch", "ml/train-0"], ["list", "--pending", "-A"]])
def test_an_answer_of_the_cluster_is_not_waited_for(tmp_path: Path, words: list[str]) -> None:
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(KUBECTL.format(python=sys.executable))
    kubectl.chmod(0o700)
    code, seconds, output = press_in(words, 4, KUBECTL=str(kubectl))
    assert (code, output.count("Interrupted."), "Traceback" in output) == (130, 1, False), output
    # Half of the time for which this kubectl sleeps: the machine may be slow.
    assert seconds < 30


def test_a_long_log_is_left_in_the_middle(tmp_path: Path) -> None:
    with (tmp_path / "long.log").open("wb") as file:
        for _ in range(300):
            file.write(LOG.read_bytes())
    code, _, output = press_in(["explain", str(tmp_path / "long.log")], 1, "Reading long.log:")
    assert (code, output.count("Interrupted."), "Traceback" in output) == (130, 1, False), output
    # The share that was read last, not the seconds, which depend on the machine.
    assert int(re.findall(r"\((\d+) %\)", output)[-1]) < 80, output
