"""Which thread spends CPU time where: a look at every thread's stack a hundred times a second.

A sample weighs what its thread has really used since the look before, which Linux counts in nanoseconds. A
waiting thread weighs nothing, and time lost to other processes is not counted. While C code holds the interpreter no
sample can be taken: that time shows at the line that called it.
"""

import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Final

from runtime.telemetry.profiling.pprof import Frame, Profile, Sample

PERIOD_NS: Final = 10_000_000

TYPES: Final = (("samples", "count"), ("cpu", "nanoseconds"))

_Place = tuple[CodeType, int]
_Key = tuple[str, tuple[_Place, ...]]


def profile(seconds: float) -> Profile:
    """What all threads but this one did in so many seconds; returns after them."""
    found: dict[_Key, list[int]] = {}
    started, began = time.time_ns(), time.perf_counter_ns()
    used: dict[int, int] = {}
    # Only notes what each thread has used so far: that is not part of the profile.
    _look(used, {})
    while (elapsed := time.perf_counter_ns() - began) < seconds * 1e9:
        # Up to the next multiple of the period, so that slow looks do not add up.
        time.sleep((PERIOD_NS - elapsed % PERIOD_NS) / 1e9)
        _look(used, found)
    return Profile(TYPES, list(_samples(found)), started, elapsed, PERIOD_NS, TYPES[-1])


def _look(used: dict[int, int], found: dict[_Key, list[int]]) -> None:
    threads = {thread.ident: thread for thread in threading.enumerate()}
    frames = sys._current_frames()
    for ident, frame in frames.items():
        thread = threads.get(ident)
        if thread is None or thread is threading.current_thread() or thread.native_id is None:
            continue
        now = _cpu_ns(thread.native_id)
        # A thread that is seen for the first time counts from here on.
        spent = now - used.get(thread.native_id, now)
        used[thread.native_id] = now
        if spent > 0:
            counted = found.setdefault((thread.name, _stack(frame)), [0, 0])
            counted[0] += 1
            counted[1] += spent


def _cpu_ns(native_id: int) -> int:
    """Nanoseconds on a CPU; 0 for a thread that has just ended, or where there is no Linux to tell."""
    try:
        # The first of three numbers: nanoseconds on a CPU.
        return int(Path(f"/proc/self/task/{native_id}/schedstat").read_bytes().split()[0])
    except (OSError, ValueError, IndexError):
        return 0


def _stack(frame: FrameType | None) -> tuple[_Place, ...]:
    places = []
    while frame:
        # No texts yet: they are made once, when the profile ends, and not at every look.
        places.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return tuple(places)


def _samples(found: dict[_Key, list[int]]) -> Iterator[Sample]:
    for (thread, places), counted in found.items():
        stack = tuple(Frame(code.co_qualname, code.co_filename, line or 0) for code, line in places)
        yield Sample(stack, tuple(counted), (("thread", thread),))


def stacks() -> str:
    """Where every thread is now, innermost last."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    described = []
    for ident, frame in sys._current_frames().items():
        places = [f'  File "{code.co_filename}", line {line}, in {code.co_qualname}\n' for code, line in _stack(frame)]
        described.append(f"{names.get(ident, ident)}:\n{''.join(reversed(places))}")
    return "\n".join(described)
