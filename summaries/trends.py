"""What each attempt adds to the counts of its minute, and the counts of all of them: pure.

A minute is counted from what its attempts contribute, each under its id: an attempt that is published again, or read
again after a crash, replaces its earlier contribution, which is subtracted.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple

from schemas.events import NOT_REASONS, AttemptSummarized, TrendsCounted
from schemas.ids import microseconds
from summaries.messages import refused_by_code

# Below the 64 KiB that every CloudEvents intermediary forwards.
ROWS_A_RECORD: Final = 250
"""About 60 KiB with long names."""

PoolOf = Callable[[str], str]
Key = tuple[str, str, str, str]
"""Namespace, result, dimension, value."""


class Weight(NamedTuple):
    nodes: int
    devices: int


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one attempt adds."""

    attempt_id: str
    pod: str
    version: int
    namespace: str
    result: str
    weights: Mapping[tuple[str, str], Weight]
    """By dimension and value."""

    def plain(self) -> dict[str, Any]:
        """As the document of the attempt keeps it."""
        return {
            "version": self.version,
            "weights": [[*key, *weight] for key, weight in self.weights.items()],
        }


def contribution(summary: AttemptSummarized, pool_of: PoolOf | None) -> Contribution:
    weights = {("all", ""): Weight(len(summary.nodes), summary.judged_devices)}
    devices = _refused_devices(summary)
    nodes = summary.refused_nodes | refused_by_code(summary)
    for code in sorted(nodes.keys() | devices.keys()):
        weights["reason", code] = Weight(nodes.get(code, 0), devices.get(code, 0))
    for model, count in (summary.balance.models if summary.balance else {}).items():
        weights["model", model] = Weight(0, count)
    for pool, count in _pools(summary, pool_of).items():
        weights["pool", pool] = Weight(count, 0)
    # A UID where there is one: a pod made again under the same name is another pod in the count.
    pod, key = summary.pod, summary.pod.uid or str(summary.pod)
    return Contribution(summary.attempt_id, key, summary.version, pod.namespace, summary.status, weights)


def contribution_of(document: Mapping[str, Any]) -> Contribution | None:
    """The contribution that a document of the attempts index holds; None where it holds none."""
    counts = document.get("counts")
    if not counts:
        return None
    pod = document["pod_uid"] or f"{document['namespace']}/{document['pod']}"
    weights = {(dimension, value): Weight(nodes, devices) for dimension, value, nodes, devices in counts["weights"]}
    head = document["attempt_id"], pod, counts["version"], document["namespace"], document["status"]
    return Contribution(*head, weights)


def _refused_devices(summary: AttemptSummarized) -> dict[str, int]:
    counts: dict[str, int] = {}
    for each in summary.balance.devices if summary.balance else ():
        for code, count in each.items():
            if code not in NOT_REASONS:
                counts[code] = counts.get(code, 0) + count
    return counts


def _pools(summary: AttemptSummarized, pool_of: PoolOf | None) -> dict[str, int]:
    pools: dict[str, int] = {}
    for node in summary.nodes if pool_of else ():
        if pool_of and (pool := pool_of(node)):
            pools[pool] = pools.get(pool, 0) + 1
    return pools


class Row(NamedTuple):
    key: Key
    attempts: int
    pods: int
    nodes: int
    devices: int


@dataclass(slots=True)
class _Sum:
    """Of what was put, less what was replaced."""

    attempts: int = 0
    nodes: int = 0
    devices: int = 0
    pods: dict[str, int] = field(default_factory=dict)
    """Attempts of each."""

    def add(self, pod: str, weight: Weight) -> None:
        self.attempts += 1
        self.nodes += weight.nodes
        self.devices += weight.devices
        self.pods[pod] = self.pods.get(pod, 0) + 1

    def take_away(self, pod: str, weight: Weight) -> None:
        self.attempts -= 1
        self.nodes -= weight.nodes
        self.devices -= weight.devices
        self.pods[pod] -= 1
        if not self.pods[pod]:
            del self.pods[pod]

    def row(self, key: Key) -> Row:
        return Row(key, self.attempts, len(self.pods), self.nodes, self.devices)


@dataclass(slots=True)
class Minute:
    """The attempts that began in one minute, of one partition."""

    started_at: datetime
    partition: int
    contributions: dict[str, Contribution] = field(default_factory=dict)
    published: set[Key] = field(default_factory=set)
    """Rows that were written somewhere and must become 0 when nothing is left to count."""
    version: int = 0
    """Grows with every attempt and with everything that becomes known of one: their sum, from ``started_at``."""
    _sums: dict[Key, _Sum] = field(default_factory=dict)

    def put(self, each: Contribution) -> bool:
        """Add or replace a contribution; True when that changes the counts. The greater version counts."""
        known = self.contributions.get(each.attempt_id)
        # A smaller version may arrive after a greater one: records are read again after a crash.
        if known and known.version >= each.version:
            return False
        if known:
            for key, weight in _keyed(known):
                self._sums[key].take_away(known.pod, weight)
        for key, weight in _keyed(each):
            if (found := self._sums.get(key)) is None:
                found = self._sums[key] = _Sum()
            found.add(each.pod, weight)
        self.contributions[each.attempt_id] = each
        # It depends on the set of contributions and not on the order they came in, so two workers count the same
        # version.
        self.version += each.version - (known.version if known else microseconds(self.started_at))
        return True

    def rows(self) -> list[Row]:
        """Sorted by key; with those that have nothing to count any more."""
        # A row that vanished would leave its old numbers in the index; it has to be overwritten with 0.
        self.published |= self._sums.keys()
        return [
            self._sums[key].row(key) if key in self._sums else Row(key, 0, 0, 0, 0) for key in sorted(self.published)
        ]


def _keyed(each: Contribution) -> Iterator[tuple[Key, Weight]]:
    for (dimension, value), weight in each.weights.items():
        yield (each.namespace, each.result, dimension, value), weight


def records(minute: Minute) -> Iterator[TrendsCounted]:
    """The minute as events."""
    rows, version = minute.rows(), minute.version
    cuts = range(0, max(len(rows), 1), ROWS_A_RECORD)
    for part, start in enumerate(cuts):
        cut = rows[start : start + ROWS_A_RECORD]
        namespace, result, dimension, value = ([row.key[place] for row in cut] for place in range(4))
        counts = {name: [getattr(row, name) for row in cut] for name in ("attempts", "pods", "nodes", "devices")}
        yield TrendsCounted(
            started_at=minute.started_at,
            partition=minute.partition,
            version=version,
            part=part,
            parts=len(cuts),
            namespace=namespace,
            result=result,
            dimension=dimension,
            value=value,
            **counts,
        )
