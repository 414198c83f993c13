"""The CPU time in which readers pass over a log, compared with bare loops over its lines; and their peak memory."""

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from subprocess import DEVNULL, PIPE

from dev.bench.backends import FOLDER
from dev.bench.hami_log import iterate_hami_log
from dev.bench.kai_log import iterate_kai_log, to_json_lines
from dev.bench.report import Figure, Result, add_ratios
from ingest.readers.hami.reader import HamiLog
from ingest.readers.kai import KaiLog
from ingest.reading.protocol import LogReader, collect_garbage_seldom
from ingest.sources.follow import Reached, read_file

NODES = 5_000
ATTEMPTS = 4
REPEATS = 3
KAI_NODES, KAI_PODS, KAI_SESSIONS = 400, 20, 6
TIMES_AS_LARGE = 4
CHUNK_BYTES = 1024**2

_KLOG = re.compile(rb"^([IWEF])(\d{4}) (\S+) +(\d+) (\S+):(\d+)\] (.*)$")
_CONSOLE = re.compile(rb"^(\S+)\t(\w+)\t(\S+):(\d+)\t(.*)$")
_JSON = re.compile(rb'^\{"level":"(\w+)","ts":"([^"]*)","caller":"([^":]*):(\d+)","msg":(.*)$')

Subject = tuple[str, Callable[[], LogReader], re.Pattern[bytes]]
"""A reader's name, its constructor, and a regular expression for the head of its lines."""


def measure_hami_log() -> Result:
    """Measure the reader of HAMi's log at -v=5: four attempts on 5,000 nodes of 8 devices, 1,060,016 lines."""
    return _measure_passes(
        "ingest",
        "HAMi's log at -v=5",
        f"{ATTEMPTS} attempts on {NODES:,} nodes of 8 devices, all refused",
        chain.from_iterable(iterate_hami_log(NODES, b"trainer-%d" % attempt) for attempt in range(ATTEMPTS)),
        ("hami-log", HamiLog, _KLOG),
    )


def measure_kai_log() -> Result:
    """Measure the reader of KAI's console log at --v=8: sessions of 20 pods over 400 nodes of 8 shared devices."""
    return _measure_kai("ingest-kai", "console log", lambda lines: lines, _CONSOLE)


def measure_kai_json_log() -> Result:
    """Measure the reader of the same sessions with ``--log-json``."""
    return _measure_kai("ingest-kai-json", "log in JSON", to_json_lines, _JSON)


def _measure_kai(
    name: str, form: str, written: Callable[[Iterator[bytes]], Iterator[bytes]], heads: re.Pattern[bytes]
) -> Result:
    sessions = (iterate_kai_log(KAI_NODES, KAI_PODS, f"s{session}aaaa") for session in range(KAI_SESSIONS))
    return _measure_passes(
        name,
        f"KAI's {form} at --v=8",
        f"{KAI_SESSIONS} sessions, {KAI_PODS} pods on {KAI_NODES} nodes of 8 shared devices, all refused",
        chain.from_iterable(map(written, sessions)),
        ("kai-log", KaiLog, heads),
    )


def _measure_passes(name: str, log: str, work: str, lines: Iterable[bytes], subject: Subject) -> Result:
    """Measure one pass over a file of ``lines`` by the reader and by simpler loops; then the peak memory of the
    reader."""
    path = FOLDER / name / "scheduler.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.writelines(lines)
    reader, make, heads = subject
    paths: dict[str, Callable[[Path], object]] = {
        "iterate over the lines": _iterate,
        "one compiled regex a line": lambda path: _match_heads(path, heads),
        f"python -m ingest {reader}": lambda path: _read(path, make()),
    }
    figures = [_measure(path_name, walk, path) for path_name, walk in paths.items()]
    size = path.stat().st_size / 1e6
    # The same peak for a log four times as long shows that memory does not grow with it.
    peaks = tuple(_measure_peak(path, times) for times in (1, TIMES_AS_LARGE))
    # Hundreds of MB.
    path.unlink()
    return Result(
        name,
        f"CPU time of one pass over a file of {log}, from bytes to events; best of three; peak memory of the process",
        f"{size:.0f} MB, {work}",
        (*add_ratios(figures, lambda first, this: this / first), *peaks),
    )


def _measure(name: str, walk: Callable[[Path], object], path: Path) -> Figure:
    # Other work on the machine only ever adds time.
    best = min(_measure_cpu_seconds(walk, path) for _ in range(REPEATS))
    return Figure(name, path.stat().st_size / best / 1e6, "MB/s per core")


def _measure_peak(path: Path, times: int) -> Figure:
    """Measure the peak memory of a process that reads the file ``times`` times in a row."""
    arguments = [sys.executable, "-m", "dev.bench.peak"]
    with subprocess.Popen(arguments, stdin=PIPE, stdout=PIPE, stderr=DEVNULL) as process:
        assert process.stdin
        assert process.stdout
        for _ in range(times):
            with path.open("rb") as log:
                shutil.copyfileobj(log, process.stdin, CHUNK_BYTES)
        process.stdin.close()
        peak = float(process.stdout.read().split()[-1])
    return Figure(f"peak over {path.stat().st_size * times / 1e6:.0f} MB", peak, "MiB")


def _measure_cpu_seconds(walk: Callable[[Path], object], path: Path) -> float:
    begun = time.process_time()
    walk(path)
    return time.process_time() - begun


def _iterate(path: Path) -> int:
    with path.open("rb") as lines:
        return sum(1 for _ in lines)


def _match_heads(path: Path, heads: re.Pattern[bytes]) -> int:
    with path.open("rb") as lines:
        return sum(heads.match(line) is not None for line in lines)


def _read(path: Path, reader: LogReader) -> int:
    collect_garbage_seldom()
    return sum(1 for _ in _iterate_events(path, reader))


def _iterate_events(path: Path, reader: LogReader) -> Iterator[object]:
    for lines, _, _ in read_file(path, Reached()):
        yield from reader.feed(lines)
    yield from reader.close()
