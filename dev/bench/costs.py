"""CPU of one attempt in worker and index writer, next to reading its JSON and nothing else.

All in one process and in turns, without Kafka: ``stages`` measures both processes with it. The first figure is a loop
that does the same work each time: on a machine with other work it takes longer, too, and so do all others.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from statistics import median
from typing import Final

import orjson

from dev.bench import cluster
from dev.bench.in_process import InProcess, Spent, decode_attempt
from dev.bench.report import Figure, Result, add_ratios
from schemas.codec.records import EncodedRecord, Rejected, decode, encode
from schemas.topics import ATTEMPTS

SIZES: Final = {10: 200, 100: 150, 5_000: 12}
"""Attempts by nodes; the first third is the warm-up."""
TOGETHER: Final = 20
"""Attempts of a batch of a busy worker."""
CALIBRATION_ROUNDS: Final = 20_000
_UNIT: Final = "CPU ms"


def measure_costs() -> Result:
    """Measure the least and the median CPU time of an attempt. Goals: worker 0.4, 1.2 and 4 ms at 10, 100 and 5,000
    nodes, index writer 0.3, 0.8 and 5, a repeated attempt in both 0.15 at 10 and 0.4 at 5,000."""
    calibrations: list[float] = []
    figures: list[Figure] = []
    for nodes, attempts in SIZES.items():
        figures += _measure_size(nodes, attempts, calibrations)
    first = _to_figure("calibration: a loop of arithmetic and JSON", calibrations)
    return Result(
        "costs",
        "CPU of the worker's own agent and writer and of the index writer's documents and bodies, an attempt at a "
        "time, next to parsing its JSON, and to decoding it as raw consumers of the benchmarks do; ratio: to the "
        "calibration loop",
        ", ".join(f"{count} attempts of {nodes:,} nodes" for nodes, count in SIZES.items())
        + f" x {cluster.DEVICES_PER_NODE} devices, different pods, all refused; 1 % of the nodes change in between; "
        "then one pod again and again, every ten seconds, in full and as unchanged",
        tuple(
            figure if figure.unit == _UNIT else replace(figure, ratio=None)
            for figure in add_ratios([first, *figures], lambda loop, this: this / loop)
        ),
    )


def _measure_size(nodes: int, attempts: int, calibrations: list[float]) -> list[Figure]:
    pipeline = InProcess()
    tried = list(cluster.iterate_attempts(nodes, attempts, changing=0.01))
    # Buffers grow and caches fill during the first attempts; in operation that happens once.
    warm_up, measured = tried[: attempts // 3], tried[attempts // 3 :]
    pipeline.run_attempts(warm_up)
    pipeline.reset_times()
    parsed, decoded = list[float](), list[float]()
    for records in measured:
        calibrations.append(_measure(_run_calibration))
        parsed.append(_measure(partial(_parse, records)))
        decoded.append(_measure(partial(decode_attempt, records)))
        pipeline.run_attempts([records])
    first = pipeline.spent
    pipeline.reset_times()
    pipeline.run_attempts(_take_others(nodes, len(measured)), TOGETHER)
    together = [milliseconds / TOGETHER for milliseconds in pipeline.spent.worker]
    original, *retries = _list_tries(nodes, 1 + len(measured))
    pipeline.run_attempts([original])
    pipeline.reset_times()
    pipeline.run_attempts(retries)
    again = pipeline.spent
    first_try, *tries = _list_unchanged(nodes, 1 + len(measured))
    pipeline.run_attempts([first_try])
    pipeline.reset_times()
    pipeline.run_attempts(tries)
    unchanged = pipeline.spent
    where = f"{nodes:,} nodes"
    return [
        _to_figure(f"{where}: JSON alone", parsed),
        _to_figure(f"{where}: decode", decoded),
        _to_figure(f"{where}: worker", first.worker),
        _to_figure(f"{where}: worker, {TOGETHER} in a batch", together),
        _to_figure(f"{where}: index writer", _add(first.documents, first.bodies)),
        _to_figure(f"{where}: repeated attempt, worker", again.worker),
        _to_figure(f"{where}: repeated attempt, index writer", _add(again.documents, again.bodies)),
        _to_figure(f"{where}: unchanged attempt, worker", unchanged.worker),
        _to_figure(f"{where}: unchanged attempt, index writer", _add(unchanged.documents, unchanged.bodies)),
        _to_figure(f"{where}: unchanged attempt, records only", _measure_codec(tries[-1], unchanged.samples[-1])),
        _to_byte_figure(f"{where}: all topics", first),
        _to_byte_figure(f"{where}: all topics, repeated attempt", again),
        _to_byte_figure(f"{where}: all topics, unchanged attempt", unchanged),
    ]


def _measure_codec(read: Sequence[EncodedRecord], sample: Sequence[EncodedRecord]) -> list[float]:
    """Measure decoding what the worker reads, encoding what it publishes, and decoding that part which is indexed."""
    published = [(record, decode(record.value, record.headers)) for record in sample[len(read) :]]
    indexed = [record for record, _ in published if record.topic == ATTEMPTS.name]

    def handle() -> None:
        for record in (*read, *indexed):
            decode(record.value, record.headers)
        for record, event in published:
            assert not isinstance(event, Rejected)
            encode(event, record.topic, record.partition)

    return [_measure(handle) for _ in range(200)]


def _take_others(nodes: int, count: int) -> Iterator[list[EncodedRecord]]:
    """Yield attempts of other pods, in full batches."""
    return cluster.iterate_warm_up(nodes, max(count // TOGETHER, 1) * TOGETHER, changing=0.01)


def _list_tries(nodes: int, count: int) -> list[list[EncodedRecord]]:
    """List attempts of one pod that find the cluster unchanged, as a reader of logs publishes them."""
    columns, times = cluster.build_columns(nodes), _list_times(count)
    return [cluster.encode_attempt(columns, cluster.WARM_UP, started_at=time) for time in times]


def _list_unchanged(nodes: int, count: int) -> list[list[EncodedRecord]]:
    """List attempts of another pod that find the cluster unchanged, as a scheduler publishes them."""
    columns, (first, *times) = cluster.build_columns(nodes), _list_times(count)
    number = cluster.WARM_UP + 1
    original = cluster.encode_attempt(columns, number, started_at=first)
    return [original, *([cluster.encode_unchanged(number, first, time)] for time in times)]


def _list_times(count: int) -> list[datetime]:
    """List times until now, apart as the retries of kube-scheduler with its longest backoff."""
    now = datetime.now(UTC)
    return [now - timedelta(seconds=10 * number) for number in range(count, 0, -1)]


def _parse(records: Sequence[EncodedRecord]) -> list[object]:
    return [orjson.loads(record.value) for record in records]


def _add(*columns: Sequence[float]) -> list[float]:
    return [sum(row) for row in zip(*columns, strict=True)]


def _measure(call: Callable[[], object]) -> float:
    began = time.process_time()
    call()
    return (time.process_time() - began) * 1_000


def measure_calibration() -> float:
    """Measure the least CPU milliseconds of the calibration loop."""
    return min(_measure(_run_calibration) for _ in range(20))


def _run_calibration() -> int:
    total = 0
    for number in range(CALIBRATION_ROUNDS):
        total += number * number % 7
    return total + len(orjson.dumps(list(range(CALIBRATION_ROUNDS))))


def _to_byte_figure(path: str, spent: Spent) -> Figure:
    plain, batches = spent.count_bytes()
    return Figure(path, plain / 1_000, "kB", note=f"{batches / 1_000:.3g} in the log of the broker")


def _to_figure(path: str, milliseconds: Sequence[float]) -> Figure:
    """Build a figure of the least time, which other work on the machine disturbs least."""
    return Figure(path, min(milliseconds), _UNIT, note=f"median {median(milliseconds):.3g}")
