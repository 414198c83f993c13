"""The completion that `schedulerlog --install-completion` installs, in a real shell."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

LINES = {
    "schedulerlog hi": ["history"],
    "schedulerlog ingest ka": ["kai-log"],
    "schedulerlog list --pen": ["--pending"],
    "schedulerlog report --lang ": ["en", "zh"],
}
BASH = """
source ~/.bashrc
complete -p schedulerlog >/dev/null || exit 1
while IFS= read -r line; do
  read -ra COMP_WORDS <<<"$line"
  [[ $line == *" " ]] && COMP_WORDS+=("")
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
  _schedulerlog_completion schedulerlog
  echo "${COMPREPLY[*]}"
done
"""
FISH = """
env _SCHEDULERLOG_COMPLETE=source_fish schedulerlog | source
while read -l line; echo (complete -C $line | string replace -r '\\t.*' ''); end
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Environment of a shell that finds the program, in an empty home."""
    program = tmp_path / "bin/schedulerlog"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m schedulerlog "$@"\n')
    program.chmod(0o755)
    here = {"PYTHONPATH": str(Path.cwd()), "HOME": str(tmp_path)}
    return os.environ | here | {"PATH": f"{program.parent}:{os.environ['PATH']}"}


def complete(command: list[str], environment: dict[str, str]) -> list[list[str]]:
    lines = "".join(f"{line}\n" for line in LINES)
    done = subprocess.run(command, input=lines, capture_output=True, text=True, env=environment, check=True)
    return [line.split() for line in done.stdout.splitlines()]


def test_bash_completes_a_line_once_it_is_installed(environment: dict[str, str]) -> None:
    # The shell is the one that starts it: found among its parents.
    subprocess.run(["bash", "-c", "schedulerlog --install-completion; true"], env=environment, check=True)
    assert complete(["bash", "-c", BASH], environment) == list(LINES.values())


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
def test_fish_completes_a_line(environment: dict[str, str]) -> None:
    assert [sorted(words) for words in complete(["fish", "--no-config", "-c", FISH], environment)] == list(
        LINES.values()
    )
