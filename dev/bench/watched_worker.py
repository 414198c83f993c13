"""A process of the pipeline that logs its memory every second: ``python -m dev.bench.watched_worker FILE worker …``.

The arguments after FILE are those of ``python -m pipeline``. Each line of FILE is JSON: seconds of the monotonic clock,
MiB resident, MiB that malloc has given out, and the number of Python's small blocks in use. If the resident size grows
and the others do not, the memory is fragmented; a leak makes one of the others grow.
"""

import ctypes
import json
import os
import sys
import threading
import time
from pathlib import Path

from dev.bench.cpu import read_resident_mib

EVERY_SECONDS = 0.97
"""Not a whole second, so that readings do not always fall into the same phase of the attempts."""


class _Mallinfo2(ctypes.Structure):
    """glibc's ``struct mallinfo2`` (2.33 and later), summed over all arenas."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
        )
    ]  # fmt: skip


# Loaded once: every CDLL creates classes, and a reading that creates some each second would be the leak that it finds.
_MALLINFO2 = ctypes.CDLL(None).mallinfo2
_MALLINFO2.restype = _Mallinfo2


def read_in_use_mib() -> float:
    """Read the memory that malloc has given out. Python's small blocks are not part of it: they come from the
    system."""
    statistics = _MALLINFO2()
    return float(statistics.uordblks + statistics.hblkhd) / 2**20


def _log_memory(path: Path) -> None:
    with path.open("a", buffering=1) as out:
        while True:
            line = time.monotonic(), read_resident_mib(os.getpid()), read_in_use_mib(), sys.getallocatedblocks()
            out.write(json.dumps(line) + "\n")
            time.sleep(EVERY_SECONDS)


def main() -> None:
    path = Path(sys.argv.pop(1))
    from pipeline.__main__ import app

    threading.Thread(target=_log_memory, args=(path,), daemon=True).start()
    app()


if __name__ == "__main__":
    main()
