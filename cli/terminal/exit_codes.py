"""How a command ends, for scripts: 2 is that of every program for a mistake on its command line."""

from typing import Final

from cli.client.problems import NotAllowed, NotFound, Problem, WrongRequest

PLACED: Final = 0
"""Also of a list that was answered."""
WAITING: Final = 1
"""Refused, or not placed yet."""
USAGE: Final = 2
UNKNOWN: Final = 3
NOT_ALLOWED: Final = 4
NO_ANSWER: Final = 5
"""The API could not be asked, or could not answer: nothing is known about the pod."""
_OF_STATES: Final = {"placed": PLACED, "ended": PLACED, "missing": UNKNOWN, "not known": UNKNOWN}


def code_of(problem: Problem) -> int:
    """The exit code of a command that got no answer."""
    match problem:
        case WrongRequest():
            return USAGE
        case NotFound():
            return UNKNOWN
        case NotAllowed():
            return NOT_ALLOWED
    return NO_ANSWER


def code_of_state(state: str) -> int:
    """The exit code for the state of a diagnosis."""
    return _OF_STATES.get(state, WAITING)
