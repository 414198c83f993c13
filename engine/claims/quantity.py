"""Kubernetes quantities with the representation that decides how Kubernetes adds, converts and prints them.

Amounts are exact, in billionths of the unit: Kubernetes rounds what is finer away from zero when it reads a quantity.
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Literal

Format = Literal["DecimalSI", "BinarySI", "DecimalExponent"]

NANO: Final = 10**9
INT64_MAX: Final = 2**63 - 1
INT64_MIN: Final = -(2**63)

_FORM: Final = re.compile(r"([+-]?)0*([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[+-]?[0-9]*)")
_DECIMAL: Final = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_EXPONENT: Final = re.compile(r"[eE]([+-]?[0-9]{1,19})")
_SUFFIX: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX: Final = {exponent: suffix for suffix, exponent in _BINARY.items()}
_MAX_DIGITS_OF_INT64: Final = 18
_MAX_LENGTH: Final = 400
_MAX_EXPONENT: Final = 400
"""Powers of ten beyond it are refused: Kubernetes computes them, at the price of memory."""


class QuantityTextError(ValueError):
    """A text that is not a quantity; the message is Kubernetes' own."""


WRONG_FORM: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"  # Kubernetes' text
)
_WRONG_SUFFIX: Final = "unable to parse quantity's suffix"
_TOO_LARGE: Final = f"is longer than {_MAX_LENGTH} characters or has an exponent beyond {_MAX_EXPONENT}"


@dataclass(frozen=True, slots=True)
class Quantity:
    """An amount and the way Kubernetes keeps it.

    nano: billionths of the unit. scale: power of ten of a 64-bit integer; None where Kubernetes keeps a decimal of
    any length, which it does not convert to an integer. is_computed: whether it is a sum or difference, which CEL in
    Kubernetes does not compare with ``==`` when it is on the right.
    """

    nano: int
    format: Format
    scale: int | None = 0
    is_computed: bool = field(default=False, compare=False)

    @property
    def integer(self) -> int | None:
        """Value as a 64-bit integer; None where Kubernetes does not convert it."""
        if self.scale is None or self.scale < 0:
            return None
        value = self.nano // NANO
        return value if INT64_MIN <= value <= INT64_MAX else None

    def round_up(self) -> int:
        """Round to a whole number, away from zero."""
        return -(-self.nano // NANO) if self.nano >= 0 else self.nano // NANO

    def add(self, other: "Quantity", sign: int = 1) -> "Quantity":
        """Add another quantity, or subtract it if ``sign`` is -1."""
        form = self.format if self.nano else other.format
        return Quantity(self.nano + sign * other.nano, form, self._add_scales(other), is_computed=True)

    def _add_scales(self, other: "Quantity") -> int | None:
        if self.scale is None or other.scale is None:
            return None
        if not other.nano:
            return self.scale
        scale = min(self.scale, other.scale) if self.nano else other.scale
        unit = 10 ** (scale + 9)
        amounts = (self.nano // unit, other.nano // unit, (self.nano + other.nano) // unit)
        return scale if all(INT64_MIN <= amount <= INT64_MAX for amount in amounts) else None

    def __str__(self) -> str:
        """Print the quantity as Kubernetes does."""
        if not self.nano:
            return "0"
        if self.format == "BinarySI" and abs(self.nano) >= 1024 * NANO and self.nano % NANO == 0:
            return _print_binary(self.nano // NANO)
        return _print_decimal(self.nano, self.format)


def _print_binary(value: int) -> str:
    exponent = 0
    while value % 1024 == 0 and exponent < 60:
        value, exponent = value // 1024, exponent + 10
    return f"{value}{_BINARY_SUFFIX.get(exponent, '')}"


def _print_decimal(nano: int, form: Format) -> str:
    amount, exponent = nano, -9
    while amount % 10 == 0:
        amount, exponent = amount // 10, exponent + 1
    while exponent % 3:
        amount, exponent = amount * 10, exponent - 1
    if form == "DecimalExponent":
        return f"{amount}e{exponent}" if exponent else str(amount)
    return f"{amount}{_SUFFIX.get(exponent, '')}"


def make_integer(value: int, form: Format = "BinarySI") -> Quantity:
    """Make the quantity of a whole number."""
    return Quantity(value * NANO, form)


def read_quantity(value: Any) -> Quantity:
    """Read a quantity from JSON, a string or a number; raise QuantityTextError for anything else."""
    if isinstance(value, str):
        return parse_quantity(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise QuantityTextError(WRONG_FORM)
    if isinstance(value, int) and value.bit_length() > 1000:
        raise QuantityTextError(_TOO_LARGE)
    return parse_quantity(repr(value))


@lru_cache(maxsize=4096)
def parse_quantity(text: str) -> Quantity:
    """Parse a quantity as Kubernetes does; raise QuantityTextError with Kubernetes' own text."""
    if len(text) > _MAX_LENGTH:
        raise QuantityTextError(_TOO_LARGE)
    form = _FORM.fullmatch(text)
    if not text or not form:
        raise QuantityTextError(WRONG_FORM)
    sign, digits, fraction, suffix = (part or "" for part in form.groups())
    negative = sign == "-"
    if suffix in _BINARY:
        return _read_binary(negative, digits or "0", fraction, _BINARY[suffix])
    return _read_decimal(negative, digits or "0", fraction, *_read_exponent(suffix))


def _read_exponent(suffix: str) -> tuple[int, Format]:
    if suffix in _DECIMAL:
        return _DECIMAL[suffix], "DecimalSI"
    exponent = _EXPONENT.fullmatch(suffix)
    if not exponent:
        raise QuantityTextError(_WRONG_SUFFIX)
    power = int(exponent[1])
    if abs(power) > _MAX_EXPONENT:
        raise QuantityTextError(_TOO_LARGE)
    return power, "DecimalExponent"


def _read_binary(negative: bool, digits: str, fraction: str, exponent: int) -> Quantity:
    value = int(digits + fraction)
    # The digits that Kubernetes holds to be safe in 64 bits; beyond them it keeps a decimal.
    precision = 15 - len(digits) - exponent * 3 // 10 - 1
    if not fraction and precision >= 0:
        return Quantity(_apply_sign(value * 2**exponent * NANO, negative), "BinarySI", 0)
    nano = min(-(-value * 2**exponent * NANO // 10 ** len(fraction)), INT64_MAX * NANO)
    form: Format = "DecimalSI" if 0 < nano < NANO else "BinarySI"
    return Quantity(_apply_sign(nano, negative), form, None)


def _read_decimal(negative: bool, digits: str, fraction: str, exponent: int, form: Format) -> Quantity:
    value, power = int(digits + fraction), exponent - len(fraction)
    is_small = len(digits) + len(fraction) <= _MAX_DIGITS_OF_INT64
    tens = power + 9
    if tens >= 0:
        return Quantity(_apply_sign(value * 10**tens, negative), form, power if is_small else None)
    return Quantity(_apply_sign(-(-value // 10**-tens), negative), form, None)


def _apply_sign(amount: int, negative: bool) -> int:
    return -amount if negative else amount
