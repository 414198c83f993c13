"""Kubernetes quantities ("2", "1500m", "3k", "1Gi", 4e3) as exact integers."""

import re
from decimal import ROUND_UP, Context, Decimal
from typing import Any, Final

_FORM: Final = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?[0-9]{1,4}))?")
_SCALE: Final = {
    "": Decimal(1),
    "n": Decimal(10) ** -9,
    "u": Decimal(10) ** -6,
    "m": Decimal(10) ** -3,
    **{suffix: Decimal(1000) ** (power + 1) for power, suffix in enumerate("kMGTPE")},
    **{f"{suffix}i": Decimal(1024) ** (power + 1) for power, suffix in enumerate("KMGTPE")},
}
_INT64_MAX: Final = 2**63 - 1
_EXACT: Final = Context(prec=300)
"""Context with enough digits for every product of what `_FORM` and `_MAX_LENGTH` accept."""
_MAX_LENGTH: Final = 64  # a longer text is either beyond 64 bits or padding that no API server writes
_MAX_BITS: Final = 200  # an integer of `_MAX_LENGTH` digits is not longer
UNSET_PERCENT: Final = 101
"""`MemPercentagereq` of a container that does not request a share of a device's memory."""


def parse_whole(value: Any) -> int | None:
    """Parse a quantity as an integer; None if it is not a quantity, not a whole number, or beyond 64 bits.

    A JSON number is accepted as well as a string (Go's `resource.Quantity` reads both).
    """
    # The usual form, in a ninth of the time that Decimal takes; 18 digits always fit into 64 bits.
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        return int(value)
    number = _parse_number(value)
    if number is None:
        return None
    # Exact arithmetic: 0.1Gi or 1e18 as floats would round to another whole number.
    integer = number.to_integral_value()
    return int(integer) if integer == number and -_INT64_MAX - 1 <= integer <= _INT64_MAX else None


def has_unit(value: Any) -> bool:
    """Tell whether Kubernetes writes the quantity with a unit: `16Gi`, and 6000 as well, which it writes as `6k`."""
    number = _parse_number(value)
    if not number:
        return False
    form = _FORM.fullmatch(value) if isinstance(value, str) else None
    is_binary = bool(form and (form[2] or "").endswith("i"))
    if is_binary and abs(number) >= 1024:
        return number % 1024 == 0
    return number % 1000 == 0 or number != number.to_integral_value()


def format_quantity(value: int) -> str:
    """Format a whole number as Kubernetes does: thousands as a unit (`6k`)."""
    units = iter("kMGTPE")
    text, unit = value, ""
    while text and text % 1000 == 0 and (more := next(units, "")):
        text, unit = text // 1000, more
    return f"{text}{unit}"


def round_up(value: Any) -> int:
    """Round as Go's `Quantity.Value()`: away from zero, clamped to 64 bits; 0 for a value that is no quantity."""
    number = _parse_number(value) or Decimal(0)
    # In Python's decimal ROUND_UP means away from zero, which is Go's rule for both signs.
    away = number.to_integral_value(ROUND_UP)
    return max(-_INT64_MAX - 1, min(int(away), _INT64_MAX))


def is_quantity(value: Any) -> bool:
    """Tell whether an API server accepts the value as a quantity."""
    return _parse_number(value) is not None


def _parse_number(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, int) and value.bit_length() > _MAX_BITS:
        return None  # Python refuses to format huge integers
    # ``repr`` of a float is the shortest text that gives the same float back.
    text = value if isinstance(value, str) else repr(value)
    form = _FORM.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    return _compute_exactly(form) if form else None


def _compute_exactly(form: re.Match[str]) -> Decimal | None:
    digits, suffix, exponent = form.groups()
    power = int(exponent or 0)
    # ``1e9999`` would be expanded to ten thousand digits.
    if abs(power) > _MAX_LENGTH:
        return Decimal(0) if Decimal(digits) == 0 else None
    scaled = _EXACT.multiply(Decimal(digits), _SCALE[suffix or ""])
    return _EXACT.multiply(scaled, _EXACT.power(Decimal(10), power))
