"""The readers of schedulers' logs, by name: what ``raw-logs`` chooses from for the log of a container.

A new log source is added here, in one line and two functions. A reader is imported when a log is its own: a log is of
one scheduler, and a command that reads it once would wait for the readers of the others.
"""

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from ingest.lines import klog
from ingest.reading.protocol import LogReader


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


def _hami_log(cluster: str) -> WaitingReader:
    from ingest.readers.hami.reader import HamiLog

    return HamiLog(cluster=cluster)


def _kai_log(cluster: str) -> WaitingReader:
    from ingest.readers.kai.reader import KaiLog

    return KaiLog(cluster=cluster)


def _is_kai_line(line: bytes) -> bool:
    from ingest.readers.kai.reader import is_kai_line

    return is_kai_line(line)


LOG_SOURCES: Final = (
    # kube-scheduler writes klog's header too; all its lines are unknown to HAMi's reader.
    LogSource("hami-log", _hami_log, klog.has_header),
    LogSource("kai-log", _kai_log, _is_kai_line),
)


def source_of(line: bytes) -> LogSource | None:
    """The source that recognises the line; None where none does."""
    # The first that recognises it: klog's header and KAI's console form never match the same line.
    return next((source for source in LOG_SOURCES if source.recognises(line)), None)
