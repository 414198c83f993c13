"""Log a problem when it changes, not while it lasts: an hour without Kafka is one line."""

from collections.abc import Callable

Log = Callable[..., None]


class LoggedProblem:
    """Present problem in words; ``text`` is empty when there is none.

    ``begins(problem, *details)`` and ``ends(problem, *details)`` write the lines, for example with a method of a logger
    and a format: ``partial(log.warning, "%s; trying again")``.
    """

    def __init__(self, begins: Log, ends: Log | None = None, text: str = "") -> None:
        self._begins, self._ends = begins, ends
        self.text = text

    def note(self, problem: str, *details: object) -> None:
        """Note that this is the problem now. ``details`` go into the line; a change in the details only is not
        logged."""
        before, self.text = self.text, problem
        # The details are left out of the comparison: they hold counts and seconds, which differ at each try.
        if problem and problem != before:
            self._begins(problem, *details)
        elif before and not problem and self._ends:
            self._ends(before, *details)
