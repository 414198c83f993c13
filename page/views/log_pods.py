"""The pods of a scheduler's log, as terminal and page list them. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class ListedPods(NamedTuple):
    """rows: a diagnosis each, those that wait first, as somebody reads the log for them. placed: how many do not."""

    rows: list[Mapping[str, Any]]
    placed: int


def listed_pods(rows: Sequence[Mapping[str, Any]]) -> ListedPods:
    """``rows``: as ``schedulerlog explain -o json`` has them, in any order."""
    return ListedPods(sorted(rows, key=_is_placed), sum(map(_is_placed, rows)))


def _is_placed(row: Mapping[str, Any]) -> bool:
    return row["diagnosis"]["state"] in ("placed", "ended")
