"""Pods of a scheduler's log, as terminal and page list them. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class ListedPods(NamedTuple):
    """Pods with a diagnosis each. rows: waiting pods come first, because people read the log for them. placed: number
    of the others."""

    rows: list[Mapping[str, Any]]
    placed: int


def list_pods(rows: Sequence[Mapping[str, Any]]) -> ListedPods:
    """List the pods. ``rows``: as ``schedulerlog explain -o json`` has them, in any order."""
    return ListedPods(sorted(rows, key=_is_placed), sum(map(_is_placed, rows)))


def _is_placed(row: Mapping[str, Any]) -> bool:
    return row["diagnosis"]["state"] in ("placed", "ended")
