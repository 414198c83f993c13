"""Order in which people expect names: ``node2`` before ``node10``. Pure. The groups of nodes and the filters of
templates share it."""

import re
from typing import Final

_DIGITS: Final = re.compile("([0-9]+)")


def to_natural_order(name: str) -> tuple[list[str | tuple[int, str]], str]:
    """Build a key for ``sorted``: runs of digits count as numbers."""
    parts = _DIGITS.split(name)
    # Texts and numbers alternate, so that a text is never compared with a number.
    return [_to_number(part) if index % 2 else part for index, part in enumerate(parts)], name


def _to_number(digits: str) -> tuple[int, str]:
    # Python's `int` refuses more than 4,300 digits.
    significant = digits.lstrip("0")
    return len(significant), significant
