"""Kubernetes quantities ("2", "1500m", "3k", "1Gi", 4e3) as exact integers."""

import re
from decimal import Decimal, InvalidOperation
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
_LONGEST: Final = 64  # a longer text is either beyond 64 bits or padding that no API server writes


def whole(value: Any) -> int | None:
    """The integer that a quantity stands for; None if it is no quantity, no whole number, or beyond 64 bits.

    A JSON number is accepted as well as a string (Go's `resource.Quantity` reads both).
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, int):
        return value if -_INT64_MAX - 1 <= value <= _INT64_MAX else None
    text = value if isinstance(value, str) else repr(value)
    form = _FORM.fullmatch(text) if len(text) <= _LONGEST else None
    return _exact(form) if form else None


def _exact(form: re.Match[str]) -> int | None:
    digits, suffix, exponent = form.groups()
    power = int(exponent or 0)
    if abs(power) > _LONGEST:
        return 0 if Decimal(digits) == 0 else None
    try:
        number = Decimal(digits) * _SCALE[suffix or ""] * Decimal(10) ** power
        integer = number.to_integral_exact()
    except InvalidOperation:
        return None
    return int(integer) if integer == number and -_INT64_MAX - 1 <= integer <= _INT64_MAX else None
