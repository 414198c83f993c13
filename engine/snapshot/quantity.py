"""Kubernetes quantities as exact integers, rounded where kube-scheduler rounds them.

Sums are taken in billionths ("nano"), the finest amount that Kubernetes stores, and rounded up once per pod or node.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

NANO: Final = 10**9
NANO_PER_MILLI: Final = 10**6
CPU: Final = "cpu"
PODS: Final = "pods"

_FORM: Final = re.compile(r"([+-]?)([0-9]*)\.?([0-9]*)(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?[0-9]{1,3}))?")
_MAX_LENGTH: Final = 64
_MAX_EXPONENT: Final = 40
_INT64_MAX: Final = 2**63 - 1
_DECIMAL: Final = {"": 9, "n": 0, "u": 3, "m": 6, "k": 12, "M": 15, "G": 18, "T": 21, "P": 24, "E": 27}
"""Power of ten that turns one unit of a suffix into billionths."""
_BINARY: Final = {f"{letter}i": 1024 ** (power + 1) for power, letter in enumerate("KMGTPE")}
_NATIVE: Final = frozenset((CPU, PODS, "memory", "ephemeral-storage"))


class QuantityError(ValueError):
    """A value that is not a quantity of at most 64 bits; the text is the cause."""


def read_nano(value: object) -> int:
    """Read a quantity, a JSON string or number, in billionths of its unit; raise QuantityError if it is none."""
    if isinstance(value, str):
        return _parse(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise QuantityError("is not a quantity such as 2, 500m or 16Gi")
    if isinstance(value, int) and not -_INT64_MAX <= value <= _INT64_MAX:
        raise QuantityError("is beyond 64 bits")
    return _parse(repr(value))


def round_nano(resource: str, nano: int) -> int:
    """Round billionths to millicores of CPU and whole units of other resources, away from zero as Kubernetes does."""
    unit = NANO_PER_MILLI if resource == CPU else NANO
    return -(-nano // unit) if nano >= 0 else nano // unit


def round_amounts(nanos: Mapping[str, int]) -> dict[str, int]:
    """Round every resource that kube-scheduler tracks; others are left out."""
    return {resource: round_nano(resource, nano) for resource, nano in nanos.items() if is_tracked(resource)}


@lru_cache(maxsize=8192)
def is_tracked(resource: str) -> bool:
    """Return whether kube-scheduler adds a resource up: native and extended ones, huge pages, attachable volumes."""
    if resource in _NATIVE or resource.startswith(("hugepages-", "attachable-volumes-")):
        return True
    return "/" in resource and (not resource.startswith("requests.") or "kubernetes.io/" in resource)


def is_bounded(value: Any) -> bool:
    """Return whether a value is a quantity of at most 64 bits."""
    try:
        read_nano(value)
    except QuantityError:
        return False
    return True


@lru_cache(maxsize=8192)
def _parse(text: str) -> int:
    form = _FORM.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    if not form or not (form[2] or form[3]):
        raise QuantityError("is not a quantity such as 2, 500m or 16Gi")
    sign, digits, fraction, suffix, exponent = form.groups()
    number = int(digits + fraction)
    power = int(exponent or 0)
    if abs(power) > _MAX_EXPONENT and number:
        raise QuantityError("is beyond 64 bits")
    nano = _scale(number, len(fraction), suffix or "", power)
    if nano > _INT64_MAX * NANO:
        raise QuantityError("is beyond 64 bits")
    return -nano if sign == "-" else nano


def _scale(number: int, places: int, suffix: str, power: int) -> int:
    """Scale a number with that many decimal places to billionths; fractions of a billionth are rounded up."""
    if suffix in _BINARY:
        return int(-(-number * _BINARY[suffix] * NANO // 10**places))
    tens = (_DECIMAL[suffix] + power) - places
    return number * int(10**tens) if tens >= 0 else -(-number // int(10**-tens))


_BYTES: Final = ("memory", "ephemeral-storage")
_BYTE_UNITS: Final = (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))


def format_amount(resource: str, amount: int) -> str:
    """Format an amount in the units of `engine.snapshot.requests.Amounts`."""
    if resource == CPU:
        return f"{amount}m" if amount % 100 else f"{amount / 1000:g}"
    if resource in _BYTES or resource.startswith("hugepages-"):
        return _format_bytes(amount)
    return f"{amount:,}"


def _format_bytes(amount: int) -> str:
    """Format bytes in the largest unit of which there is one; exactly, or with one decimal place."""
    for unit, size in _BYTE_UNITS:
        if abs(amount) >= size:
            return f"{amount // size}{unit}" if amount % size == 0 else f"{amount / size:.1f}{unit}"
    return str(amount)
