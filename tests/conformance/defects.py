"""Where HAMi v2.10.0 is wrong and our answer differs on purpose: rules about behaviour, with the reason."""

from collections.abc import Mapping, Sequence
from typing import Any


def explained(case: Mapping[str, Any], differences: Sequence[str]) -> str:
    """The name of the defect behind all differences of a case, or ""."""
    return ""
