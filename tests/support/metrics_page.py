"""The metrics of docs/metrics.md, which tests/contract/test_metrics_page.py compares with the processes' registries."""

import re
from pathlib import Path
from typing import Final

_ROW: Final = re.compile(r"^\| `(\w+)` \| (\w+) \| (.*?) \|", re.MULTILINE)
_OF_A_HISTOGRAM: Final = {"_bucket": {"le"}, "_count": set[str](), "_sum": set[str]()}


def read_labels() -> dict[str, frozenset[str]]:
    """Read the labels of each series."""
    labels_by_series: dict[str, frozenset[str]] = {}
    for name, kind, labels in _ROW.findall(Path("docs/metrics.md").read_text("utf-8")):
        labels_of_metric = frozenset(re.findall(r"`(\w+)`", labels))
        if kind == "histogram":
            labels_by_series |= {f"{name}{suffix}": labels_of_metric | more for suffix, more in _OF_A_HISTOGRAM.items()}
        else:
            labels_by_series[name] = labels_of_metric
    return labels_by_series
