"""Lines with their place: what every source yields and every reader is fed.

Lines travel in blocks, because a scheduler writes a quarter of a million of them for one attempt: making an object of
each would take longer than reading it.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple


class Origin(NamedTuple):
    """One log: a file, standard input, or one container's output."""

    name: str
    """For messages: a path, ``-``, or ``namespace/pod/container``."""
    reference: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    """No line is much later than this. klog writes no year: it is taken from here where the transport gives no time.

    For a file it is the time of its last change, so that reading it again next year gives the same times.
    """
    namespace: str = ""
    pod: str = ""
    container: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    """Labels of the pod that wrote the log, where the transport has them."""


class LogPosition(NamedTuple):
    """The position of a line in its log."""

    offset: int = 0
    """Bytes before it, counted with the prefixes that framing removes."""
    number: int = 1
    """The line's number, from 1."""


class Lines(NamedTuple):
    """A run of whole lines of one log, in the order they were written.

    ``texts`` have no line end, no prefix of a container runtime and no colours; they are bytes because most of them are
    noise and never decoded.
    """

    origin: Origin
    texts: Sequence[bytes]
    position: LogPosition = LogPosition()
    """The place of the first line."""
    times: Sequence[datetime | None] | None = None
    """By line, its time according to the container runtime or the API server; None where they give none."""
    end: LogPosition = LogPosition()
    """The place after the last line, where reading continues."""
