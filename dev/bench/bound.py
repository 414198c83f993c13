"""Least CPU of a worker at 10 nodes: everything that derives something is left out, then also codec, then also sending.

``python -m dev.bench.bound STEP …`` is a worker that goes no further than the step; the arguments after it are those of
``python -m pipeline``. It publishes for each attempt the records of another one.
"""

import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import chain, count
from typing import Final, NamedTuple

from dev.bench import cluster
from dev.bench.backends import FOLDER
from dev.bench.costs import measure_calibration
from dev.bench.in_process import InProcess, decode_attempt
from dev.bench.overrides import run_changed_worker
from dev.bench.report import Figure, Result, add_ratios
from dev.bench.services import PATIENT
from dev.bench.worker import WARM_UP_ATTEMPTS
from dev.demo.stack import provisioned
from runtime.kafka.record import Record
from schemas.codec.records import EncodedRecord, Rejected, decode, encode

READ, SEND, CODEC, ALL = "read", "send", "codec", "all"
STEPS: Final = {
    READ: "read and acknowledge",
    SEND: "and send the records of another attempt",
    CODEC: "and decode what is read, encode what is sent",
    ALL: "everything",
}
NODES, ATTEMPTS, ROUNDS = 10, 1_500, 3


def measure_bound() -> Result:
    """Measure the CPU of only the worker, Kafka to Kafka, up to each step; the best of some rounds, in turns."""
    cpu_ms, numbers = defaultdict[str, list[float]](list), count()
    calibrations: list[float] = []
    with provisioned(FOLDER / "bound", **PATIENT) as (backends, processes):
        warm_up = list(chain(*cluster.iterate_warm_up(NODES, WARM_UP_ATTEMPTS)))
        for step in list(STEPS) * ROUNDS:
            # New ones each time: a worker does less for an attempt that it has published before.
            first = next(numbers) * ATTEMPTS
            records = list(chain(*cluster.iterate_attempts(NODES, ATTEMPTS, changing=0.01, first=first)))
            calibrations.append(measure_calibration())
            program = ("dev.bench.bound", step)
            spent = run_changed_worker(processes, backends.bootstrap_servers, program, warm_up, records)
            cpu_ms[step].append(spent.cpu_seconds / ATTEMPTS * 1_000)
    unit = "CPU ms an attempt"
    loop = Figure("calibration: a loop of arithmetic and JSON", min(calibrations), unit)
    figures = [Figure(STEPS[step], min(values), unit) for step, values in cpu_ms.items()]
    return Result(
        "bound",
        "The worker, from decisions to what follows from them on the topics, up to each step; ratio: to the "
        "calibration loop",
        f"the best of {ROUNDS} rounds, in turns: {ATTEMPTS:,} attempts of {NODES} nodes",
        add_ratios([loop, *figures], lambda first, this: this / first),
    )


class _PassedAttempt(NamedTuple):
    """An attempt in the writer's queue of which nothing is derived."""

    record: Record
    size: int
    on_written: Callable[[], None]


def _limit(step: str) -> None:
    """Let the worker of this process go no further than the step."""
    if step not in STEPS:
        sys.exit(f"no step is called {step}")
    if step == ALL:
        return
    from pipeline.worker.agent import DecisionsAgent, _Partition
    from pipeline.worker.writer import Writer

    published = _list_published()
    events = [decode(record.value, record.headers) for record in published]
    offsets = defaultdict[int, list[int]](list)

    async def process(agent: DecisionsAgent, record: Record) -> None:
        partition: _Partition = agent._get_partition(record.topic, record.partition)
        partition.offsets.track(record.offset, record.acknowledge)
        offsets[record.partition].append(record.offset)
        if step == CODEC:
            decode(record.value, record.headers)
        if not dict(record.headers)["ce_type"].endswith(b"concluded.v1"):
            return
        attempt = offsets.pop(record.partition)
        if step == READ:
            partition.complete(attempt)
        else:
            size = sum(len(record.value) for record in published)
            await agent._put(partition, _PassedAttempt(record, size, lambda: partition.complete(attempt)))  # type: ignore[arg-type]

    def build(number: int, record: Record) -> EncodedRecord:
        result, event = published[number], events[number]
        if step == CODEC and not isinstance(event, Rejected):
            result = encode(event, result.topic, result.partition)
        # As the records of the worker: those of one pod are in one partition.
        return result._replace(key=record.key or b"", partition=record.partition)

    async def publish(writer: Writer, writes: Sequence[_PassedAttempt]) -> None:
        last = len(published) - 1
        await writer._topics.send([build(number, write.record) for write in writes for number in range(last)])
        # The history of the pod is sent behind all others.
        await writer._topics.send([build(last, write.record) for write in writes])
        for write in writes:
            write.on_written()

    DecisionsAgent._process = process  # type: ignore[method-assign, assignment]
    Writer._publish = publish  # type: ignore[method-assign, assignment]


def _list_published() -> list[EncodedRecord]:
    """List the records that a worker publishes of an attempt, its history last."""
    (records,) = cluster.iterate_attempts(NODES, 1)
    pipeline = InProcess()
    pipeline.run_attempts([records])
    return pipeline.spent.samples[0][len(decode_attempt(records)) :]


if __name__ == "__main__":
    _limit(sys.argv.pop(1))
    from pipeline.__main__ import app

    app()
