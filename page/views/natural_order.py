"""The order in which people expect names: ``node2`` before ``node10``. Pure."""

import re
from typing import Final

_DIGITS: Final = re.compile("([0-9]+)")


def natural_order(name: str) -> tuple[list[str | tuple[int, str]], str]:
    """A key for ``sorted``: runs of digits count as numbers."""
    parts = _DIGITS.split(name)
    # Texts and numbers take turns, so that none is ever compared with the other.
    return [_number(part) if place % 2 else part for place, part in enumerate(parts)], name


def _number(digits: str) -> tuple[int, str]:
    # Not as an `int`, which refuses more than 4,300 digits.
    significant = digits.lstrip("0")
    return len(significant), significant
