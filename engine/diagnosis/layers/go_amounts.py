"""Amounts of resources as Go prints a map of them, or as JSON has it."""

import re
from decimal import Decimal, InvalidOperation
from typing import Final

_AMOUNT: Final = re.compile(
    r"([A-Za-z0-9./_-]+)\"?: ?(?:\{\{(\d+) -?\d+\} \{[^}]*\} [^}]*\}|\"?([0-9][0-9A-Za-z.]*)\"?)"
)
"""An amount in a map, with or without the parts of a quantity."""


def read_amounts(listed: str) -> dict[str, str]:
    """Read amounts by resource: ``map[cpu:8 memory:64Gi]``."""
    return {name: integer or amount for name, integer, amount in _AMOUNT.findall(listed)}


def to_decimal(amount: str) -> Decimal:
    """Convert an amount without a suffix; others count as 0."""
    try:
        return Decimal(amount)
    except InvalidOperation:
        return Decimal(0)
