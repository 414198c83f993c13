"""Counts of a minute, and each attempt's contribution to them: pure.

A later version of an attempt adds again: the contribution of its earlier version is taken back.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

import numpy as np

from engine.summaries.messages import count_nodes_by_reason
from schemas.events import NOT_REASONS, AttemptSummarized, Contribution, TrendsCounted

# Below the 64 KiB that every CloudEvents intermediary forwards.
ROWS_A_RECORD: Final = 250
"""Limit of rows per record: about 60 KiB with long names."""

PoolOf = Callable[[str], str]
Key = tuple[str, str, str, str]
"""Namespace, result, dimension and value."""


class Weight(NamedTuple):
    """Contribution of an attempt to one row."""

    key: Key
    nodes: int
    devices: int


Weights = tuple[Weight, ...]
"""Complete contribution of an attempt: hashable, so that attempts with equal contributions can share it."""


def derive_contribution(summary: AttemptSummarized, pool_of: PoolOf | None, obstacle: str = "") -> Contribution:
    """Derive the contribution of the attempt. ``obstacle``: code of what decided it, empty where that is not known."""
    rows = list(_iterate_rows(summary, pool_of, obstacle))
    return Contribution.model_construct(
        version=summary.version,
        status=summary.status,
        dimension=[row[0] for row in rows],
        value=[row[1] for row in rows],
        nodes=np.array([row[2] for row in rows], dtype=np.int64),
        devices=np.array([row[3] for row in rows], dtype=np.int64),
    )


def _iterate_rows(
    summary: AttemptSummarized, pool_of: PoolOf | None, obstacle: str
) -> Iterator[tuple[str, str, int, int]]:
    """Iterate over dimension, value, nodes and devices of the contribution."""
    yield "all", "", len(summary.nodes), summary.judged_devices
    devices = _count_refused_devices(summary)
    nodes = count_nodes_by_reason(summary)
    # As in a search by reason: a device that was passed over on a node that fits did not refuse the node.
    for code in sorted(nodes):
        yield "reason", code, nodes[code], devices.get(code, 0)
    if summary.bind and (code := summary.bind.reason):
        # The chosen node, which no device refused.
        yield "reason", code, 1, 0
    for model, count in (summary.balance.models if summary.balance else {}).items():
        yield "model", model, 0, count
    for pool, count in _count_by_pool(summary, pool_of).items():
        yield "pool", pool, count, 0
    description = summary.description
    origin = (("workload", description.workload), ("queue", description.queue)) if description else ()
    for dimension, value in (("obstacle", obstacle), *origin):
        if value:
            yield dimension, value, len(summary.nodes), summary.judged_devices


def _count_refused_devices(summary: AttemptSummarized) -> dict[str, int]:
    counts: dict[str, int] = {}
    for device in summary.balance.devices if summary.balance else ():
        for code, count in device.items():
            if code not in NOT_REASONS:
                counts[code] = counts.get(code, 0) + count
    return counts


def _count_by_pool(summary: AttemptSummarized, pool_of: PoolOf | None) -> dict[str, int]:
    pools: dict[str, int] = {}
    for node in summary.nodes if pool_of else ():
        if pool_of and (pool := pool_of(node)):
            pools[pool] = pools.get(pool, 0) + 1
    return pools


def list_weights(namespace: str, adds: Contribution) -> Weights:
    """List the rows of the namespace that the contribution adds to."""
    columns = zip(adds.dimension, adds.value, adds.nodes.tolist(), adds.devices.tolist(), strict=True)
    return tuple(
        Weight((namespace, adds.status, dimension, value), nodes, devices)
        for dimension, value, nodes, devices in columns
    )


class Row(NamedTuple):
    key: Key
    attempts: int
    pods: int
    nodes: int
    devices: int


@dataclass(slots=True)
class _Sum:
    """Sum of additions, less what was taken back; negative if it had been added to another sum."""

    attempts: int = 0
    pods: int = 0
    nodes: int = 0
    devices: int = 0
    attempts_by_pod: dict[str, int] = field(default_factory=dict)
    """Number of attempts by pod, without zeros."""

    def add(self, pod: str, weight: Weight, times: int) -> None:
        """Add ``times`` the weight of an attempt of the pod; -1 takes it back."""
        self.attempts += times
        self.nodes += times * weight.nodes
        self.devices += times * weight.devices
        before = self.attempts_by_pod.pop(pod, 0)
        if after := before + times:
            self.attempts_by_pod[pod] = after
        # A pod counts once however many attempts it has, and so does one that is taken back.
        self.pods += _get_sign(after) - _get_sign(before)


def _get_sign(number: int) -> int:
    return (number > 0) - (number < 0)


@dataclass(slots=True)
class Minute:
    """Attempts of a cluster that began in one minute, of one partition, counted under one ``recorded_at``."""

    cluster: str
    started_at: datetime
    partition: int
    recorded_at: datetime
    version: int = 0
    """Number of calls of ``put``: readers keep the rows with the greatest."""
    _sums: dict[Key, _Sum] = field(default_factory=dict)

    def put(self, pod: str, adds: Weights, replaces: Weights) -> None:
        """Count an attempt of the pod; ``replaces`` is its earlier contribution, here or under another
        ``recorded_at``."""
        self.version += 1
        for weight in replaces:
            self._open_sum(weight.key).add(pod, weight, -1)
        for weight in adds:
            self._open_sum(weight.key).add(pod, weight, 1)

    def _open_sum(self, key: Key) -> _Sum:
        if (total := self._sums.get(key)) is None:
            total = self._sums[key] = _Sum()
        return total

    def list_rows(self) -> list[Row]:
        """List the rows by key, also those with nothing left: readers have to overwrite their earlier numbers."""
        sums = ((key, self._sums[key]) for key in sorted(self._sums))
        return [Row(key, total.attempts, total.pods, total.nodes, total.devices) for key, total in sums]


def build_records(minute: Minute) -> Iterator[TrendsCounted]:
    """Split the minute into events."""
    rows = minute.list_rows()
    cuts = range(0, max(len(rows), 1), ROWS_A_RECORD)
    for part, start in enumerate(cuts):
        cut = rows[start : start + ROWS_A_RECORD]
        namespace, result, dimension, value = ([row.key[index] for row in cut] for index in range(4))
        counts = {name: [getattr(row, name) for row in cut] for name in ("attempts", "pods", "nodes", "devices")}
        yield TrendsCounted(
            cluster=minute.cluster,
            started_at=minute.started_at,
            partition=minute.partition,
            recorded_at=minute.recorded_at,
            version=minute.version,
            part=part,
            parts=len(cuts),
            namespace=namespace,
            result=result,
            dimension=dimension,
            value=value,
            **counts,
        )
