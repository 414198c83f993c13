"""Counts of the device rows of an attempt, by verdict and by model. What each node's rows say is in ``recount``."""

from collections.abc import Iterable

import numpy as np

from schemas.events import DevicesJudged


def count_rows(records: Iterable[DevicesJudged]) -> int:
    """Count the rows of the records."""
    return sum(len(record.verdict) for record in records)


def count_by_model(records: Iterable[DevicesJudged]) -> dict[str, int]:
    """Count the rows of each device model; rows without a model's name are left out."""
    counts: dict[str, int] = {}
    for record in records:
        for model, count in record.models.items():
            counts[model] = counts.get(model, 0) + count
    return {model: count for model, count in sorted(counts.items()) if model and count}


def count_by_verdict(records: Iterable[DevicesJudged]) -> list[dict[str, int]]:
    """Count the rows of each verdict, per container."""
    counts: list[dict[str, int]] = []
    for record in records:
        counts += [{} for _ in range(record.container + 1 - len(counts))]
        container_counts = counts[record.container]
        for word, count in zip(record.verdicts, np.bincount(record.verdict, minlength=1).tolist(), strict=False):
            if count:  # a table may hold words that no row has, and a word twice
                container_counts[word] = container_counts.get(word, 0) + count
    return [dict(sorted(tally.items())) for tally in counts]
