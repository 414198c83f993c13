"""Shares of the recorded answers, for tests that replay some of a kind."""

from collections.abc import Callable, Iterator
from pathlib import Path

from tests.conformance.__main__ import holds
from tests.conformance.difference import Case
from tests.conformance.kinds import KINDS, judge

Choice = Callable[[Iterator[Case]], Iterator[Case]]
"""Choice of cases out of all of a kind."""


def choose_every(step: int) -> Choice:
    """Choose every case at a distance of ``step``, and the first of each feature."""

    def choose(cases: Iterator[Case]) -> Iterator[Case]:
        seen: set[str] = set()
        for position, case in enumerate(cases):
            features = set(case.get("features") or ())
            if position % step == 0 or not features <= seen:
                yield case
            seen |= features

    return choose


def list_wrong(folder: Path, choose: Choice, *names: str) -> list[str]:
    """List the wrong answers to the chosen cases of these kinds, of all kinds without ``names``."""
    return [
        f"{name} {case['id']}: {verdict.differences}"
        for name in names or KINDS
        if holds(folder, kind := KINDS[name])
        for case in choose(kind.read(folder / kind.source))
        if (verdict := judge(kind, case)).is_wrong
    ]
