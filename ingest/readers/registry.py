"""Readers of schedulers' logs by name: ``raw-logs`` and ``explain`` choose from them by a log's lines.

A new log source is added here, in one line and two functions. A reader is imported for the first log that needs it: a
log is from one scheduler, and a command that reads one log would otherwise wait for the imports of every reader.
"""

from collections.abc import Callable
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from ingest.lines import klog
from ingest.reading.protocol import LogReader, NoteFact

ShowProgress = Callable[[Path, int], None]
"""Takes a file and the number of its bytes read so far."""


class LogFacts(NamedTuple):
    """Facts about a log that its lines do not have."""

    node_list: bytes = b""
    """The output of `kubectl get nodes -o json`; empty if there is none."""
    zone: tzinfo = UTC
    """Time zone of the log; klog writes none."""
    note: NoteFact | None = None
    """Takes the facts that lines hold without being a verdict; None where only events are wanted."""
    keeps_latest: bool = False
    """True where only the latest attempts of each pod are wanted, and the number of the others: a long log has
    thousands of some pods."""
    show_progress: ShowProgress | None = None
    """Shows how much of a log was read; None where nobody looks."""


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
    has_headers: bool = False
    """Only lines with klog's header are recognised: others need not be looked at."""


def _create_hami_reader(cluster: str, facts: LogFacts) -> WaitingReader:
    from ingest.readers.hami.devices import parse_node_list
    from ingest.readers.hami.reader import HamiLog

    devices = parse_node_list(facts.node_list) if facts.node_list else None
    return HamiLog(devices=devices, zone=facts.zone, cluster=cluster, note=facts.note)


def _create_kai_reader(cluster: str, facts: LogFacts) -> WaitingReader:
    from ingest.readers.kai.reader import KaiLog

    if not facts.node_list:
        return KaiLog(cluster=cluster, note=facts.note)
    from ingest.readers.kai.node_labels import NodePools, parse_memory_labels, parse_pool_labels

    pools = NodePools(parse_pool_labels(facts.node_list))
    return KaiLog(parse_memory_labels(facts.node_list), cluster=cluster, pools=pools, note=facts.note)


def _is_kai_line(line: bytes) -> bool:
    # KAI logs by zap: a line with klog's header needs no look at its files and tags.
    if klog.has_header(line):
        return False
    from ingest.readers.kai.reader import is_kai_line

    return is_kai_line(line)


def _create_kube_scheduler_reader(cluster: str, facts: LogFacts) -> WaitingReader:
    from ingest.readers.kube_scheduler.reader import KubeSchedulerLog

    return KubeSchedulerLog(facts.zone, cluster=cluster, note=facts.note, keeps_latest=facts.keeps_latest)


def _create_volcano_reader(cluster: str, facts: LogFacts) -> WaitingReader:
    from ingest.readers.volcano.reader import VolcanoLog

    return VolcanoLog(facts.zone, cluster=cluster, note=facts.note)


def _is_hami_line(line: bytes) -> bool:
    """Tell whether HAMi wrote the line: kube-scheduler and Volcano write klog's header too."""
    start = klog.find_message(line)
    if start <= 0 or not klog.has_header(line):
        return False
    from ingest.readers.hami.grammar import load_grammar

    spelling = load_grammar().find_spelling(line, start)
    # Its first word is a common one.
    return spelling is not None and (spelling.kind != "node filtered out" or b" filtered out" in line)


def _is_kube_scheduler_line(line: bytes) -> bool:
    from ingest.readers.kube_scheduler.grammar import is_kube_scheduler_line

    return is_kube_scheduler_line(line)


def _is_volcano_line(line: bytes) -> bool:
    from ingest.readers.volcano.grammar import is_volcano_line

    return is_volcano_line(line)


LOG_SOURCES: Final = (
    LogSource("kube-scheduler-log", _create_kube_scheduler_reader, _is_kube_scheduler_line, has_headers=True),
    LogSource("volcano-log", _create_volcano_reader, _is_volcano_line, has_headers=True),
    LogSource("hami-log", _create_hami_reader, _is_hami_line, has_headers=True),
    LogSource("kai-log", _create_kai_reader, _is_kai_line),
)
"""The sources whose lines are rarer in others' logs come first."""


def find_source(line: bytes) -> LogSource | None:
    """Find the source that recognises the line."""
    return next((source for source in LOG_SOURCES if source.recognises(line)), None)
