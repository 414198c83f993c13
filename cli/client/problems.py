"""Reasons for a missing answer of the API. Values, because each is an expected outcome: the caller shows it and ends.

Problem
  NotFound      nothing is recorded under this name
  NotAllowed    the caller is not known, or may not read this
  WrongRequest  the API does not understand the request
  Unreachable   nobody answered, or the API can't answer now
"""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Problem:
    """The cause of a missing answer, and the next step."""

    code: ClassVar[str] = "Unknown"
    """The code of the API's error behind it, or of the most similar one."""
    cause: str
    next_step: str = ""

    def __str__(self) -> str:
        return f"{self.cause}. {self.next_step}" if self.next_step else self.cause


class NotFound(Problem):
    __slots__ = ()
    code = "NotFound"


class NotAllowed(Problem):
    __slots__ = ()
    code = "Forbidden"


class WrongRequest(Problem):
    __slots__ = ()
    code = "BadRequest"


class Unreachable(Problem):
    __slots__ = ()
    code = "ServiceUnavailable"


def to_problem(status: int, cause: str, next_step: str = "") -> Problem:
    """Convert an HTTP status."""
    match status:
        case 401 | 403:
            return NotAllowed(cause, next_step)
        case 404:
            return NotFound(cause, next_step)
        case _ if 400 <= status < 500:
            return WrongRequest(cause, next_step)
    return Unreachable(cause, next_step)
