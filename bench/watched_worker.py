"""The worker, which writes down every second what memory it has: ``python -m bench.watched_worker FILE worker …``.

Arguments behind the file are those of ``python -m pipeline``. A line of JSON each: seconds of the machine's monotonic
clock, MiB that are resident, MiB of malloc's memory that are in use, and how many of Python's own small blocks are.
Resident size that grows while both others stand is fragmentation; a leak makes one of them grow.
"""

import ctypes
import json
import os
import sys
import threading
import time
from pathlib import Path

from bench.cpu import resident_mib

EVERY_SECONDS = 0.97
"""Not in step with attempts that come once a second."""


class _Mallinfo2(ctypes.Structure):
    """glibc's ``struct mallinfo2`` (2.33 and later), summed over all arenas."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
        )
    ]  # fmt: skip


# Once: every CDLL makes classes of its own, and a reading a second that leaves some behind would be the leak it finds.
_ASK = ctypes.CDLL(None).mallinfo2
_ASK.restype = _Mallinfo2


def in_use_mib() -> float:
    """What malloc gave out and was not given back. Python's small blocks are not in it: they come from the system."""
    said = _ASK()
    return float(said.uordblks + said.hblkhd) / 2**20


def _write_down(path: Path) -> None:
    with path.open("a", buffering=1) as out:
        while True:
            line = time.monotonic(), resident_mib(os.getpid()), in_use_mib(), sys.getallocatedblocks()
            out.write(json.dumps(line) + "\n")
            time.sleep(EVERY_SECONDS)


def main() -> None:
    path = Path(sys.argv.pop(1))
    from pipeline.__main__ import app

    threading.Thread(target=_write_down, args=(path,), daemon=True).start()
    app()


if __name__ == "__main__":
    main()
