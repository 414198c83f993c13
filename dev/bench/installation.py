"""Needs of whole installations: every process, both stores, replicas and retention, at rest and busy.

``python -m dev.bench.installation`` prints the table of docs/sizing.md. Costs that grow with the nodes are those of
``dev.bench.capacity``; what an installation costs beside them was measured with ten nodes (``make bench
ARGS=footprint``) and is a table here. Memory by nodes is what single benchmarks measured, each named beside its figure.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import typer

from dev.bench.capacity import AttemptRates, CostModel, derive_needs, read_model
from schemas.index_family import LONGEST_MONTH
from schemas.indices import ATTEMPTS, DEVICES, INDICES, NODE_STATES, OCCUPANCY

_DAY: Final = 86_400
_SHARE_OF_DEVICES: Final = 0.3
"""Share of a first attempt's bytes in the index that its device verdicts take: 49 of 161 kB at 5,000 nodes
(docs/measurements.md)."""
_PLACEMENT_BYTES: Final = 7_600
"""Bytes of a pod with one device from its creation to its end, all of them in the family that is kept longest."""


@dataclass(frozen=True, slots=True)
class FleetUse:
    """FleetUse of a fleet."""

    name: str
    started_pods: float
    """Pods started on each node in a day."""
    waiting_pods: float
    """Pods that wait, per node."""
    tries: float
    """Attempts of a waiting pod in an hour."""
    changed: float = 0.1
    """Share of these attempts whose result differs from the one before."""

    def derive_rates(self, nodes: int) -> AttemptRates:
        tries, starts = nodes * self.waiting_pods * self.tries / 3600, nodes * self.started_pods / _DAY
        # A node's use changes when a pod comes and when it goes.
        return AttemptRates(starts + tries * self.changed, tries * (1 - self.changed), 2 * starts)


# kube-scheduler tries a waiting pod after five minutes at the latest, and whenever something changes that may help it.
QUIET: Final = FleetUse("quiet", started_pods=1, waiting_pods=0.01, tries=12)
BUSY: Final = FleetUse("busy", started_pods=10, waiting_pods=0.5, tries=60)


@dataclass(frozen=True, slots=True)
class Layout:
    """Processes and copies of an overlay, with our scheduler."""

    overlay: str
    pods: int
    """Pods of ours and of the stores."""
    services: int
    """Processes without the scheduler."""
    workers: int
    """Workers, as many index writers, and as many of the API."""
    schedulers: int
    kafka_copies: int
    index_copies: int


SMALL: Final = Layout("small", 4, services=1, workers=1, schedulers=1, kafka_copies=1, index_copies=1)
PRODUCTION: Final = Layout(
    "production-scheduler", 25, services=17, workers=3, schedulers=2, kafka_copies=3, index_copies=2
)
ROWS: Final = ((10, SMALL), (100, SMALL), (1_000, PRODUCTION), (5_000, PRODUCTION))

# CPU with ten nodes by attempts a second, in percent of a core: docs/measurements.md, "A small cluster".
_RATES: Final = (0, 1, 5, 20)
_SERVICES: Final = {SMALL: (8, 16, 36, 59), PRODUCTION: (9.1, 18, 42, 62)}
_OTHERS: Final = ((0.6, 1.7, 5.7, 12), (8.6, 14, 19, 26), (3.5, 21, 24, 28))
"""Scheduler, Kafka and OpenSearch."""
_MEASURED_SERVICES: Final = 7
_AT_REST_PERCENT, _AT_REST_MIB = 9.1 / _MEASURED_SERVICES, 622 / _MEASURED_SERVICES
"""One of these processes at rest."""


class Memory(NamedTuple):
    """MiB of a process: without load, for each node, and at most where that is bounded."""

    idle: float
    per_node: float = 0
    bound: float = float("inf")

    def predict(self, nodes: int) -> float:
        return self.idle + min(self.per_node * nodes, self.bound)


_PODS_PER_NODE: Final = 8
# `filter`: 78 MiB with ten nodes, 176 with 5,000, 318 with 40,000 pods on them.
_SCHEDULER: Final = Memory(78, (176 - 78) / 5_000 + (318 - 176) / 40_000 * _PODS_PER_NODE)
# `bodies`: 155 and 223 MiB at most over a backlog of attempts on 5,000 nodes.
_WORKER: Final = Memory(_AT_REST_MIB, (155 - _AT_REST_MIB) / 5_000)
_INDEX: Final = Memory(_AT_REST_MIB, (223 - _AT_REST_MIB) / 5_000)
# A thousand pods, 200 kB an attempt on 5,000 nodes, a quarter more for answers (SCHEDULERLOG_API_CACHE_SIZE); and
# states of nodes (1.5 kB, 32 MiB at most).
_API: Final = Memory(_AT_REST_MIB, (1_000 * 200e3 / 5_000 * 1.25 + 1_500) / 2**20, 256 * 1.25 + 32)
# `watcher`: 246 MiB at its peak with 1,000 nodes and 10,000 pods; more nodes were not measured.
_KUBE_EVENTS: Final = Memory(_AT_REST_MIB, (246 - _AT_REST_MIB) / 1_000)
_HISTORY_MIB: Final = 82 / 2**20
"""Memory of a worker for a pod that was tried within a day (`histories`)."""


@dataclass(frozen=True, slots=True)
class Installation:
    nodes: int
    usage: FleetUse
    layout: Layout
    rates: AttemptRates
    cores: float
    """Cores in use, of the stores too."""
    memory_gib: float
    """Memory of our processes, without the stores."""
    kafka_gb: float
    """Disk of all brokers, at the end of the topics' retention."""
    index_gb: float
    """Disk of all nodes of OpenSearch, at the end of each family's retention."""


