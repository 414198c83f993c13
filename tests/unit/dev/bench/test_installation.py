"""Needs of whole installations, compared with sums worked out by hand and with the page for operators."""

from pathlib import Path

import pytest

from dev.bench.capacity import COSTS, CostModel, Line, read_model
from dev.bench.installation import (
    BUSY,
    PRODUCTION,
    SMALL,
    FleetUse,
    count_indices,
    derive_installation,
    format_installations,
)

PAGE = Path("docs/sizing.md").read_text()
NOTHING = FleetUse("unused", started_pods=0, waiting_pods=0, tries=0)


def build_model(index_bytes_of_first: float = 0) -> CostModel:
    """Build a model in which nothing costs anything, but for the bytes of a first attempt in the index."""
    free = dict.fromkeys(COSTS, Line(0, 0))
    first = free | {"index_bytes": Line(index_bytes_of_first, 0)}
    return CostModel(first, free, Line(0, 0), state_kafka_bytes=0, state_index_bytes=0)


def test_pods_that_wait_and_pods_that_start_make_the_attempts() -> None:
    rates = BUSY.derive_rates(1_000)
    # 500 pods, each tried once a minute, a tenth with another result; 10,000 pods started in a day, each seen twice.
    assert rates.retries == pytest.approx(500 / 60 * 0.9)
    assert rates.first == pytest.approx(500 / 60 * 0.1 + 10_000 / 86_400)
    assert rates.states == pytest.approx(20_000 / 86_400)


def test_an_unused_installation_takes_what_was_measured_at_rest() -> None:
    """20.7 % of a core in docs/measurements.md for everything in one process; ten processes more than those seven."""
    assert derive_installation(build_model(), 10, NOTHING, SMALL).cores == pytest.approx(0.207)
    assert derive_installation(build_model(), 10, NOTHING, PRODUCTION).cores == pytest.approx(0.218 + 10 * 0.013)
    # 141 MiB for the services and 78 for the scheduler, and what ten nodes are to each.
    assert derive_installation(build_model(), 10, NOTHING, SMALL).memory_gib == pytest.approx(219 / 1024, rel=0.03)


def test_the_disk_holds_each_family_for_its_days_and_twice() -> None:
    hourly = FleetUse("hourly", started_pods=0, waiting_pods=1, tries=1, changed=1)
    needs = derive_installation(build_model(1e9), 1, hourly, PRODUCTION)
    # 24 GB a day: seven tenths for 30 days and the current one, three tenths for 7 and the current one; two copies.
    assert needs.index_gb == pytest.approx(2 * 24 * (0.7 * 31 + 0.3 * 8))


def test_the_page_for_operators_has_the_table_and_the_number_of_indices() -> None:
    assert format_installations(read_model()) in PAGE
    # Attempts, devices, node states, findings, trends, placements, observations; states of pods have one index.
    small, large = 2 + 2 + 2 + 2 + 4 + 4 + 2 + 1, 31 + 8 + 9 + 2 + 4 + 4 + 2 + 1
    assert (count_indices(are_days_small=True), count_indices(are_days_small=False)) == (small, large)
    assert f"{small} indices" in PAGE
    assert f"{large} where" in PAGE
