"""Forecasts from recorded placements: whose end is enough, and the holds that an interval follows from."""

import statistics
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from engine.forecasts.starts import MAX_ENDS, TRIED_WITHIN, begin_forecast, derive_forecast, find_single_ends
from schemas.events import DeviceAllocation, Owner, PodDescription, PodRef, PodWait, Request
from schemas.forecasts import StartForecast
from schemas.placements import PodPlacement
from tests.support.builders.events import STARTED, a_repetition

LENGTHS = [600.0 * number for number in range(1, 31)]
"""Lengths of earlier holds, in seconds."""


def a_wait(**fields: Any) -> PodWait:
    request = Request(container="main", vendor="NVIDIA", count=2, memory_mib=20_000, cores_percent=50)
    plain: dict[str, Any] = {
        "code": "CardInsufficientMemory", "layer": "nodes", "devices": 2, "models": ["A40"], "pools": [],
        "nearest_nodes": ["node1"], "reasons": {"CardInsufficientMemory": 2}, "asked": request, "missing_devices": 2,
    }  # fmt: skip
    return PodWait.model_validate(plain | fields)


def a_hold(
    name: str, seconds: float = -3_600, length: float | None = None, devices: int = 2, **fields: Any
) -> PodPlacement:
    """Build a hold of whole devices that began an hour ago; ``devices`` of its node, from the first one on."""
    workload = fields.pop("workload", "")
    share = {"memory_mib": fields.pop("memory_mib", 46_068), "cores_percent": fields.pop("cores_percent", 100)}
    first = fields.pop("first", 0)
    plain: dict[str, Any] = {
        "id": name, "cluster": "default", "pod": PodRef(namespace="llm", name=name, uid=f"uid-{name}"), "node": "node1",
        "started_at": STARTED + timedelta(seconds=seconds),
        "ended_at": STARTED + timedelta(seconds=seconds + length) if length is not None else None,
        "ended_by": "Succeeded" if length is not None else "",
        "description": PodDescription(owners=[Owner(kind="Job", name=workload)]) if workload else None,
        "allocations": [
            DeviceAllocation(uuid=f"GPU-{first + number}", container="main", model="A40", **share)
            for number in range(devices)
        ],
    }  # fmt: skip
    return PodPlacement.model_validate(plain | fields)


def derive(holders: Sequence[PodPlacement], ended: Sequence[PodPlacement], **fields: Any) -> StartForecast:
    wait = a_wait(**fields)
    return derive_forecast(begin_forecast(a_repetition(), wait, STARTED), wait, holders, {"llm": ended})


def list_names(holders: Sequence[PodPlacement], **fields: Any) -> list[str]:
    return [holder.pod.name for holder in find_single_ends(a_wait(**fields), holders)]


def test_the_end_of_a_pod_with_as_many_devices_as_are_missing_is_enough() -> None:
    holders = [a_hold("two"), a_hold("one", devices=1, first=2), a_hold("three", devices=3, first=3)]
    assert list_names(holders) == ["two", "three"]
    assert list_names(holders, missing_devices=1) == ["two", "one", "three"]


@pytest.mark.parametrize(
    ("share", "is_enough"),
    [
        ({"memory_mib": 20_000, "cores_percent": 50}, True),
        ({"memory_mib": 19_999, "cores_percent": 50}, False),
        ({"memory_mib": 20_000, "cores_percent": 49}, False),
    ],
)
def test_of_a_shared_device_a_pod_frees_what_it_held(share: dict[str, int], is_enough: bool) -> None:
    holders = [a_hold("one", **share), a_hold("other", memory_mib=10, cores_percent=10)]
    assert list_names(holders) == (["one"] if is_enough else [])


def test_a_share_of_a_device_of_unknown_size_is_not_known_to_be_freed() -> None:
    request = Request(container="main", vendor="NVIDIA", count=2, memory_percent=50)
    assert list_names([a_hold("one"), a_hold("other", memory_mib=10)], asked=request) == []
    assert list_names([a_hold("one")], asked=request) == ["one"]


def test_the_interval_is_of_holds_of_the_same_workload_that_lasted_as_long() -> None:
    others = [a_hold(f"o{number}", -90_000, 86_000.0) for number in range(20)]
    runs = [a_hold(f"r{number}", -90_000, length, workload="train") for number, length in enumerate(LENGTHS)]
    result = derive([a_hold("train-x", workload="train")], [*others, *runs])
    tenths = statistics.quantiles((length - 3_600 for length in LENGTHS if length >= 3_600), n=10)
    assert (result.missing, result.basis, result.after) == ("", "workload", ["llm/train-x"])
    assert result.earliest
    assert result.latest
    assert (result.earliest - STARTED).total_seconds() == pytest.approx(tenths[0], abs=1e-3)
    assert (result.latest - STARTED - TRIED_WITHIN).total_seconds() == pytest.approx(tenths[-1], abs=1e-3)


def test_without_a_history_of_its_workload_pods_of_the_same_shape_count() -> None:
    runs = [a_hold(f"r{number}", -90_000, length, workload=f"run-{number}") for number, length in enumerate(LENGTHS)]
    holder = a_hold("train-x", workload="train")
    assert derive([holder], runs).basis == "shape"
    larger = [a_hold(f"r{number}", -90_000, length, devices=4) for number, length in enumerate(LENGTHS)]
    assert derive([holder], larger).missing == "holds"


@pytest.mark.parametrize(("longer", "missing"), [(9, "holds"), (10, "")])
def test_at_least_ten_holds_have_lasted_as_long_as_the_holder(longer: int, missing: str) -> None:
    short = [a_hold(f"s{number}", -90_000, 600.0) for number in range(50)]
    enough = [a_hold(f"l{number}", -90_000, 7_200.0) for number in range(longer)]
    result = derive([a_hold("train-x")], [*short, *enough])
    assert (result.missing, result.after) == (missing, ["llm/train-x"])


@pytest.mark.parametrize("ended_by", ["moved", "replaced", ""])
def test_a_hold_whose_end_was_not_seen_has_no_length(ended_by: str) -> None:
    runs = [a_hold(f"r{number}", -90_000, 7_200.0, ended_by=ended_by) for number in range(20)]
    assert derive([a_hold("train-x")], runs).missing == "holds"


def test_no_interval_is_given_where_the_facts_are_not_complete() -> None:
    runs = [a_hold(f"r{number}", -90_000, 7_200.0) for number in range(20)]
    assert derive([a_hold("x")], runs, nearest_nodes=[f"node{number}" for number in range(8)]).missing == "nodes"
    assert derive([a_hold("x", devices=1)], runs).missing == "ends"
    many = [a_hold(f"x{number}", first=10 * number) for number in range(MAX_ENDS + 1)]
    assert derive(many, runs).missing == "ends"
