"""Splits data about many nodes into chunks that each fit into one record.

A record stays below 64 KiB (``records.MAX_VALUE_BYTES``), whatever the size of the cluster.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from ..events import AttemptSummarized, Refusal
from ..events.columns import measure_widest_character
from .code_tables import cut_refusals, merge_refusal_tables
from .records import MAX_VALUE_BYTES, EncodedRecord, encode, encode_value

HEAD_BYTES: Final = 4 * 1024
"""Reserved in every record for what it holds once: names, requests, tables of words."""
MAX_TEXT: Final = 2_000
"""Characters of one error text that a summary repeats in each of its parts."""

_FEW_NODES: Final = 1_000
_NOTE: Final = 64
"""At least as long as the words that say how much of a text was cut, so that cutting twice is cutting once."""
_SLACK_BYTES: Final = 256
"""For numbers in the head that take more digits in a part than in the whole."""


def divide_sizes(sizes: npt.NDArray[np.int64], limit: int = MAX_VALUE_BYTES - HEAD_BYTES) -> Iterator[slice]:
    """Yield consecutive slices of nodes whose ``sizes`` (bytes, shape ``(nodes,)``) add up to at most ``limit``.

    A single node above the limit gets a run of its own: a node is never cut.
    """
    ends = np.cumsum(sizes)
    start = 0
    while start < len(sizes):
        # One cumulative sum and a binary search per run, instead of a loop over thousands of nodes.
        before = int(ends[start - 1]) if start else 0
        stop = max(int(np.searchsorted(ends, before + limit, side="right")), start + 1)
        yield slice(start, stop)
        start = stop


def divide_refusals(
    rows: npt.NDArray[np.int64], refusals: Sequence[Refusal], refusal: npt.NDArray[np.int64], limit: int
) -> Iterator[slice]:
    """Yield slices of nodes that take at most ``limit`` bytes: their ``rows``, and each of their refusals once.

    ``rows`` (bytes) and ``refusal`` (index into ``refusals``; -1 for none) have the shape ``(nodes,)``. As in
    ``divide_sizes``, a node is never cut.
    """
    # The last entry is what -1, no refusal, costs.
    words = np.array([*(len(encode_value(entry)) + 1 for entry in refusals), 0], dtype=np.int64)
    firsts = np.zeros(len(words), dtype=np.int64)
    start = 0
    while start < len(rows):
        # No run is longer than the limit divided by the smallest row: only so many are looked at, or the cost would be
        # quadratic.
        ahead = slice(start, start + limit // int(rows.min()) + 1)
        codes = refusal[ahead]
        # A refusal takes its bytes once per record, where its first node stands; later nodes only point at it. Of
        # several values for one place numpy stores the last, hence the reversal.
        firsts[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
        places = np.arange(len(codes))
        sizes = rows[ahead] + np.where(firsts[codes] == places, words[codes], 0)
        stop = start + max(int(np.searchsorted(np.cumsum(sizes), limit, side="right")), 1)
        yield slice(start, stop)
        start = stop


def encode_parts(summary: AttemptSummarized, topic: str = "") -> list[EncodedRecord]:
    """Encode the records of a summary: one when it is short enough, else a record for each part that ``split``
    makes."""
    # Most clusters are small: what shows that one record is enough is that record. To measure parts costs ten times as
    # much.
    if len(summary.nodes) <= _FEW_NODES:
        record = encode(_with_short_texts(summary), topic)
        if len(record.value) <= MAX_VALUE_BYTES:
            return [record]
    return [encode(part, topic) for part in split(summary)]


def split(summary: AttemptSummarized) -> list[AttemptSummarized]:
    """Divide a summary into parts that each fit into a record; an upper bound decides, so there may be one part too
    many.

    Every part repeats the fields that are not columns; error texts are cut to keep them short. Where they still leave
    less than a quarter of a record to the nodes (hundreds of containers), parts grow beyond the limit by up to that
    quarter rather than into thousands.
    """
    summary = _with_short_texts(summary)
    # Encoded, not estimated: requests and error texts differ by kilobytes from pod to pod.
    head = len(encode_value(summary.model_copy(update=_select_rows(summary, slice(0, 0)))))
    limit = max(MAX_VALUE_BYTES - head - _SLACK_BYTES, MAX_VALUE_BYTES // 4)
    rows = _bound_row_bytes(summary)
    # A summary without nodes (refused before any was judged) is still one record.
    cuts = list(divide_refusals(rows, summary.refusals, summary.refusal, limit)) or [slice(0, 0)]
    numbers = {"parts": len(cuts)}
    return [summary.model_copy(update=_select_rows(summary, cut) | numbers | {"part": i}) for i, cut in enumerate(cuts)]


def _with_short_texts(summary: AttemptSummarized) -> AttemptSummarized:
    bind = summary.bind and summary.bind.model_copy(update={"error": _cut_text(summary.bind.error)})
    texts = {
        "error": _cut_text(summary.error),
        "missing": _cut_text(summary.missing),
        "scheduler_message": _cut_text(summary.scheduler_message),
    }
    return summary.model_copy(update=texts | {"bind": bind})


def _cut_text(text: str) -> str:
    """Cut an error that quotes a whole API object. Its cause stands in front, so the end is cut, and the cut is
    counted."""
    over = len(text) - MAX_TEXT
    # A text that is over by less than the note is kept whole: a cut one would be as long, and cut again on the next
    # pass.
    return f"{text[:MAX_TEXT]} (and {over} more characters)" if over > _NOTE else text


def _bound_row_bytes(summary: AttemptSummarized) -> npt.NDArray[np.int64]:
    """Bound the bytes of each row: the name in quotes, three codes and a score."""
    names = summary.nodes
    quotes = np.flatnonzero(np.frombuffer(encode_value(names), np.uint8) == ord('"'))
    if len(quotes) == 2 * len(names):
        sizes = quotes[1::2] - quotes[::2] + 1
    else:  # a name with a quote in it
        sizes = np.array([len(encode_value(name)) for name in names], dtype=np.int64)
    # A code has at most as many digits as its table has entries, and -1 has two characters; each has a comma.
    codes = max(len(str(len(summary.refusals))), 2) + 1
    codes += sum(measure_widest_character(column) for column in (summary.verdict, summary.refused_by))
    # A float32 takes up to 16 characters; scores of 0 alone are left out, and terms of 0 are ``0.0``.
    floats = 17 if summary.score.any() else 0
    floats += sum(17 if column.any() else 4 for column in summary.score_terms.values())
    return sizes + codes + floats + 1


def _select_rows(summary: AttemptSummarized, cut: slice) -> dict[str, object]:
    names = ("nodes", "verdict", "score", "refused_by")
    columns: dict[str, object] = {name: getattr(summary, name)[cut] for name in names}
    columns["score_terms"] = {name: column[cut] for name, column in summary.score_terms.items()}
    columns["refusals"], columns["refusal"] = cut_refusals(summary.refusals, summary.refusal[cut])
    return columns


def join(parts: Sequence[AttemptSummarized]) -> AttemptSummarized:
    """Join the parts of a summary, in any order; each distinct refusal stands in the result once.

    Raises ``ValueError`` unless the parts are exactly those of one version of one attempt.
    """
    ordered = sorted(parts, key=lambda part: part.part)
    # Parts of two versions may lie on the topic side by side; mixed, they would be a summary that never existed.
    if len({(part.attempt_id, part.version, part.parts, *part.verdicts, *part.score_terms) for part in ordered}) != 1:
        raise ValueError("parts of different summaries can't be joined")
    if len(ordered) != ordered[0].parts or any(part.part != position for position, part in enumerate(ordered)):
        raise ValueError(f"parts {[part.part for part in ordered][:20]} of {ordered[0].parts}")
    if len(ordered) == 1:
        return ordered[0]
    columns = {name: np.concatenate([getattr(p, name) for p in ordered]) for name in ("verdict", "score", "refused_by")}
    terms = {name: np.concatenate([p.score_terms[name] for p in ordered]) for name in ordered[0].score_terms}
    refusals, refusal = merge_refusal_tables([p.refusals for p in ordered], [p.refusal for p in ordered])
    summary = {
        "part": 0,
        "parts": 1,
        "nodes": [name for part in ordered for name in part.nodes],
        "refusals": refusals,
        "refusal": refusal,
        "score_terms": terms,
    }
    return ordered[0].model_copy(update=columns | summary)
