"""Exit codes for scripts; 2 is the usual code of programs for a mistake on the command line."""

import sys
from typing import Final

from cli.client.problems import NotAllowed, NotFound, Problem, WrongRequest

PLACED: Final = 0
"""Also the code of a list that was answered."""
WAITING: Final = 1
"""Refused, or not placed yet."""
USAGE: Final = 2
UNKNOWN: Final = 3
NOT_ALLOWED: Final = 4
NO_ANSWER: Final = 5
"""The API could not be asked, or could not answer: nothing is known about the pod."""
INTERRUPTED: Final = 130
"""Ctrl-C came before there was an answer."""
_OF_STATES: Final = {"placed": PLACED, "ended": PLACED, "missing": UNKNOWN, "not known": UNKNOWN}


def to_exit_code(problem: Problem) -> int:
    """Convert the problem of a command that got no answer."""
    match problem:
        case WrongRequest():
            return USAGE
        case NotFound():
            return UNKNOWN
        case NotAllowed():
            return NOT_ALLOWED
    return NO_ANSWER


def to_state_exit_code(state: str) -> int:
    """Convert the state of a diagnosis."""
    return _OF_STATES.get(state, WAITING)


def complain_of_interruption(end: SystemExit) -> None:
    """Print a line where Ctrl-C has ended the command before it had an answer."""
    if end.code == INTERRUPTED:
        sys.stderr.write("Interrupted.\n")
