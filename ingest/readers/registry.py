"""Readers of schedulers' logs by name: ``raw-logs`` and ``explain`` choose from them by a log's lines.

A new log source is added here, in one line and two functions. A reader is imported for the first log that needs it: a
log is from one scheduler, and a command that reads one log would otherwise wait for the imports of every reader.
"""

from collections.abc import Callable
from datetime import UTC, tzinfo
from typing import Final, NamedTuple, Protocol

from ingest.lines import klog
from ingest.reading.protocol import LogReader


class LogFacts(NamedTuple):
    """Facts about a log that its lines do not have."""

    node_list: bytes = b""
    """The output of `kubectl get nodes -o json`; empty if there is none."""
    zone: tzinfo = UTC
    """Time zone of the log; klog writes none."""


NO_FACTS: Final = LogFacts()


class WaitingReader(LogReader, Protocol):
    """A reader that names what it waits for, so that a record is acknowledged when nothing needs it any more."""

    def list_unfinished(self) -> set[str]:
        """List what has begun and not ended, by names that don't change until it has ended."""
        ...


class LogSource(NamedTuple):
    """One kind of log."""

    name: str
    """The name of the command, and of the source in metrics."""
    create: Callable[[str, LogFacts], WaitingReader]
    """A reader for the log of a scheduler in the cluster of this name. Raises ``ValueError`` for a bad node list."""
    recognises: Callable[[bytes], bool]
    """True for a line that shows that the log is of this source."""


def _create_hami_reader(cluster: str, facts: LogFacts) -> WaitingReader:
    from ingest.readers.hami.devices import parse_node_list
    from ingest.readers.hami.reader import HamiLog

    devices = parse_node_list(facts.node_list) if facts.node_list else None
    return HamiLog(devices=devices, zone=facts.zone, cluster=cluster)


def _create_kai_reader(cluster: str, facts: LogFacts) -> WaitingReader:
    from ingest.readers.kai.reader import KaiLog

    if not facts.node_list:
        return KaiLog(cluster=cluster)
    from ingest.readers.kai.devices import parse_memory_labels
    from ingest.readers.kai.node_pools import NodePools, parse_pool_labels

    return KaiLog(
        parse_memory_labels(facts.node_list), cluster=cluster, pools=NodePools(parse_pool_labels(facts.node_list))
    )


def _is_kai_line(line: bytes) -> bool:
    from ingest.readers.kai.reader import is_kai_line

    return is_kai_line(line)


LOG_SOURCES: Final = (
    # kube-scheduler writes klog's header too; all its lines are unknown to HAMi's reader.
    LogSource("hami-log", _create_hami_reader, klog.has_header),
    LogSource("kai-log", _create_kai_reader, _is_kai_line),
)


def find_source(line: bytes) -> LogSource | None:
    """Find the source that recognises the line."""
    # The first that recognises it: klog's header and KAI's console form never match the same line.
    return next((source for source in LOG_SOURCES if source.recognises(line)), None)
