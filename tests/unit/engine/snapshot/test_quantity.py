"""Quantities, against exact rational arithmetic and the rounding of Kubernetes."""

from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.snapshot.quantity import (
    QuantityError,
    format_amount,
    is_bounded,
    is_tracked,
    read_nano,
    round_amounts,
    round_nano,
)

SCALES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(1000),
    "M": Fraction(10**6),
    "Ki": Fraction(1024),
    "Gi": Fraction(2**30),
    "e-2": Fraction(1, 100),
    "E3": Fraction(1000),
}


@given(st.integers(-(10**8), 10**8), st.integers(0, 6), st.sampled_from(sorted(SCALES)))
def test_a_quantity_is_exact_down_to_a_billionth_and_rounded_away_from_zero_below(
    digits: int, decimals: int, suffix: str
) -> None:
    padded = f"{abs(digits):0{decimals + 1}d}"
    number = f"{padded[: len(padded) - decimals]}.{padded[len(padded) - decimals :]}" if decimals else padded
    exact = abs(Fraction(digits, 10**decimals) * SCALES[suffix]) * 10**9
    assert read_nano(f"{'-' if digits < 0 else ''}{number}{suffix}") == ceil(exact) * (-1 if digits < 0 else 1)


@pytest.mark.parametrize(
    "text", ["", ".", "-", " 1", "1 ", "1K", "1ki", "0x10", "1e", "NaN", "1_000", "٣", "1" * 65, "--1", True, None, [1]]
)
def test_other_values_are_not_quantities(text: object) -> None:
    with pytest.raises(QuantityError, match="is not a quantity"):
        read_nano(text)


@pytest.mark.parametrize("value", ["9223372036854775808", "8Ei", "1e40", "1e999", 2**63, 10**400])
def test_amounts_beyond_64_bits_are_refused(value: object) -> None:
    with pytest.raises(QuantityError, match="is beyond 64 bits"):
        read_nano(value)


def test_the_largest_amount_of_64_bits_is_read() -> None:
    assert read_nano("9223372036854775807") == (2**63 - 1) * 10**9


def test_cpu_counts_in_millicores_and_the_rest_in_whole_units_both_rounded_up() -> None:
    assert round_nano("cpu", read_nano("100.1m")) == 101
    assert round_nano("memory", read_nano("100m")) == 1
    assert round_nano("memory", read_nano("1Gi")) == 2**30
    assert round_nano("cpu", read_nano("-0.5m")) == -1


def test_a_sum_is_rounded_once() -> None:
    assert round_nano("cpu", read_nano("0.4m") + read_nano("0.4m")) == 1


def test_numbers_of_json_are_quantities() -> None:
    assert read_nano(2) == read_nano("2")
    assert read_nano(0.5) == read_nano("500m")


@pytest.mark.parametrize(
    "resource",
    ["cpu", "memory", "pods", "ephemeral-storage", "nvidia.com/gpu", "hugepages-2Mi", "attachable-volumes-csi-x",
     "kubernetes.io/batch-cpu", "deviceclass.resource.kubernetes.io/gpu"],
)  # fmt: skip
def test_kube_scheduler_tracks(resource: str) -> None:
    assert is_tracked(resource)


@pytest.mark.parametrize("resource", ["storage", "gpu", "requests.nvidia.com/gpu"])
def test_kube_scheduler_does_not_track(resource: str) -> None:
    assert not is_tracked(resource)
    assert round_amounts({resource: 10**9, "cpu": 10**9}) == {"cpu": 1000}


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 2000, "2"), ("cpu", 1500, "1.5"), ("cpu", 100, "0.1"), ("cpu", 250, "250m"), ("cpu", 0, "0"),
        ("memory", 2**40, "1Ti"), ("memory", 2**40 - 2**30, "1023Gi"), ("memory", 3 * 2**29, "1.5Gi"),
        ("memory", 2**30, "1Gi"), ("memory", 2**20, "1Mi"), ("memory", 2**10, "1Ki"), ("memory", 2**10 - 1, "1023"),
        ("memory", -(2**30), "-1Gi"), ("ephemeral-storage", 5 * 2**20, "5Mi"), ("hugepages-2Mi", 2**21, "2Mi"),
        ("nvidia.com/gpu", 8, "8"), ("nvidia.com/gpumem", 24_576, "24,576"),
    ],
)  # fmt: skip
def test_amounts_are_written_in_the_largest_unit(resource: str, amount: int, text: str) -> None:
    assert format_amount(resource, amount) == text


@pytest.mark.parametrize(("value", "is_quantity"), [("1Gi", True), (3, True), ("x", False), ("8Ei", False)])
def test_quantities_of_64_bits_are_bounded(value: object, is_quantity: bool) -> None:
    assert is_bounded(value) is is_quantity


@pytest.mark.parametrize(
    ("text", "nano"),
    [
        ("1.", 10**9), (".5M", 5 * 10**14), ("1G", 10**18), ("1T", 10**21), ("0.25P", 10**24 // 4), ("1E", 10**27),
        ("1Ki", 1024 * 10**9), ("0.5Mi", 2**19 * 10**9), ("1Ti", 2**40 * 10**9), ("1Pi", 2**50 * 10**9),
        ("1Ei", 2**60 * 10**9), ("0e40", 0), ("0e41", 0), ("1e-40", 1),
    ],
)  # fmt: skip
def test_suffixes_are_powers_of_1000_or_1024(text: str, nano: int) -> None:
    assert read_nano(text) == nano


def test_a_resource_that_a_quota_names_with_requests_is_tracked_below_kubernetes_io() -> None:
    assert is_tracked("requests.kubernetes.io/x")
