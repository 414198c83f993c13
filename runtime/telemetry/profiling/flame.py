"""Samples as a tree in plain text: what calls what, and how much of the time is spent below. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from runtime.telemetry.profiling.pprof import Frame, Sample

LEAST_SHARE: Final = 0.005
"""Branches below are left out."""


@dataclass(slots=True)
class _Branch:
    value: int = 0
    below: "dict[str, _Branch]" = field(default_factory=dict)


def tree(samples: Iterable[Sample], unit_ns: int = 1_000_000) -> Iterator[str]:
    """Lines `share, milliseconds, place`, outermost first, the hottest branch first.

    Counts the last value of each sample, in nanoseconds. A thread is the root of what it does.
    """
    root = _Branch()
    for sample in samples:
        at = root
        at.value += sample.values[-1]
        for place in [*(text for _, text in sample.labels), *map(_place, reversed(sample.stack))]:
            at = at.below.setdefault(place, _Branch())
            at.value += sample.values[-1]
    yield from _lines(root, root.value, 0, unit_ns)


def _place(frame: Frame) -> str:
    return f"{frame.function} ({'/'.join(frame.file.split('/')[-2:])})" if frame.file else frame.function


def _lines(branch: _Branch, total: int, depth: int, unit_ns: int) -> Iterator[str]:
    for place, child in sorted(branch.below.items(), key=lambda below: (-below[1].value, below[0])):
        if total and child.value >= LEAST_SHARE * total:
            yield f"{child.value / total:6.1%} {child.value / unit_ns:10.1f} ms  {'  ' * depth}{place}\n"
            yield from _lines(child, total, depth + 1, unit_ns)
