"""The metrics of docs/metrics.md, which tests/contract/test_metrics_page.py compares with the processes' registries."""

import re
from pathlib import Path
from typing import Final

_ROW: Final = re.compile(r"^\| `(\w+)` \| (\w+) \| (.*?) \|", re.MULTILINE)
_OF_A_HISTOGRAM: Final = {"_bucket": {"le"}, "_count": set[str](), "_sum": set[str]()}


def labels_of() -> dict[str, frozenset[str]]:
    """Each series to its labels."""
    found: dict[str, frozenset[str]] = {}
    for name, kind, labels in _ROW.findall(Path("docs/metrics.md").read_text("utf-8")):
        own = frozenset(re.findall(r"`(\w+)`", labels))
        if kind == "histogram":
            found |= {f"{name}{suffix}": own | more for suffix, more in _OF_A_HISTOGRAM.items()}
        else:
            found[name] = own
    return found
