"""Lines on their way to stderr: rendered and written by a thread of their own, so that the filter only hands over.

What is handed over waits in bounded room. When reading is slower than deciding (a full disk, a slow pipe), whole
attempts are left out and counted, and the log says how many.
"""

import itertools
import logging
import os
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Final, Protocol

from scheduler.judge.decision import Decision, Failed
from scheduler.klog import lines
from scheduler.klog.lines import LogLine
from scheduler.publish.attempt import AttemptRef

log = logging.getLogger(__name__)

MAX_WAITING_DEVICES: Final = 400_000
"""Device rows that may wait, some 100 bytes each: ten attempts on 5,000 nodes of 8."""

_ATTEMPT_WEIGHT: Final = 100
"""What an attempt weighs beside its rows, so that tiny ones are bounded too."""

_WRITE_BYTES: Final = 3_500
"""A pipe takes up to 4,096 bytes in one piece, so lines of others never end up inside ours. It is also how long the
interpreter is kept from the filter: each write lets go of it, every few dozen microseconds."""

STOP_SECONDS: Final = 2.0

Render = Callable[[], Iterable[LogLine]]


class Klog(Protocol):
    """What the scheduler tells of its calls."""

    def decided(self, attempt: AttemptRef, decision: Decision, ended_at: datetime, error: str) -> None: ...
    def failed(self, attempt: AttemptRef, answer: Failed, ended_at: datetime) -> None: ...
    def bound(self, attempt: AttemptRef, node: str, error: str, ended_at: datetime) -> None: ...


class NoKlog:
    """Tells nobody."""

    def decided(self, attempt: AttemptRef, decision: Decision, ended_at: datetime, error: str) -> None:
        pass

    def failed(self, attempt: AttemptRef, answer: Failed, ended_at: datetime) -> None:
        pass

    def bound(self, attempt: AttemptRef, node: str, error: str, ended_at: datetime) -> None:
        pass


class KlogWriter:
    """Writes to the file descriptor `to` what `level` calls for. The methods that tell never wait."""

    def __init__(self, level: int, to: int = 2, max_waiting: int = MAX_WAITING_DEVICES) -> None:
        self.level, self._to, self._max_waiting = level, to, max_waiting
        self._queue: queue.SimpleQueue[tuple[Render, datetime, int] | None] = queue.SimpleQueue()
        # Each is written by one thread alone, so neither needs a lock.
        self._taken_in = self._written = 0
        self.dropped = 0
        """Attempts and binds that were left out."""
        self._told_dropped = 0
        self._is_broken = False
        self._thread = threading.Thread(target=self._run, name="klog", daemon=True)
        self._thread.start()

    def decided(self, attempt: AttemptRef, decision: Decision, ended_at: datetime, error: str) -> None:
        rows = sum(len(judged.verdict) for judged in decision.judgements)
        self._hand_over(lambda: lines.decided(attempt, decision, ended_at, error, self.level), ended_at, rows)

    def failed(self, attempt: AttemptRef, answer: Failed, ended_at: datetime) -> None:
        self._hand_over(lambda: lines.failed(attempt, answer, ended_at), ended_at)

    def bound(self, attempt: AttemptRef, node: str, error: str, ended_at: datetime) -> None:
        self._hand_over(lambda: lines.bound(attempt, node, error, ended_at), ended_at)

    def _hand_over(self, render: Render, said: datetime, rows: int = 0) -> None:
        weight = rows + _ATTEMPT_WEIGHT
        waiting = self._taken_in - self._written
        # One that is too heavy by itself is taken when nothing waits.
        if self._is_broken or (waiting and waiting + weight > self._max_waiting):
            self.dropped += 1
            return
        self._taken_in += weight
        self._queue.put((render, said, weight))

    def close(self) -> None:
        """Write what waits, but not for longer than `STOP_SECONDS`."""
        self._queue.put(None)
        self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        while (handed := self._queue.get()) is not None:
            render, said, weight = handed
            try:
                self._write(itertools.chain(self._left_out(), render()), said)
            except OSError:
                # Nobody reads any more, and there is no place left to say so but the metric.
                self._is_broken = True
                self.dropped += 1
            except Exception:
                log.exception("an attempt could not be written as log lines; the decision itself stands")
                self.dropped += 1
            self._written += weight

    def _left_out(self) -> Iterator[LogLine]:
        dropped = self.dropped
        if dropped != self._told_dropped:
            count = dropped - self._told_dropped
            yield LogLine("klog.go:1", f'"Log lines left out: they are read too slowly" attempts={count}', "W")
            self._told_dropped = dropped

    def _write(self, said: Iterable[LogLine], moment: datetime) -> None:
        waiting = bytearray()
        for rendered in headed(said, moment, os.getpid()):
            if waiting and len(waiting) + len(rendered) > _WRITE_BYTES:
                self._put(waiting)
                waiting = bytearray()
            waiting += rendered
        self._put(waiting)

    def _put(self, content: bytearray) -> None:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(self._to, rest) :]


def headed(said: Iterable[LogLine], moment: datetime, pid: int) -> Iterator[bytes]:
    """The lines with klog's header, `Lmmdd hh:mm:ss.uuuuuu threadid file:line] `, in local time."""
    when = moment.astimezone().strftime("%m%d %H:%M:%S.%f")
    for line in said:
        # Names come from annotations, which may hold half of a surrogate pair.
        yield f"{line.severity}{when} {pid:7d} {line.source}] {line.text}\n".encode(errors="replace")
