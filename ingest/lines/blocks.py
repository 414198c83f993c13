"""Lines with their place: what every source yields and every reader is fed.

Lines travel in blocks, because a scheduler writes a quarter of a million of them for one attempt: an object for each
would cost more than reading it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Origin:
    """One log: a file, standard input, or one container's output."""

    name: str
    """What people call it: a path, ``-``, or ``namespace/pod/container``."""
    reference: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    """No line is much younger. klog writes no year, so the year comes from here where the transport gives no time.

    Of a file it is the time of its last change, so that reading it again next year gives the same times.
    """
    namespace: str = ""
    pod: str = ""
    container: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    """Of the pod that wrote the log, where the transport says them."""


class Place(NamedTuple):
    """Where a line stands."""

    offset: int = 0
    """Bytes before it, counted in the text as it was before any prefix was taken off."""
    number: int = 1
    """The line's number, from 1."""


@dataclass(frozen=True, slots=True)
class Lines:
    """A run of whole lines of one log, in the order they were written.

    ``texts`` have no line end, no prefix of a container runtime and no colours; they are bytes because most of them are
    noise that nobody ever decodes.
    """

    origin: Origin
    texts: Sequence[bytes]
    place: Place = field(default_factory=Place)
    """Of the first line."""
    times: Sequence[datetime | None] | None = None
    """An entry per line: when the container runtime or the API server says it was written. None where it says none."""
    end: Place = field(default_factory=Place)
    """The place behind the last line: reading goes on there."""
