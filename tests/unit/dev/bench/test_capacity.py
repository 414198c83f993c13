"""The model of what a fleet needs: its lines, what it adds up, and the table that docs/sizing.md has."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from dev.bench.capacity import (
    COSTS,
    FIRST,
    MEASURED,
    RETRY,
    SIZES,
    AttemptRates,
    derive_needs,
    fit_line,
    fit_model,
    format_costs,
    format_needs,
    read_model,
)

PAGE = Path("docs/sizing.md").read_text()


def build_results(first: float, retry: float) -> list[dict[str, Any]]:
    """Build results at 10 and 1,000 nodes: for all costs, a first attempt has ``first`` a node, a retry ``retry``."""
    figures = [
        {"path": path.format(nodes=f"{nodes:,}", which=which), "unit": unit, "value": cost * nodes}
        for nodes in (10, 1_000)
        for which, cost in ((FIRST, first), (RETRY, retry))
        for path, unit in COSTS.values()
    ]
    figures += [{"path": "the state of a node", "unit": f"{store} bytes", "value": 0} for store in ("Kafka", "index")]
    call = "{:,} nodes, {} changed, {:,} pods, a tenth of the nodes fits, recorded"
    calls = [
        {"path": call.format(nodes, nodes // 100, pods), "value": ms}
        for nodes, pods, ms in ((100, 0, 1.0), (100, 5_000, 2.0), (1_000, 40_000, 20.0))
    ]
    return [{"benchmark": "retries", "figures": figures}, {"benchmark": "filter", "figures": calls}]


def test_a_line_goes_through_the_costs_that_lie_on_one() -> None:
    cost = fit_line({10: 3.0, 500: 52.0, 5_000: 502.0})
    assert cost == pytest.approx((2.0, 0.1))
    assert cost.predict(100_000) == pytest.approx(10_002)


@pytest.mark.parametrize(("points", "expected"), [({10: 10.0, 20: 40.0}, (0, 1.2)), ({10: 4.0, 1_000: 2.0}, (2.4, 0))])
def test_no_part_of_a_line_is_below_zero(points: dict[int, float], expected: tuple[float, float]) -> None:
    assert fit_line(points) == pytest.approx(expected)


def test_what_a_fleet_needs_is_what_its_attempts_need() -> None:
    fleet = derive_needs(fit_model(build_results(2, 0.5)), 1_000, AttemptRates(first=1, retries=4, states=0))
    # 2,000 ms of the first attempt and 4 x 500 ms of the retries in each second.
    assert fleet.worker_cores == fleet.index_cores == fleet.opensearch_cores == pytest.approx(4)
    assert fleet.workers == fleet.index_writers == 8
    # 4,000 bytes a second.
    assert fleet.index_gb_a_day == pytest.approx(0.3456)
    assert fleet.kafka_gb == pytest.approx(7 * 0.3456)
    # 20 ms a call beside the most pods.
    assert fleet.scheduler_cores == pytest.approx(0.1)


def test_without_attempts_one_process_of_each_is_enough() -> None:
    fleet = derive_needs(fit_model(build_results(2, 0.5)), 10, AttemptRates(0, 0, 0))
    assert (fleet.workers, fleet.index_writers, fleet.worker_cores) == (1, 1, 0)


def test_the_page_for_operators_has_the_tables_of_the_measured_figures() -> None:
    assert format_needs(read_model(), AttemptRates()) in PAGE
    assert format_costs(read_model()) in PAGE


@pytest.mark.parametrize("which", [FIRST, RETRY])
def test_the_model_is_near_what_it_was_made_from(which: str) -> None:
    lines = read_model().first if which == FIRST else read_model().retry
    figures = [figure for text in MEASURED.read_text().splitlines() for figure in json.loads(text)["figures"]]
    values = {(figure["path"], figure["unit"]): figure["value"] for figure in figures}
    for name, (path, unit) in COSTS.items():
        for nodes in (10, 500, 5_000):
            value = values[path.format(nodes=f"{nodes:,}", which=which), unit]
            assert lines[name].predict(nodes) == pytest.approx(value, rel=0.5), (name, nodes)


def test_more_nodes_need_more() -> None:
    fleets = [derive_needs(read_model(), nodes, AttemptRates()) for nodes in SIZES]
    for smaller, larger in pairwise(fleets):
        assert smaller.worker_cores < larger.worker_cores
        assert smaller.index_gb_a_day < larger.index_gb_a_day
