"""Counts of the device rows of an attempt, by verdict and by model. What each node's rows say is in ``recount``."""

from collections.abc import Iterable

import numpy as np

from schemas.events import DevicesJudged


def judged(records: Iterable[DevicesJudged]) -> int:
    """How many rows the records have."""
    return sum(len(record.verdict) for record in records)


def by_model(records: Iterable[DevicesJudged]) -> dict[str, int]:
    """Device model to number of rows; what has no name is left out."""
    counts: dict[str, int] = {}
    for record in records:
        for model, count in record.models.items():
            counts[model] = counts.get(model, 0) + count
    return {model: count for model, count in sorted(counts.items()) if model and count}


def by_verdict(records: Iterable[DevicesJudged]) -> list[dict[str, int]]:
    """Per container, verdict to number of rows."""
    counts: list[dict[str, int]] = []
    for record in records:
        counts += [{} for _ in range(record.container + 1 - len(counts))]
        known = counts[record.container]
        for word, count in zip(record.verdicts, np.bincount(record.verdict, minlength=1).tolist(), strict=False):
            if count:  # a table may hold words that no row has, and a word twice
                known[word] = known.get(word, 0) + count
    return [dict(sorted(tally.items())) for tally in counts]
