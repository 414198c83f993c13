"""Memory of a worker's pod histories: four million pods tried within a day, by positions and by their whole JSON."""

import asyncio
import multiprocessing
import os
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from dev.bench.cpu import read_resident_mib
from dev.bench.report import Figure, Result
from dev.bench.takeover import build_history
from pipeline.worker.batch import HistoryKey
from pipeline.worker.pod_positions import PodPosition, PositionsReader
from pipeline.worker.published import PodHistories
from schemas.codec.records import encode

PODS: Final = 4_000_000
IN_WHOLE: Final = 200_000
"""Pods whose JSON is kept whole: the memory for each does not depend on their number."""
PARTITIONS: Final = 12
BATCH_PODS: Final = 100
"""Pods of one batch of the worker."""


class _NoTopics:
    """Topics without records."""

    async def read_all(self, _topic: str, _partitions: Iterable[int], _take: Callable[[Any], None]) -> None:
        """Read nothing."""

    async def read_offsets(self, _topic: str, _partition: int, _offsets: list[int]) -> list[Any]:
        """Read nothing."""
        return []


def measure_histories() -> Result:
    """Measure both in processes of their own. Goal: four million pods in a worker of 768 MiB."""
    json_mib, positions_mib, per_put, per_find = (
        _measure(work) for work in (_keep_whole, _keep_positions, _put, _find)
    )
    sizes = {"their whole JSON": json_mib / IN_WHOLE, "positions and the latest JSON": positions_mib / PODS}
    figures = [Figure(f"{how}, a pod", round(mib * 2**20), "bytes") for how, mib in sizes.items()]
    figures += [
        Figure(f"positions and the latest JSON, {PODS:,} pods", round(positions_mib), "MiB", note="beyond the process"),
        Figure("noting a history", round(per_put * 1e6, 2), "us of CPU"),
        Figure(f"looking for one of {PODS:,}, {BATCH_PODS} at once", round(per_find * 1e6, 2), "us of CPU"),
    ]
    return Result(
        "histories",
        "Memory of a worker for each pod tried within a day, beside that of the JSON of its history. Goal: four "
        "million pods in 768 MiB, with a process of 90 MiB",
        f"{PODS:,} pods on {PARTITIONS} partitions; {IN_WHOLE:,} of whole JSON",
        tuple(figures),
    )


def _measure(work: Callable[[], float]) -> float:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work)


def _identify(number: int) -> HistoryKey:
    return HistoryKey(number % PARTITIONS, f"default/team-{number % 40}/batch-{number}/hami-scheduler")


def _keep_whole() -> float:
    value = encode(build_history(0)).value
    before = read_resident_mib(os.getpid())
    values = {_identify(number): bytes(bytearray(value)) for number in range(IN_WHOLE)}
    return (read_resident_mib(os.getpid()) - before) * len(values) / IN_WHOLE


def _keep_positions() -> float:
    before = read_resident_mib(os.getpid())
    histories = _fill(PODS)
    assert len(histories) == PODS
    return read_resident_mib(os.getpid()) - before


def _put() -> float:
    began = time.process_time()
    _fill(IN_WHOLE)
    return (time.process_time() - began) / IN_WHOLE


def _fill(pods: int) -> PodHistories:
    history = build_history(0)
    value = encode(history).value
    histories = PodHistories(_NoTopics())
    asyncio.run(histories.read([_identify(number) for number in range(PARTITIONS)]))
    for number in range(pods):
        histories.put(_identify(number), history, value, number)
    return histories


def _find() -> float:
    reader = PositionsReader()
    for number in range(0, PODS, PARTITIONS):
        reader.add(_identify(number), PodPosition(number, 0, 0, 0))
    positions = reader.build()
    wanted = [_identify(number) for number in range(0, BATCH_PODS * PARTITIONS * 7, PARTITIONS * 7)]
    began = time.process_time()
    times = 1_000
    for _ in range(times):
        assert len(positions.find(wanted)) == BATCH_PODS
    return (time.process_time() - began) / times / BATCH_PODS
