"""Needs of a fleet: CPUs, processes and disk, from 10 to 100,000 nodes.

``python -m dev.bench.capacity`` prints the table of docs/sizing.md; with ``--nodes``, ``--first`` and
``--retries``, a line of your own. The model is a straight line over the nodes for each cost; its coefficients are the
JSON lines of the benchmarks ``retries`` and ``filter`` in ``capacity.jsonl``, and the benchmark ``capacity`` compares
it with a size that is not among them. CPUs are those of the machine that measured.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import numpy as np
import typer

MEASURED: Final = Path(__file__).with_name("capacity.jsonl")
SIZES: Final = (10, 100, 500, 1_000, 5_000, 10_000, 50_000, 100_000)
BUSY: Final = 0.5
"""Share of the time that a process works, so that it catches up in as long as it was behind."""
KAFKA_DAYS: Final = 7
COSTS: Final = {
    "worker": ("{nodes} nodes, worker: {which}", "CPU ms"),
    "index": ("{nodes} nodes, index: {which}", "CPU ms"),
    "opensearch": ("{nodes} nodes, OpenSearch: {which}", "CPU ms"),
    "index_bytes": ("{nodes} nodes: {which}", "index bytes"),
    "kafka_bytes": ("{nodes} nodes: {which}", "Kafka bytes"),
}
"""The costs of an attempt: path and unit of their figures in ``retries``."""
FIRST, RETRY = "first attempt", "unchanged retry"
_SIZE: Final = re.compile(r"^([\d,]+) nodes\b")
_FILTER: Final = re.compile(r"^([\d,]+) nodes, ([\d,]+) changed, ([\d,]+) pods, a tenth of the nodes fits, recorded$")
_DAY: Final = 86_400


class Line(NamedTuple):
    """A cost that grows with the nodes."""

    fixed: float
    per_node: float

    def predict(self, nodes: int) -> float:
        return self.fixed + self.per_node * nodes


def fit_line(points: Mapping[int, float]) -> Line:
    """Fit the line with the smallest relative errors through a few measured costs by nodes; never below 0."""
    nodes, costs = np.array(list(points), float), np.array(list(points.values()), float)
    # Divided by the costs: else the largest size alone would decide.
    both = np.stack([1 / costs, nodes / costs], axis=1)
    # To nine digits, in which all processors agree: the last ones decide how a number halfway between two is rounded.
    fixed, per_node = (float(f"{number:.9g}") for number in np.linalg.lstsq(both, np.ones(len(costs)), rcond=None)[0])
    if fixed >= 0 and per_node >= 0:
        return Line(fixed, per_node)
    # The best of the two that remain: it grows from 0, or it does not grow.
    candidates = [Line(*(float(x) for x in pair)) for pair in _fit_edges(both)]
    return min(
        candidates,
        key=lambda candidate: sum((candidate.predict(size) / cost - 1) ** 2 for size, cost in points.items()),
    )


def _fit_edges(both: Any) -> Iterable[tuple[float, float]]:
    for index in (0, 1):
        column = both[:, index]
        value = column.sum() / (column @ column)
        yield (value, 0.0) if index == 0 else (0.0, value)


@dataclass(frozen=True, slots=True)
class CostModel:
    """Costs by name: CPU in milliseconds, sizes in bytes."""

    first: Mapping[str, Line]
    """The lines of a first attempt, by the names of ``COSTS``."""
    retry: Mapping[str, Line]
    """The lines of an attempt that repeats the one before it."""
    scheduler: Line
    """CPU ms of POST /filter with records."""
    state_kafka_bytes: float
    state_index_bytes: float
    """Bytes in the index for one state of one node."""


def fit_model(results: Iterable[Mapping[str, Any]]) -> CostModel:
    """Fit the model to the JSON lines of ``retries`` and ``filter``."""
    figures = {result["benchmark"]: result["figures"] for result in results}
    values = {(figure["path"], figure["unit"]): float(figure["value"]) for figure in figures["retries"]}
    sizes = sorted({int(match[1].replace(",", "")) for path, _ in values if (match := _SIZE.match(path))})

    def fit_lines(which: str) -> dict[str, Line]:
        return {
            name: fit_line({nodes: values[path.format(nodes=f"{nodes:,}", which=which), unit] for nodes in sizes})
            for name, (path, unit) in COSTS.items()
        }

    return CostModel(
        fit_lines(FIRST),
        fit_lines(RETRY),
        fit_line(_select_filter_calls(figures["filter"])),
        values["the state of a node", "Kafka bytes"],
        values["the state of a node", "index bytes"],
    )


def _select_filter_calls(figures: Iterable[Mapping[str, Any]]) -> dict[int, float]:
    """Select for each size the call with the most running pods, when one in a hundred nodes has changed."""
    calls: dict[int, tuple[int, float]] = {}
    for figure in figures:
        if match := _FILTER.match(figure["path"]):
            nodes, changed, pods = (int(number.replace(",", "")) for number in match.groups())
            if changed * 100 == nodes:
                calls[nodes] = max(calls.get(nodes, (0, 0.0)), (pods, float(figure["value"])))
    return {nodes: cost for nodes, (_, cost) in calls.items()}


@dataclass(frozen=True, slots=True)
class AttemptRates:
    """Events in a second."""

    first: float = 2
    """First attempts, and those whose result changed."""
    retries: float = 18
    """Unchanged retries."""
    states: float = 4
    """Nodes whose devices or use changed; every state is also written once a day."""


_USUAL: Final = AttemptRates()


@dataclass(frozen=True, slots=True)
class Needs:
    """Cores that are in use, processes that are then busy half of the time, and disk."""

    nodes: int
    scheduler_cores: float
    worker_cores: float
    index_cores: float
    opensearch_cores: float
    kafka_gb: float
    """For as long as the topics keep records at most, without replicas."""
    index_gb_a_day: float
    """Without replicas."""

    @property
    def workers(self) -> int:
        return _count_processes(self.worker_cores)

    @property
    def index_writers(self) -> int:
        return _count_processes(self.index_cores)


def _count_processes(cores: float) -> int:
    # Rounded: a sum of floats that is a little above a whole number is no reason for another process.
    return max(math.ceil(round(cores / BUSY, 6)), 1)


def derive_needs(model: CostModel, nodes: int, load: AttemptRates) -> Needs:
    """Derive the needs of attempts on so many nodes at that load."""

    def compute_rate(name: str) -> float:
        return model.first[name].predict(nodes) * load.first + model.retry[name].predict(nodes) * load.retries

    states = load.states + nodes / _DAY
    return Needs(
        nodes,
        model.scheduler.predict(nodes) * (load.first + load.retries) / 1000,
        compute_rate("worker") / 1000,
        compute_rate("index") / 1000,
        compute_rate("opensearch") / 1000,
        (compute_rate("kafka_bytes") + states * model.state_kafka_bytes) * _DAY * KAFKA_DAYS / 1e9,
        (compute_rate("index_bytes") + states * model.state_index_bytes) * _DAY / 1e9,
    )


def read_model() -> CostModel:
    """Read the model of the figures that are committed next to this module."""
    return fit_model(json.loads(row) for row in MEASURED.read_text().splitlines())


def format_needs(model: CostModel, load: AttemptRates, sizes: Iterable[int] = SIZES) -> str:
    """Format the needs of several sizes, in Markdown."""
    titles = ("nodes", "scheduler, cores", "workers (cores)", "index writers (cores)", "OpenSearch, cores",
              "Kafka, GB in 7 days", "index, GB a day")  # fmt: skip
    rows = [f"| {' | '.join(titles)} |", f"|{'---|' * len(titles)}"]
    for nodes in sizes:
        needs = derive_needs(model, nodes, load)
        cells = (
            f"{nodes:,}",
            _format_short(needs.scheduler_cores),
            f"{needs.workers} ({_format_short(needs.worker_cores)})",
            f"{needs.index_writers} ({_format_short(needs.index_cores)})",
            _format_short(needs.opensearch_cores),
            _format_short(needs.kafka_gb),
            _format_short(needs.index_gb_a_day),
        )
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def format_costs(model: CostModel, sizes: Iterable[int] = (10, 500, 5_000, 100_000)) -> str:
    """Format the cost of an attempt at several sizes, by the lines of the model, in Markdown."""
    titles = (
        "nodes",
        "attempt",
        "worker, CPU ms",
        "index writer, CPU ms",
        "OpenSearch, CPU ms",
        "index, kB",
        "Kafka, kB",
    )
    rows = [f"| {' | '.join(titles)} |", f"|{'---|' * len(titles)}"]
    for nodes in sizes:
        for which, lines in (("first", model.first), ("retry", model.retry)):
            costs = [lines[name].predict(nodes) for name in COSTS]
            cells = [
                f"{nodes:,}",
                which,
                *map(_format_short, costs[:3]),
                *(_format_short(cost / 1000) for cost in costs[3:]),
            ]
            rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _format_short(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def main(
    nodes: Annotated[int | None, typer.Option(min=1, help="Nodes that an attempt judges; else several sizes.")] = None,
    first: Annotated[float, typer.Option(min=0, help="First attempts a second.")] = _USUAL.first,
    retries: Annotated[float, typer.Option(min=0, help="Unchanged retries a second.")] = _USUAL.retries,
    states: Annotated[float, typer.Option(min=0, help="Changed nodes a second.")] = _USUAL.states,
) -> None:
    """Print what a fleet needs, and what an attempt costs."""
    print(format_costs(read_model(), (nodes,) if nodes else SIZES), "\n")
    print(format_needs(read_model(), AttemptRates(first, retries, states), (nodes,) if nodes else SIZES))


if __name__ == "__main__":
    typer.run(main)
