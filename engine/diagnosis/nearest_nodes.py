"""Nodes of an attempt that lacked least of what the pod requests."""

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from engine.diagnosis.refused_nodes import (
    KINDS,
    Rows,
    find_deciding_reason,
    find_refused_request,
    is_about_devices,
    split_by_refusal,
)
from engine.diagnosis.texts import get_kind
from engine.hami.reason_codes import ReasonCode
from schemas.events import AttemptSummarized, Refusal, Request

_NOT_COUNTED: Final = 1 << 30
"""Rank behind every node whose missing devices are counted."""


class NearestNodes(NamedTuple):
    """Nodes with one refusal of one container."""

    rank: tuple[int, int, int]
    refusal: Refusal
    request: Request | None
    missing_devices: int | None
    rows: Rows
    """Rows of the attempt's nodes."""

    @property
    def reasons(self) -> dict[str, int]:
        """Number of devices by reason."""
        return {code: count for code, count in self.refusal.counts.items() if count}


def find_nearest_nodes(summary: AttemptSummarized) -> NearestNodes | None:
    """Find the refused nodes that lacked least; None if a node fitted, or if no node was refused for its devices."""
    # If a node fitted and its bind failed, no other node is near.
    refused = () if summary.fit_nodes else _iterate_near(summary)
    return min(refused, key=lambda group: group.rank, default=None)


def _iterate_near(summary: AttemptSummarized) -> Iterator[NearestNodes]:
    """Iterate over the refused nodes whose devices were judged, by refusal and container."""
    for rows in split_by_refusal(summary, np.flatnonzero(summary.refusal >= 0)):
        refusal = summary.refusals[int(summary.refusal[rows[0]])]
        name, _ = find_deciding_reason(refusal)
        if not is_about_devices(name):
            continue
        request = find_refused_request(summary, refusal, int(summary.refused_by[rows[0]]))
        missing = _count_missing_devices(refusal, request)
        reason_count = sum(map(bool, refusal.counts.values()))
        rank = (KINDS[get_kind(name)], _NOT_COUNTED if missing is None else missing, reason_count)
        yield NearestNodes(rank, refusal, request, missing, rows)


def _count_missing_devices(refusal: Refusal, request: Request | None) -> int | None:
    """Count the missing devices: a node with too few suitable devices reports their number under a code of its own."""
    if request is None or not any(refusal.counts.values()):
        return None
    return max(request.count - refusal.counts.get(ReasonCode.ALLOCATED_CARDS_INSUFFICIENT_REQUEST, 0), 0)
