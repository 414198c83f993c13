"""CPU time of calls, and CPU time, memory and CPUs of other processes (Linux)."""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def measure_milliseconds(call: Callable[[], object], calls: int) -> float:
    """Measure the median CPU time of some calls, in milliseconds."""
    times = []
    for _ in range(calls):
        begun = time.process_time()
        call()
        times.append(time.process_time() - begun)
    return median(times) * 1_000


def read_cpu_seconds(pid: int) -> float:
    """Read user and system time of the process and its ended children, in steps of 10 ms."""
    # The second field is the program's name in brackets and may itself hold spaces and brackets: fields count from the
    # last one.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    # utime, stime, cutime, cstime: fields 14 to 17 of proc(5).
    return sum(map(int, fields[11:15])) / _TICKS_PER_SECOND


def read_resident_mib(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@contextmanager
def apart(measured_pid: int, others: Iterable[int]) -> Iterator[None]:
    """Context in which the process ``measured_pid`` has half of the CPUs; this process, its new children and ``others``
    share the other half.
    """
    cpus = sorted(os.sched_getaffinity(0))
    measured_cpus, other_cpus = cpus[: len(cpus) // 2], cpus[len(cpus) // 2 :]
    if not measured_cpus:
        raise RuntimeError("this benchmark needs two CPUs, one for each side; this machine has one")
    _pin(measured_pid, measured_cpus)
    for pid in (os.getpid(), *others):
        _pin(pid, other_cpus)
    try:
        yield
    finally:
        _pin(os.getpid(), cpus)


def _pin(pid: int, cpus: Iterable[int]) -> None:
    # An affinity belongs to a thread, and a JVM has started dozens by now; later ones inherit it.
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(ProcessLookupError):  # it has ended meanwhile
            os.sched_setaffinity(int(thread.name), cpus)
