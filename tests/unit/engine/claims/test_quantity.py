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
        ("1Ei", "1Ei"),
        ("1023", "1023"),
        ("1023Ki", "1023Ki"),
        ("1.5e3", "1500"),
        ("12000e3", "12e6"),
        ("100e-9", "100e-9"),
        ("1e-3", "1e-3"),
        ("12345", "12345"),
        ("1200M", "1200M"),
        ("1500000n", "1500u"),
    ],
)
def test_a_quantity_is_printed_in_kubernetes_form(text: str, printed: str) -> None:
    assert str(parse_quantity(text)) == printed


@pytest.mark.parametrize(
    ("text", "nano"),
    [
        ("1n", 1), ("1u", 10**3), ("1m", 10**6), ("1", 10**9), ("1k", 10**12), ("1M", 10**15), ("1G", 10**18),
        ("1T", 10**21), ("1P", 10**24), ("1E", 10**27), ("1Ki", 2**10 * NANO), ("1Mi", 2**20 * NANO),
        ("1Gi", 2**30 * NANO), ("1Ti", 2**40 * NANO), ("1Pi", 2**50 * NANO), ("1Ei", 2**60 * NANO),
        ("1e3", 10**12), ("1E3", 10**12), ("1e-3", 10**6), ("12e0", 12 * NANO), ("+7", 7 * NANO), ("-7", -7 * NANO),
        ("1.25", 1_250_000_000), (".5", 5 * 10**8), ("2.", 2 * NANO), ("1.5k", 1500 * NANO), ("0.5Ki", 512 * NANO),
        # What is finer than a billionth is rounded away from zero.
        ("0.1n", 1), ("1.5n", 2), ("-0.1n", -1), ("-1.5n", -2), ("0.0000000001Ki", 103), ("-0.0000000001Ki", -103),
        # Binary amounts end at 64 bits.
        ("16Ei", (2**63 - 1) * NANO), ("-16Ei", -(2**63 - 1) * NANO), ("1e400", 10**409), ("0" * 400, 0),
    ],
)  # fmt: skip
def test_a_quantity_is_an_exact_amount(text: str, nano: int) -> None:
    assert parse_quantity(text).nano == nano


@pytest.mark.parametrize(
    ("text", "integer"),
    [
        ("50", 50), ("-50", -50), ("1k", 1000), ("0.5k", 500), ("1e3", 1000), ("1Ki", 1024), ("0", 0),
        ("1.5", None), ("1.0", None), ("500m", None), ("1000m", None),
        # The fast path of resource.ParseQuantity: 18 digits, or in binary 15 less three for each suffix and one more.
        ("999999999999999999", 999_999_999_999_999_999), ("1000000000000000000", None),
        ("99999999999Ki", 99_999_999_999 * 2**10), ("100000000000Ki", None),
        ("99999Gi", 99_999 * 2**30), ("100000Gi", None), ("99Ti", 99 * 2**40), ("100Ti", None), ("1Pi", None),
        ("1.5Ki", None), ("9E", 9 * 10**18), ("10E", None), ("-9E", -9 * 10**18), ("-10E", None),
    ],
)  # fmt: skip
def test_a_quantity_is_an_integer_where_kubernetes_keeps_it_as_one(text: str, integer: int | None) -> None:
    assert parse_quantity(text).integer == integer


@pytest.mark.parametrize(
    ("left", "right", "integer"),
    [
        ("1k", "1", 1001), ("0", "1k", 1000), ("1k", "0", 1000), ("1k", "1m", None), ("1", "1.5", None),
        ("9E", "1", 9 * 10**18 + 1), ("9E", "1E", None), ("9E", "900000000000000001", None), ("1", "0.5Ki", None),
    ],
)  # fmt: skip
def test_a_sum_is_an_integer_where_its_parts_and_it_fit_into_64_bits(
    left: str, right: str, integer: int | None
) -> None:
    total = parse_quantity(left).add(parse_quantity(right))
    assert (total.integer, total.is_computed) == (integer, True)


@pytest.mark.parametrize(
    ("left", "right", "printed"),
    [
        ("1Ki", "1k", "2024"),
        ("1k", "1Ki", "2024"),
        ("0", "1Mi", "1Mi"),
        ("0Mi", "1M", "1M"),
        ("1Mi", "1Mi", "2Mi"),
        ("0.0009765625Ki", "1023", "1Ki"),
        ("0.0005Ki", "1023488m", "1024"),
    ],
)
def test_a_sum_has_the_form_of_its_first_part_that_is_not_zero(left: str, right: str, printed: str) -> None:
    assert str(parse_quantity(left).add(parse_quantity(right))) == printed


