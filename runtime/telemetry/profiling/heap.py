"""What Python objects take, by where they were allocated.

Tracing costs time and memory on every allocation, so it begins with the first question and not before; what was there
by then is one line of the answer, so that the sum is what the process takes. `PYTHONTRACEMALLOC=24` in the environment
begins it with the process.
"""

import gc
import os
import time
import tracemalloc
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Final

from runtime.telemetry.profiling.pprof import Frame, Profile, Sample

FRAMES: Final = 24
TYPES: Final = (("inuse_objects", "count"), ("inuse_space", "bytes"))

_UNTRACED: Final = "[not traced: from before tracing began, or of C libraries]"
_TRACING: Final = "[what tracing itself takes]"


def begin() -> bool:
    """Trace from now on; whether that is new."""
    if tracemalloc.is_tracing():
        return False
    tracemalloc.start(FRAMES)
    return True


def end() -> None:
    """Trace no more, and forget what was traced."""
    tracemalloc.stop()


def profile() -> Profile:
    """What is held now. Stops every other thread for as long as copying the traces takes: a second for a million."""
    # Garbage that waits for the collector would look like memory that is held.
    gc.collect()
    traced, _ = tracemalloc.get_traced_memory()
    own = tracemalloc.get_tracemalloc_memory()
    statistics = tracemalloc.take_snapshot().statistics("traceback")
    names = _functions({frame.filename for statistic in statistics for frame in statistic.traceback})
    samples = [
        # tracemalloc has the outermost frame first, pprof the innermost.
        Sample(
            tuple(_frame(frame, names) for frame in reversed(statistic.traceback)), (statistic.count, statistic.size)
        )
        for statistic in statistics
    ]
    samples += [Sample((Frame(_TRACING),), (1, own)), Sample((Frame(_UNTRACED),), (1, max(_rss() - traced - own, 0)))]
    return Profile(TYPES, samples, time.time_ns(), period_type=TYPES[-1], period=1)


def _frame(frame: tracemalloc.Frame, names: dict[tuple[str, int], str]) -> Frame:
    return Frame(names.get((frame.filename, frame.lineno), "<module>"), frame.filename, frame.lineno)


def _functions(files: set[str]) -> dict[tuple[str, int], str]:
    """The function at (file, line). tracemalloc knows lines alone; the functions are looked up among those alive."""
    # The collector lists nothing of what was frozen, as the worker's modules are. It searches them again from now on,
    # which costs less than the tracing.
    gc.unfreeze()
    codes = {found.__code__ for found in gc.get_objects() if isinstance(found, FunctionType)}
    return dict(_lines([code for code in codes if code.co_filename in files]))


def _lines(codes: Iterable[CodeType]) -> Iterator[tuple[tuple[str, int], str]]:
    for code in codes:
        for _, _, line in code.co_lines():
            if line:
                yield (code.co_filename, line), code.co_qualname
        # Inner functions last: a line of theirs belongs to them.
        yield from _lines(const for const in code.co_consts if isinstance(const, CodeType))


def _rss() -> int:
    try:
        return int(Path("/proc/self/statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
