"""Sizes in bytes as Kubernetes writes them: `4Gi`, `64Mi`, `500M`; a bare number means bytes. Pure."""

import re
from typing import Final

_FORM: Final = re.compile(r"(\d{1,15})([KMGT]i|[kMGT])?", re.ASCII)
_UNITS: Final[dict[str, int]] = {
    "": 1,
    **{unit: 1000 ** (power + 1) for power, unit in enumerate("kMGT")},
    **{f"{unit}i": 1024 ** (power + 1) for power, unit in enumerate("KMGT")},
}


def parse(text: str) -> int:
    """Parse a size. Raises ``ValueError`` that says what to write."""
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a size, write one such as 64Mi or 4Gi")
    return int(match[1]) * _UNITS[match[2] or ""]


def format_size(size: int) -> str:
    """Format the size in the largest unit of which it is an integer multiple: `4Gi`, `1500Ki`, `1000`."""
    for unit in ("Ti", "Gi", "Mi", "Ki"):
        if size and size % _UNITS[unit] == 0:
            return f"{size // _UNITS[unit]}{unit}"
    return str(size)
