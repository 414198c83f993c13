"""The readers of schedulers' logs, by name: what ``raw-logs`` chooses from for the log of a container.

A new log source is added here, in one line.
"""

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from ingest.hami.reader import HamiLog, is_hami_line
from ingest.kai.reader import KaiLog, is_kai_line
from ingest.protocol import LogReader


class WaitingReader(LogReader, Protocol):
    """A reader that names what it waits for, so that a record is acknowledged when nothing needs it any more."""

    def waits_for(self) -> set[str]:
        """What has begun and not ended, by names that don't change until it has ended."""
        ...


class LogSource(NamedTuple):
    name: str
    """The name of the command, and of the source in metrics."""
    create: Callable[[str], WaitingReader]
    """A reader for the log of a scheduler in the cluster of this name."""
    recognises: Callable[[bytes], bool]
    """True for a line that shows that the log is of this source."""


LOG_SOURCES: Final = (
    LogSource("hami-log", lambda cluster: HamiLog(cluster=cluster), is_hami_line),
    LogSource("kai-log", lambda cluster: KaiLog(cluster=cluster), is_kai_line),
)


def source_of(line: bytes) -> LogSource | None:
    """The source that recognises the line; None where none does."""
    # The first that recognises it: klog's header and KAI's console form never match the same line.
    return next((source for source in LOG_SOURCES if source.recognises(line)), None)
