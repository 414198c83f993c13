"""Writes HAMi's log lines to stderr, in a thread of its own: the filter only queues its decision.

The queue is bounded. When the lines are read more slowly than they are written (a full disk, a slow pipe), whole
attempts are left out and counted, and the log states how many.
"""

import itertools
import logging
import os
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Final, Protocol

from engine.fit.events.attempt import AttemptRef
from engine.fit.judge.decision import Decision, Failed
from scheduler.hami_compat.klog import lines
from scheduler.hami_compat.klog.device_lines import LogLine

log = logging.getLogger(__name__)

MAX_WAITING_DEVICES: Final = 400_000
"""Device rows that may wait, some 100 bytes each: ten attempts on 5,000 nodes of 8."""

_ATTEMPT_WEIGHT: Final = 100
"""The weight of an attempt besides its rows, so that the number of tiny attempts is bounded too."""

_WRITE_BYTES: Final = 3_500
"""A pipe takes up to 4,096 bytes in one piece (PIPE_BUF), so lines of other threads never end up inside ours. Each
write also releases the interpreter lock, so the filter gets it every few dozen microseconds."""

STOP_SECONDS: Final = 2.0

Render = Callable[[], Iterable[LogLine]]


class Klog(Protocol):
    """Log that the scheduler calls for each of its own calls."""

    def log_decision(self, attempt: AttemptRef, decision: Decision, ended_at: datetime, error: str) -> None: ...
    def log_failure(self, attempt: AttemptRef, answer: Failed, ended_at: datetime) -> None: ...
    def log_bind(self, attempt: AttemptRef, node: str, error: str, ended_at: datetime) -> None: ...


class NoKlog:
    """Writes nothing."""

    def log_decision(self, attempt: AttemptRef, decision: Decision, ended_at: datetime, error: str) -> None:
        pass

    def log_failure(self, attempt: AttemptRef, answer: Failed, ended_at: datetime) -> None:
        pass

    def log_bind(self, attempt: AttemptRef, node: str, error: str, ended_at: datetime) -> None:
        pass


class KlogWriter:
    """Writes lines up to klog level `level` to the file descriptor `to`. `log_decision`, `log_failure` and `log_bind`
    never wait."""

    def __init__(self, level: int, to: int = 2, max_waiting: int = MAX_WAITING_DEVICES) -> None:
        self.level, self._to, self._max_waiting = level, to, max_waiting
        self._queue: queue.SimpleQueue[tuple[Render, datetime, int] | None] = queue.SimpleQueue()
        # Each of the two is written by one thread only, so neither needs a lock.
        self._taken_in = self._written = 0
        self.dropped = 0
        """Attempts and binds that were left out."""
        self._logged_drops = 0
        self._is_broken = False
        # A daemon: lines that are not read any more must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="klog", daemon=True)
        self._thread.start()

    def log_decision(self, attempt: AttemptRef, decision: Decision, ended_at: datetime, error: str) -> None:
        rows = sum(len(judged.verdict) for judged in decision.judgements)
        self._hand_over(lambda: lines.render_decision(attempt, decision, ended_at, error, self.level), ended_at, rows)

    def log_failure(self, attempt: AttemptRef, answer: Failed, ended_at: datetime) -> None:
        self._hand_over(lambda: lines.render_failure(attempt, answer, ended_at, self.level), ended_at)

    def log_bind(self, attempt: AttemptRef, node: str, error: str, ended_at: datetime) -> None:
        self._hand_over(lambda: lines.render_bind(attempt, node, error, ended_at), ended_at)

    def _hand_over(self, render: Render, moment: datetime, rows: int = 0) -> None:
        weight = rows + _ATTEMPT_WEIGHT
        waiting = self._taken_in - self._written
        # An attempt above the whole limit is accepted while the queue is empty.
        if self._is_broken or (waiting and waiting + weight > self._max_waiting):
            self.dropped += 1
            return
        self._taken_in += weight
        # The lines are rendered in the other thread, from a decision that does not change any more.
        self._queue.put((render, moment, weight))

    def close(self) -> None:
        """Write what is queued, for at most `STOP_SECONDS`."""
        self._queue.put(None)
        self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        while (handed := self._queue.get()) is not None:
            render, moment, weight = handed
            try:
                self._write(itertools.chain(self._report_dropped(), render()), moment)
            except OSError:
                # The reader has closed the pipe; only the metric can still show it.
                self._is_broken = True
                self.dropped += 1
            except Exception:
                log.exception("an attempt could not be written as log lines; the decision itself stands")
                self.dropped += 1
            self._written += weight

    def _report_dropped(self) -> Iterator[LogLine]:
        # Read once: the other thread may count further meanwhile.
        dropped = self.dropped
        if dropped != self._logged_drops:
            count = dropped - self._logged_drops
            yield LogLine("klog.go:1", f'"Log lines left out: they are read too slowly" attempts={count}', "W")
            self._logged_drops = dropped

    def _write(self, log_lines: Iterable[LogLine], moment: datetime) -> None:
        waiting = bytearray()
        for rendered in add_headers(log_lines, moment, os.getpid()):
            if waiting and len(waiting) + len(rendered) > _WRITE_BYTES:
                self._put(waiting)
                waiting = bytearray()
            waiting += rendered
        self._put(waiting)

    def _put(self, content: bytearray) -> None:
        remaining = memoryview(content)
        while remaining:
            # A pipe may take less than it was given.
            remaining = remaining[os.write(self._to, remaining) :]


def add_headers(log_lines: Iterable[LogLine], moment: datetime, pid: int) -> Iterator[bytes]:
    """Add klog's header to the lines, `Lmmdd hh:mm:ss.uuuuuu threadid file:line] `, in local time."""
    when = moment.astimezone().strftime("%m%d %H:%M:%S.%f")
    for line in log_lines:
        # Names come from annotations, which may hold half of a surrogate pair.
        yield f"{line.severity}{when} {pid:7d} {line.source}] {line.text}\n".encode(errors="replace")