def test_a_difference_is_exact() -> None:
    assert parse_quantity("1Gi").add(parse_quantity("1Mi"), -1).nano == 1023 * 2**20 * NANO


@pytest.mark.parametrize(("text", "rounded"), [("1", 1), ("1.1", 2), ("0.5", 1), ("-1.1", -2), ("-1", -1), ("0", 0)])
def test_a_quantity_is_rounded_away_from_zero(text: str, rounded: int) -> None:
    assert parse_quantity(text).round_up() == rounded


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("1gi", "quantities must match the regular expression"),
        ("1ee3", "unable to parse quantity's suffix"),
        ("1kk", "unable to parse quantity's suffix"),
        ("1e401", "has an exponent beyond 400"),
        ("1e-401", "has an exponent beyond 400"),
        ("1" * 401, "is longer than 400 characters"),
    ],
)
def test_a_refusal_has_kubernetes_words(text: str, cause: str) -> None:
    with pytest.raises(QuantityTextError, match=cause):
        parse_quantity(text)


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


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "Version string empty"),
        ("1.2", "No Major.Minor.Patch elements found"),
        (".2.3", 'strconv.ParseUint: parsing "": invalid syntax'),
        ("v1.2.3", 'Invalid character(s) found in major number "v1"'),
        ("1.x.3", 'Invalid character(s) found in minor number "x"'),
        ("1.2.3.4", 'Invalid character(s) found in patch number "3.4"'),
        ("01.2.3", 'Major number must not contain leading zeroes "01"'),
        ("1.02.3", 'Minor number must not contain leading zeroes "02"'),
        ("1.2.03", 'Patch number must not contain leading zeroes "03"'),
        ("18446744073709551616.0.0", 'strconv.ParseUint: parsing "18446744073709551616": value out of range'),
        ("1.2.3-", "Prerelease is empty"),
        ("1.2.3-a..b", "Prerelease is empty"),
        ("1.2.3-01", 'Numeric PreRelease version must not contain leading zeroes "01"'),
        ("1.2.3-a_b", 'Invalid character(s) found in prerelease "a_b"'),
        ("1.2.3+", "Build meta data is empty"),
        ("1.2.3+a_b", 'Invalid character(s) found in build meta data "a_b"'),
    ],
)
def test_a_refused_version_has_the_words_of_blang_semver(text: str, cause: str) -> None:
    with pytest.raises(VersionError) as error:
        parse_version(text)
    assert str(error.value) == cause


@pytest.mark.parametrize(
    "text", ["0.0.0", "18446744073709551615.0.0", "1.2.3-0", "1.2.3-0a", "1.2.3-a.1+b.01", "1.2.3+01-x", "1.2.3--"]
)
def test_a_version_is_printed_as_it_is_written(text: str) -> None:
    assert str(parse_version(text)) == text


def test_numbers_of_a_prerelease_come_before_words() -> None:
    assert parse_version("1.0.0-2").compare(parse_version("1.0.0-10")) == -1
    assert parse_version("1.0.0-99").compare(parse_version("1.0.0-a")) == -1
    assert parse_version("1.0.0-a").compare(parse_version("1.0.0-B")) == 1
    assert parse_version("1.2.0").compare(parse_version("1.1.9")) == 1


@pytest.mark.parametrize("text", ["1.2-a", "1+b", "v1-rc"])
def test_a_short_version_has_nothing_behind_it(text: str) -> None:
    with pytest.raises(VersionError, match="short version cannot contain PreRelease/Build meta data"):
        normalize_version(text)


@pytest.mark.parametrize(
    ("text", "normal"),
    [("v1.2", "1.2.0"), ("01.02.03", "1.2.3"), ("1", "1.0.0"), ("00", "0.0.0"), ("1.2.0-rc", "1.2.0-rc"),
     ("1.2.00-rc", "1.2.0-rc"), ("0.0.0", "0.0.0"), ("v0", "0.0.0")],
)  # fmt: skip
def test_a_short_version_is_filled_up(text: str, normal: str) -> None:
    assert normalize_version(text) == normal
