"""Counting verdicts: from the device rows of an attempt to ``X`` and ``Y`` per node, in numpy.

Everything is kept sparse, as (node, code, count): no array here is larger than the rows that came, whatever a record
claims about its tables.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from schemas.events import DevicesJudged, Request, Words

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """One record of devices judged, counted.

    ``nodes``, ``devices`` and ``rows`` have an entry per node; ``owner``, ``code`` and ``count`` an entry per distinct
    pair of node and verdict: ``count`` rows of the node at place ``owner`` have the verdict ``words[code]``.
    """

    container: int
    request: Request
    words: Sequence[str]
    nodes: Words
    devices: Ints
    rows: Ints
    owner: Ints
    code: Ints
    count: Ints
    models: Mapping[str, int]
    """Device model to number of rows."""
    is_partial: bool
    """True where no row reports some devices of these nodes."""
    by_word: Mapping[str, int]
    """Verdict to number of rows, of those that have any."""

    @property
    def judged(self) -> int:
        """Rows."""
        return sum(self.by_word.values())


def tally(event: DevicesJudged) -> Tally:
    """Count the rows of one record."""
    words = event.verdicts
    owners = np.repeat(np.arange(len(event.nodes)), event.rows)
    owner, code, count = _pairs(owners, event.verdict, len(event.nodes), len(words))
    return Tally(
        event.container, event.request, words, event.nodes, event.devices, event.rows, owner, code, count,
        event.models, event.partial, _by_word(words, code, count),
    )  # fmt: skip


def _by_word(words: Sequence[str], code: Ints, count: Ints) -> dict[str, int]:
    sums = np.bincount(code, weights=count, minlength=len(words)).astype(np.int64).tolist()
    by_word: dict[str, int] = {}
    for word, rows in zip(words, sums, strict=True):
        if rows:  # a table may hold a word twice
            by_word[word] = by_word.get(word, 0) + rows
    return by_word


def _pairs(owners: Ints, codes: Ints, nodes: int, words: int) -> tuple[Ints, Ints, Ints]:
    # One integer for each pair of node and verdict, so that numpy counts 40,000 rows in one pass.
    key = owners * words + codes
    # bincount is ten times as fast, but its size is what the record claims, not what it holds.
    if nodes * words <= 4 * len(key) + 1024:
        dense = np.bincount(key, minlength=1)
        keys = np.flatnonzero(dense)
        counts = dense[keys]
    else:
        keys, counts = np.unique(key, return_counts=True)
    return keys // max(words, 1), keys % max(words, 1), counts


def by_model(tallies: Sequence[Tally]) -> dict[str, int]:
    """Device model to number of rows; what has no name is left out."""
    counts: dict[str, int] = {}
    for each in tallies:
        for model, count in each.models.items():
            counts[model] = counts.get(model, 0) + count
    return {model: count for model, count in sorted(counts.items()) if model and count}


def by_verdict(tallies: Sequence[Tally]) -> list[dict[str, int]]:
    """Per container, verdict to number of rows."""
    counts: list[dict[str, int]] = [{} for _ in range(max((each.container + 1 for each in tallies), default=0))]
    for each in tallies:
        known = counts[each.container]
        for word, count in each.by_word.items():
            known[word] = known.get(word, 0) + count
    return [dict(sorted(each.items())) for each in counts]
