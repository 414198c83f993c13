"""Quantities and versions as Kubernetes reads, adds, orders and prints them.

Expected values: the rules of k8s.io/apimachinery's resource package and of semver 2.0.0.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.claims.quantity import NANO, QuantityTextError, make_integer, parse_quantity, read_quantity
from engine.claims.version import VersionError, normalize_version, parse_version


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("40Gi", "40Gi"),
        ("0040Gi", "40Gi"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.5", "500m"),
        ("6900m", "6900m"),
        ("1000", "1k"),
        ("1e3", "1e3"),
        ("100000u", "100m"),
        ("0Gi", "0"),
        ("-2Ki", "-2Ki"),
        ("0.1n", "1n"),
        ("1000Ei", "9223372036854775807"),
    ],
)
def test_a_quantity_is_printed_in_kubernetes_form(text: str, printed: str) -> None:
    assert str(parse_quantity(text)) == printed


@pytest.mark.parametrize("text", ["", "1 Gi", "1gi", "1..2", "0x10", "1e", "\N{ARABIC-INDIC DIGIT ONE}Gi", "1" * 500])
def test_a_text_that_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(QuantityTextError):
        parse_quantity(text)


@pytest.mark.parametrize("value", [True, None, [1], {"a": 1}, float("nan"), float("inf"), 10**400])
def test_a_value_that_is_no_quantity_is_refused(value: object) -> None:
    with pytest.raises(QuantityTextError):
        read_quantity(value)


@given(st.integers(-(2**62), 2**62))
def test_a_whole_number_is_kept_exactly(value: int) -> None:
    assert read_quantity(value).nano == value * NANO
    assert parse_quantity(str(make_integer(value))).nano == value * NANO


@given(st.integers(-(10**15), 10**15), st.integers(-(10**15), 10**15))
def test_sums_are_exact(left: int, right: int) -> None:
    total = parse_quantity(f"{left}m").add(parse_quantity(f"{right}Ki"))
    assert total.nano == left * NANO // 1000 + right * 1024 * NANO
    assert parse_quantity(str(total)).nano == total.nano


ORDERED = (
    "1.0.0-alpha 1.0.0-alpha.1 1.0.0-alpha.beta 1.0.0-beta 1.0.0-beta.2 1.0.0-beta.11 1.0.0-rc.1 1.0.0 1.0.1 2.0.0"
)


def test_versions_are_ordered_as_semver_says() -> None:
    texts = ORDERED.split()
    versions = [parse_version(text) for text in texts]
    for position, version in enumerate(versions):
        assert str(version) == texts[position]
        assert version.compare(version) == 0
        assert all(version.compare(later) == -1 for later in versions[position + 1 :])
    assert parse_version("1.0.0+a").compare(parse_version("1.0.0+b")) == 0


@pytest.mark.parametrize(
    "text", ["", "1", "1.2", "1.2.3.4", "01.2.3", "1.2.3-01", "1.2.3-", "1.2.x", "v1.2.3", "1.2.3+"]
)
def test_a_text_that_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(VersionError):
        parse_version(text)


@pytest.mark.parametrize(("text", "normal"), [("v1.2", "1.2.0"), ("01.02.03", "1.2.3"), ("1", "1.0.0")])
def test_a_short_version_is_filled_up(text: str, normal: str) -> None:
    assert normalize_version(text) == normal
