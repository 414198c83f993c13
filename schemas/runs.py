"""Cutting what is said about many nodes into runs that each fit into one record.

A record stays below 64 KiB (``records.MAX_VALUE_BYTES``), whatever the size of the cluster.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from schemas.events import AttemptSummarized
from schemas.records import MAX_VALUE_BYTES, encode_value

HEAD_BYTES: Final = 4 * 1024
"""Set aside in every record for what is said once: names, requests, tables of words."""


def runs(sizes: npt.NDArray[np.int64], limit: int = MAX_VALUE_BYTES - HEAD_BYTES) -> Iterator[slice]:
    """Consecutive slices of nodes whose ``sizes`` (bytes, shape ``(nodes,)``) add up to at most ``limit``.

    A single node above the limit gets a run of its own: a node is never cut.
    """
    ends = np.cumsum(sizes)
    start = 0
    while start < len(sizes):
        before = int(ends[start - 1]) if start else 0
        stop = max(int(np.searchsorted(ends, before + limit, side="right")), start + 1)
        yield slice(start, stop)
        start = stop


def split(summary: AttemptSummarized) -> list[AttemptSummarized]:
    """The same summary in records that each fit; one part when it is short enough."""
    head = len(encode_value(summary.model_copy(update=_only(summary, slice(0, 0)))))
    # A row is the name in quotes and four numbers; a float32 has at most 16 characters.
    sizes = np.fromiter((len(name.encode()) + 48 for name in summary.nodes), dtype=np.int64, count=len(summary.nodes))
    cuts = list(runs(sizes, max(MAX_VALUE_BYTES - head - 256, 1024))) or [slice(0, 0)]
    numbers = {"parts": len(cuts)}
    return [summary.model_copy(update=_only(summary, cut) | numbers | {"part": i}) for i, cut in enumerate(cuts)]


def _only(summary: AttemptSummarized, cut: slice) -> dict[str, object]:
    names = ("nodes", "verdict", "score", "refused_by", "refusal")
    columns: dict[str, object] = {name: getattr(summary, name)[cut] for name in names}
    used = sorted({int(code) for code in summary.refusal[cut].tolist() if code >= 0})
    places = {code: place for place, code in enumerate(used)}
    codes = (places.get(code, -1) for code in summary.refusal[cut].tolist())
    columns["refusal"] = np.fromiter(codes, dtype=np.int64)
    columns["refusals"] = [summary.refusals[code] for code in used]
    return columns


def join(parts: Sequence[AttemptSummarized]) -> AttemptSummarized:
    """The whole summary from all of its parts, in any order.

    Raises ``ValueError`` unless the parts are exactly those of one version of one attempt.
    """
    ordered = sorted(parts, key=lambda part: part.part)
    if len({(part.attempt_id, part.version) for part in ordered}) != 1:
        raise ValueError("parts of different summaries can't be joined")
    if [part.part for part in ordered] != list(range(ordered[0].parts)):
        raise ValueError(f"parts {[part.part for part in ordered]} of {ordered[0].parts}")
    if len(ordered) == 1:
        return ordered[0]
    offsets = np.cumsum([0] + [len(part.refusals) for part in ordered])
    moved = [np.where(p.refusal < 0, -1, p.refusal + offset) for p, offset in zip(ordered, offsets, strict=False)]
    columns = {name: np.concatenate([getattr(p, name) for p in ordered]) for name in ("verdict", "score", "refused_by")}
    whole = {
        "part": 0,
        "parts": 1,
        "nodes": [name for part in ordered for name in part.nodes],
        "refusals": [refusal for part in ordered for refusal in part.refusals],
        "refusal": np.concatenate(moved),
    }
    return ordered[0].model_copy(update=columns | whole)
