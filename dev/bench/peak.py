"""``python -m dev.bench.peak ARGUMENT ...``: runs ``python -m ingest`` with the arguments and prints its peak memory.

The figure is this process's ``VmHWM``. The ``ru_maxrss`` of a child would not do: it begins with the memory of its
parent.
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
