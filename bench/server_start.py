"""What Java's ahead-of-time cache saves of the start of each embedded server."""

import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Final

from rich.console import Console

from bench.report import Figure, Result
from embedded.aot_cache import train
from embedded.backends import Backends
from embedded.installed import installed_jvms
from embedded.jvm import Jvm, settings_from
from embedded.lock import KINDS, ServerKind
from embedded.plan import plan
from embedded.process import ParentWatch
from embedded.progress import progress_on

RUNS: Final = 4
_TICKS: Final = os.sysconf("SC_CLK_TCK")


def server_start() -> Result:
    """CPU seconds of a server from its start until it is ready, without and with the cache, in turns."""
    jvms = installed_jvms(settings_from(os.environ))
    train(jvms, progress_on(Console(stderr=True)))
    figures: list[Figure] = []
    for kind in KINDS:
        with_cache = jvms[kind]
        without = replace(with_cache, aot_folder=Path(os.devnull))
        runs = [(_start(kind, without), _start(kind, with_cache)) for _ in range(RUNS)]
        plain, cached = (min(cpu for cpu, _ in each) for each in zip(*runs, strict=True))
        plain_s, cached_s = (min(seconds for _, seconds in each) for each in zip(*runs, strict=True))
        figures += [
            Figure(kind, plain, "s", 1.0, f"ready after {plain_s:.1f} s"),
            Figure(f"{kind} with the cache", cached, "s", round(cached / plain, 2), f"ready after {cached_s:.1f} s"),
        ]
    return Result(
        "server-start",
        "CPU time of an embedded server until it is ready, without Java's ahead-of-time cache and with it",
        f"the least of {RUNS} runs",
        tuple(figures),
    )


def _start(kind: ServerKind, jvm: Jvm) -> tuple[float, float]:
    parent_watch = ParentWatch()
    try:
        with tempfile.TemporaryDirectory(prefix="schedulerlog-", ignore_cleanup_errors=True) as folder:
            home = Path(folder).resolve()
            servers = Backends(home, plan(home, None, (kind,), 1), {kind: jvm}, parent_watch)
            began = time.monotonic()
            try:
                servers.start((kind,))
                return _cpu_seconds(servers.servers[0].pid), time.monotonic() - began
            finally:
                servers.kill()
    finally:
        parent_watch.close()


def _cpu_seconds(pid: int) -> float:
    # After the name, which may hold spaces: utime and stime are the twelfth and thirteenth of proc(5)'s fields there.
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
