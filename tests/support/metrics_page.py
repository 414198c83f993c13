"""The metrics of docs/metrics*.md, compared with the registries by tests/contract/test_metrics_page.py."""

import re
from pathlib import Path
from typing import Final

_ROW: Final = re.compile(r"^\| `(\w+)` \| (\w+) \| (.*?) \|", re.MULTILINE)
_OF_A_HISTOGRAM: Final = {"_bucket": {"le"}, "_count": set[str](), "_sum": set[str]()}


def read_pages() -> str:
    """Read the pages, one after the other."""
    return "\n".join(path.read_text("utf-8") for path in sorted(Path("docs").glob("metrics*.md")))


def read_names() -> set[str]:
    """Read the names of all metrics."""
    return {name for name, _, _ in _ROW.findall(read_pages())}


def read_labels() -> dict[str, frozenset[str]]:
    """Read the labels of each series."""
    labels_by_series: dict[str, frozenset[str]] = {}
    for name, kind, labels in _ROW.findall(read_pages()):
        labels_of_metric = frozenset(re.findall(r"`(\w+)`", labels))
        if kind == "histogram":
            labels_by_series |= {f"{name}{suffix}": labels_of_metric | more for suffix, more in _OF_A_HISTOGRAM.items()}
        else:
            labels_by_series[name] = labels_of_metric
    return labels_by_series
