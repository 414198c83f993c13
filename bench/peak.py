"""``python -m bench.peak ARGUMENT ...``: what ``python -m ingest`` does with the arguments, and the peak of its memory.

It is that of this process's own memory (``VmHWM``): what the system counts for a child (``ru_maxrss``) begins with the
memory of its parent.
"""

import sys
from pathlib import Path

import typer

from ingest.__main__ import app


def peak_mib() -> float:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


if __name__ == "__main__":
    try:
        app(sys.argv[1:], standalone_mode=False)
    except (SystemExit, typer.Exit):
        pass
    finally:
        print(peak_mib())
