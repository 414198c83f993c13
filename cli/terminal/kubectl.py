"""``kubectl schedulerlog``: the commands for people, without the services. kubectl finds the program by its name."""

import io
import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout, suppress
from typing import Final

from cli.terminal.commands import QUESTIONS
from cli.terminal.exit_codes import complain_of_interruption
from runtime.cli.lazy_commands import create_lazy_application

PROGRAM: Final = "kubectl schedulerlog"
_NO_FILES: Final = ":4"
"""The mark for kubectl (cobra's ShellCompDirective) that the list is complete."""
_FILES_TOO: Final = ":0"

_DESCRIPTION: Final = "Explain why a pod waits, or why it is where it is, and what would have to change."
_OF_TYPER: Final = ("--install-completion", "--show-completion")

# Without Typer's option that installs a completion: for bash it would take the place of kubectl's own.
app = create_lazy_application(_DESCRIPTION, QUESTIONS)


def run() -> None:
    """Run the command that the process was started with."""
    try:
        app(prog_name=PROGRAM)
    except SystemExit as end:
        complain_of_interruption(end)
        raise


def complete(words: Sequence[str]) -> None:
    """Print how the last of the words, which may be empty, may continue: kubectl calls a plugin's completion so."""
    line = f"schedulerlog {shlex.join(words[:-1])} {words[-1] if words else ''}"
    # Typer's own completion for bash, which wants the whole line.
    os.environ |= {"_SCHEDULERLOG_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(max(len(words), 1))}
    output = io.StringIO()
    with redirect_stdout(output), suppress(SystemExit):
        create_lazy_application(_DESCRIPTION, QUESTIONS, add_completion=True)(prog_name="schedulerlog")
    lines = [completion for completion in output.getvalue().split() if completion not in _OF_TYPER]
    sys.stdout.write("".join(f"{completion}\n" for completion in [*lines, _NO_FILES if lines else _FILES_TOO]))