def derive_installation(model: CostModel, nodes: int, usage: FleetUse, layout: Layout) -> Installation:
    rates = usage.derive_rates(nodes)
    needs = derive_needs(model, nodes, rates)
    return Installation(
        nodes,
        usage,
        layout,
        rates,
        _derive_cores(model, nodes, rates, layout),
        _derive_memory(nodes, usage, layout) / 1024,
        needs.kafka_gb * layout.kafka_copies,
        _derive_index_gb(model, nodes, usage, rates) * layout.index_copies,
    )


def _derive_cores(model: CostModel, nodes: int, rates: AttemptRates, layout: Layout) -> float:
    """Add to what ten nodes take at that rate what more nodes, and more attempts than were measured, take."""
    attempts = rates.first + rates.retries
    measured = min(attempts, _RATES[-1])
    percent = sum(float(np.interp(measured, _RATES, values)) for values in (_SERVICES[layout], *_OTHERS))
    percent += max(layout.services - _MEASURED_SERVICES, 0) * _AT_REST_PERCENT
    share = measured / attempts if attempts else 0
    of_ten_nodes = AttemptRates(rates.first * share, rates.retries * share, 0)
    return percent / 100 + _sum_cores(model, nodes, rates) - _sum_cores(model, 10, of_ten_nodes)


def _sum_cores(model: CostModel, nodes: int, rates: AttemptRates) -> float:
    needs = derive_needs(model, nodes, rates)
    return needs.scheduler_cores + needs.worker_cores + needs.index_cores + needs.opensearch_cores


def _derive_memory(nodes: int, usage: FleetUse, layout: Layout) -> float:
    growing = ((_WORKER, layout.workers), (_INDEX, layout.workers), (_API, layout.workers), (_KUBE_EVENTS, 1))
    services = sum((memory.predict(nodes) - memory.idle) * number for memory, number in growing)
    # One process at rest for all: docs/measurements.md.
    services += 141 if layout is SMALL else layout.services * _AT_REST_MIB
    histories = nodes * (usage.started_pods + usage.waiting_pods) * _HISTORY_MIB
    return services + histories + _SCHEDULER.predict(nodes) * layout.schedulers


def _derive_index_gb(model: CostModel, nodes: int, usage: FleetUse, rates: AttemptRates) -> float:
    """Add up the bytes of a day by family, each for as many days as it is kept and its last index covers."""
    first = model.first["index_bytes"].predict(nodes) * rates.first
    retries = model.retry["index_bytes"].predict(nodes) * rates.retries
    states = (rates.states + nodes / _DAY) * model.state_index_bytes
    families = (
        (ATTEMPTS, first * (1 - _SHARE_OF_DEVICES) + retries),
        (DEVICES, first * _SHARE_OF_DEVICES),
        (NODE_STATES, states),
        (OCCUPANCY, nodes * usage.started_pods * _PLACEMENT_BYTES / _DAY),
    )
    return sum(a_second * _DAY * (index.retention + index.longest_period).days for index, a_second in families) / 1e9


def count_indices(*, are_days_small: bool) -> int:
    """Count the indices that are there at the end of every family's retention."""
    return sum(
        1
        if index.period == "all"
        else 1 - (-index.retention // (LONGEST_MONTH if are_days_small else index.longest_period))
        for index in INDICES
    )


def format_installations(model: CostModel, rows: Iterable[tuple[int, Layout]] = ROWS) -> str:
    """Format the needs of installations, in Markdown."""
    titles = ("nodes", "use", "attempts a second (first)", "overlay: pods", "cores in use", "memory of ours, GiB",
              "Kafka, GB", "OpenSearch, GB")  # fmt: skip
    lines = [f"| {' | '.join(titles)} |", f"|{'---|' * len(titles)}"]
    for nodes, layout in rows:
        for usage in (QUIET, BUSY):
            item = derive_installation(model, nodes, usage, layout)
            cells = (
                f"{nodes:,}", usage.name,
                f"{_format_number(item.rates.first + item.rates.retries)} ({_format_number(item.rates.first)})",
                f"`{layout.overlay}`: {layout.pods}", *map(_format_number, (item.cores, item.memory_gib)),
                *map(_format_size, (item.kafka_gb, item.index_gb)),
            )  # fmt: skip
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _format_number(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def _format_size(gigabytes: float) -> str:
    return f"{gigabytes:,.0f}" if gigabytes >= 1 else "< 1"


def main() -> None:
    """Print what whole installations need."""
    print(format_installations(read_model()))
    small, large = count_indices(are_days_small=True), count_indices(are_days_small=False)
    print(f"\n{small} indices where days have little, else {large}, without copies")


if __name__ == "__main__":
    typer.run(main)
