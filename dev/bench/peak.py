"""``python -m dev.bench.peak``: reads a scheduler's log from standard input, keeps no event, prints its peak memory.

The figure is this process's ``VmHWM``. The ``ru_maxrss`` of a child would not do: it begins with the memory of its
parent.
"""

from collections import deque
from pathlib import Path

from ingest.cases.read_log import read_log
from schemas.events import Event

STANDARD_INPUT = Path("-")


def read_peak_mib() -> float:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


if __name__ == "__main__":
    events: deque[Event] = deque(maxlen=0)
    read_log(STANDARD_INPUT, events.extend)
    print(read_peak_mib())
