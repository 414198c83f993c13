"""Remainders of quotas: the limits of a namespace minus what its pods hold."""

from dataclasses import replace
from typing import Any

import pytest

from engine.fit.devices.quota import UNLIMITED, QuotaLeft, Quotas
from engine.hami.vendor_catalog import CAMBRICON
from engine.hami.vendors import NVIDIA

SMALLEST = replace(NVIDIA, rules=replace(NVIDIA.rules, takes_smallest_quota=True))
LATEST = replace(NVIDIA, rules=replace(NVIDIA.rules, takes_smallest_quota=False))


def a_quota(name: str, memory: Any, cores: Any = None, **spec: Any) -> dict[str, Any]:
    hard = {"limits.nvidia.com/gpumem": memory, "requests.nvidia.com/gpumem": "1", "pods": "3"}
    if cores is not None:
        hard["limits.nvidia.com/gpucores"] = cores
    return {"metadata": {"namespace": "a", "name": name}, "spec": {"hard": hard, **spec}}


def build_quotas(*quotas: dict[str, Any]) -> Quotas:
    built = Quotas()
    for quota in quotas:
        built.apply(quota)
    return built


def test_what_is_held_is_taken_off_the_limit() -> None:
    quotas = build_quotas(a_quota("q", "40000", "200"))
    quotas.add_use("a", "NVIDIA", 30_000, 50)
    quotas.add_use("a", "NVIDIA", 15_000, 60)
    quotas.add_use("a", "DCU", 1, 1)
    assert quotas.compute_left("a", NVIDIA) == QuotaLeft(-5_000, 90)
    quotas.add_use("a", "NVIDIA", -45_000, -110)
    assert quotas.compute_left("a", NVIDIA) == QuotaLeft(40_000, 200)
    assert quotas.used == {("a", "DCU"): (1, 1)}


def test_without_a_limit_nothing_limits() -> None:
    quotas = build_quotas(a_quota("q", "40000"))
    assert quotas.compute_left("a", NVIDIA) == QuotaLeft(40_000, UNLIMITED)
    assert quotas.compute_left("b", NVIDIA) == QuotaLeft()
    quotas.delete("a", "q")
    assert quotas.compute_left("a", NVIDIA) == QuotaLeft()
    quotas.delete("b", "q")


@pytest.mark.parametrize(
    ("left", "is_limited"),
    [(QuotaLeft(), False), (QuotaLeft(0), True), (QuotaLeft(cores=0), True), (QuotaLeft(1, 1), True)],
)
def test_a_remainder_of_either_amount_limits(left: QuotaLeft, is_limited: bool) -> None:
    assert left.is_limited is is_limited


def test_of_several_quotas_the_smallest_or_the_latest_counts_by_the_release() -> None:
    quotas = build_quotas(a_quota("first", "100"), a_quota("second", "300"), a_quota("third", "200"))
    assert quotas.compute_left("a", SMALLEST).memory_mib == 100
    assert quotas.compute_left("a", LATEST).memory_mib == 200
    quotas.apply(a_quota("first", "400"))
    assert quotas.compute_left("a", SMALLEST).memory_mib == 200
    assert quotas.compute_left("a", LATEST).memory_mib == 400


@pytest.mark.parametrize("scope", [{"scopes": ["BestEffort"]}, {"scopeSelector": {"matchExpressions": []}}])
def test_a_quota_of_a_scope_counts_only_up_to_release_2_10(scope: dict[str, Any]) -> None:
    scoped = a_quota("scoped", "100", **scope)
    quotas = build_quotas(a_quota("q", "300"), scoped)
    assert (quotas.compute_left("a", SMALLEST).memory_mib == 300) is bool(quotas.scoped)
    assert quotas.compute_left("a", LATEST).memory_mib == 100
    quotas.apply(a_quota("scoped", "100"))
    assert quotas.compute_left("a", SMALLEST).memory_mib == 100
    quotas.apply(scoped)
    quotas.delete("a", "scoped")
    assert quotas.scoped == set()


@pytest.mark.parametrize(
    "hard", [{}, {"limits.nvidia.com/gpumem": "1500m"}, {"limits.nvidia.com/gpumem": "x"}, None, []]
)
def test_a_limit_that_is_no_whole_number_limits_nothing(hard: Any) -> None:
    quotas = build_quotas({"metadata": {"namespace": "a", "name": "q"}, "spec": {"hard": hard}})
    assert quotas.compute_left("a", NVIDIA) == QuotaLeft()


def test_memory_is_counted_in_the_unit_of_the_vendor() -> None:
    hard = {f"limits.{CAMBRICON.resources.memory}": "10"}
    quotas = build_quotas({"metadata": {"namespace": "a", "name": "q"}, "spec": {"hard": hard}})
    assert quotas.compute_left("a", CAMBRICON).memory_mib == 2560


@pytest.mark.parametrize(("limit", "left"), [(2**63 - 1, UNLIMITED), (2**62 - 1, 2**62 - 1)])
def test_limits_beyond_every_sum_are_no_limit(limit: int, left: int) -> None:
    assert build_quotas(a_quota("q", str(limit))).compute_left("a", NVIDIA).memory_mib == left


def test_objects_without_fields_have_no_limits() -> None:
    assert build_quotas({}, {"metadata": 3, "spec": None}).compute_left("", NVIDIA) == QuotaLeft()
