"""What ``dev.bench.capacity`` expects beside what is measured, at a size that the model was not made from."""

from dev.bench.capacity import COSTS, FIRST, RETRY, measured
from dev.bench.report import Figure, Result
from dev.bench.retries import at

NODES, PODS = 2_000, 40


def planned() -> Result:
    """Each cost of an attempt with its ratio to the expected one."""
    by = measured()
    expected = {
        (path.format(nodes=f"{NODES:,}", which=which), unit): lines[name].at(NODES)
        for which, lines in ((FIRST, by.first), (RETRY, by.retry))
        for name, (path, unit) in COSTS.items()
    }
    figures = []
    for cost in at(NODES, PODS):
        value = expected[cost.path, cost.unit]
        figures.append(Figure(cost.path, cost.value, cost.unit, round(cost.value / value, 2), f"expected {value:,.3g}"))
    return Result(
        "capacity",
        "The costs of an attempt, and their ratio to those of the model in dev/bench/capacity.py. CPU is that of "
        "the machine that measured dev/bench/capacity.jsonl: on another one the ratios of all CPU figures are alike",
        f"{PODS} pods at {NODES:,} nodes, as in `retries`",
        tuple(figures),
    )
