"""Prints results as a table for people and as one JSON line for programs."""

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured path. ``ratio`` is against the benchmark's first figure, measured in the same run."""

    path: str
    value: float
    unit: str
    ratio: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """One benchmark: what was compared, and on how much work."""

    benchmark: str
    compares: str
    work: str
    figures: tuple[Figure, ...]


def add_ratios(figures: list[Figure], better: Callable[[float, float], float]) -> tuple[Figure, ...]:
    """Add to the figures their ratio to the first one, as ``better(first, this)`` gives it."""
    first = figures[0].value
    return tuple(Figure(f.path, f.value, f.unit, round(better(first, f.value), 3), f.note) for f in figures)


def show(console: Console, result: Result) -> None:
    console.rule(f"[bold]{result.benchmark}[/]")
    console.print(f"{result.compares}\n{result.work}", highlight=False)
    table = Table("path", "value", "unit", "ratio", "note", box=None, pad_edge=False)
    for figure in result.figures:
        ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}"
        table.add_row(figure.path, f"{figure.value:,.3g}", figure.unit, ratio, figure.note)
    console.print(table)
    print(json.dumps(asdict(result) | {"cpus": os.cpu_count()}))
