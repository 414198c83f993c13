"""Amounts and names as people read them, the same on page, in a terminal and to an assistant. Pure."""

import re
from collections.abc import Callable, Collection
from typing import Any, Final


def format_number(value: int) -> str:
    """Format with commas between thousands."""
    return f"{value:,}"


def format_memory(mib: int) -> str:
    """Format in MiB, whatever the amount: as pods request it (``nvidia.com/gpumem``), and as nvidia-smi shows it."""
    return f"{format_number(mib)} MiB"


def format_gpu_hours(hours: float) -> str:
    """Format with two decimals below one, else with one."""
    return f"{hours:,.2f}" if hours < 1 else f"{hours:,.1f}"


def is_wait_complete(placed: int, measured: int) -> bool:
    """Tell whether the GPU-hours of ``placed`` pods are those of all of them.

    A pod that had its node before anybody judged it has no wait; ``measured``: number of pods with a time to placement.
    """
    return measured >= placed


_DIGITS: Final = re.compile("([0-9]+)")
_TO_ZERO: Final = str.maketrans("123456789", "0" * 9)


def choose_name_key(names: Collection[str]) -> Callable[[str], Any]:
    """Choose a key that sorts these names as ``to_natural_order`` does: names with digits at the same places, as those
    of most fleets, are in natural order where they are in that of the alphabet."""
    return str if len({name.translate(_TO_ZERO) for name in names}) == 1 else to_natural_order


def to_natural_order(name: str) -> tuple[list[str | tuple[int, str]], str]:
    """Build a key for ``sorted``: runs of digits count as numbers."""
    parts = _DIGITS.split(name)
    # Texts and numbers alternate, so that a text is never compared with a number.
    return [_to_number(part) if index % 2 else part for index, part in enumerate(parts)], name


def _to_number(digits: str) -> tuple[int, str]:
    # Python's `int` refuses more than 4,300 digits.
    significant = digits.lstrip("0")
    return len(significant), significant
