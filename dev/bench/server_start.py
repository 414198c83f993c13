"""What Java's ahead-of-time cache saves of the start of each embedded server."""

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Final

from rich.console import Console

from dev.bench.cpu import cpu_seconds
from dev.bench.report import Figure, Result
from dev.embedded.aot_cache import train
from dev.embedded.backends import running
from dev.embedded.installed import installed_jvms
from dev.embedded.jvm import Jvm, settings_from
from dev.embedded.lock import KINDS, ServerKind
from dev.embedded.progress import progress_on

RUNS: Final = 4


def server_start() -> Result:
    """CPU seconds of a server from its start until it is ready, without and with the cache, in turns."""
    jvms = installed_jvms(settings_from(os.environ))
    train(jvms, progress_on(Console(stderr=True)))
    figures: list[Figure] = []
    for kind in KINDS:
        with_cache = jvms[kind]
        # No file can be below it.
        without = replace(with_cache, aot_folder=Path(os.devnull))
        runs = [(_start(kind, without), _start(kind, with_cache)) for _ in range(RUNS)]
        plain, cached = (min(cpu for cpu, _ in starts) for starts in zip(*runs, strict=True))
        plain_s, cached_s = (min(seconds for _, seconds in starts) for starts in zip(*runs, strict=True))
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
    """CPU and seconds until it is ready."""
    began = time.monotonic()
    with running({kind: jvm}, (kind,)) as servers:
        return cpu_seconds(servers.servers[0].pid), time.monotonic() - began
