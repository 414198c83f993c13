"""Replays folders of recorded answers of HAMi and kube-scheduler and says where ours differ.

    python -m tests.conformance [DIR ...]

prints per kind and vendor `agree N of M`, and the first differences; the collections that are committed beside this
file are the default. Exits 1 if a case differs by other than the rules of docs/hami-differences.md, 2 if a folder holds
no cases.
"""

import argparse
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from engine.hami.vendors import NVIDIA
from tests.conformance.difference import Case
from tests.conformance.kinds import KINDS, Kind, Verdict, find_file, judge

COMMITTED: Final = Path(__file__).parent / "cases"
SECOND: Final = COMMITTED / "second"
THIRD: Final = COMMITTED / "third"
KUBE: Final = COMMITTED / "kube"
MAX_PRINTED: Final = 10


@dataclass(slots=True)
class Tally:
    """The cases of one vendor. by_rule: how many differ by the rules of that name."""

    agree: int = 0
    total: int = 0
    wrong: int = 0
    by_rule: Counter[str] = field(default_factory=Counter)

    def add(self, verdict: Verdict) -> None:
        self.total += 1
        self.agree += verdict.agrees
        self.wrong += verdict.is_wrong
        self.by_rule.update(verdict.rules)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, help="folders of recorded cases; default: ours")
    return max(replay(folder) for folder in parser.parse_args().folders or (COMMITTED, SECOND, THIRD, KUBE))


def replay(folder: Path) -> int:
    there = {name: kind for name, kind in KINDS.items() if holds(folder, kind)}
    if not there:
        print(f"{folder} holds none of {', '.join(kind.source for kind in KINDS.values())}")  # noqa: T201
        return 2
    return 1 if sum([report(name, kind, folder / kind.source) for name, kind in there.items()]) else 0


def holds(folder: Path, kind: Kind) -> bool:
    """Tell whether a folder has cases of a kind."""
    return find_file(folder / kind.source) is not None


def report(name: str, kind: Kind, source: Path) -> int:
    """Print how many cases agree, which rules explain others, and the first of the rest; how many the rest are."""
    tallies = count_verdicts(kind, source, name)
    for vendor, tally in sorted(tallies.items()):
        label = f"{name} {vendor}" if vendor else name
        explained = tally.total - tally.agree - tally.wrong
        print(f"{label}: agree {tally.agree} of {tally.total}; {explained} differ by rule, {tally.wrong} otherwise")  # noqa: T201
        for rule, count in sorted(tally.by_rule.items()):
            print(f"    {count} {rule}")  # noqa: T201
    return sum(tally.wrong for tally in tallies.values())


def count_verdicts(kind: Kind, source: Path, name: str = "") -> dict[str, Tally]:
    """Count verdicts by vendor. Under a name, print the first cases that differ by no rule."""
    tallies: dict[str, Tally] = {}
    printed = 0
    for case in kind.read(source):
        verdict = judge(kind, case)
        tallies.setdefault(get_vendor(case), Tally()).add(verdict)
        if name and verdict.is_wrong and (printed := printed + 1) <= MAX_PRINTED:
            print(f"{name} case {verdict.id}:", *verdict.differences, sep="\n    ")  # noqa: T201
    return tallies


def get_vendor(case: Case) -> str:
    """Return the vendor of a case; "" for NVIDIA and for cases without a vendor."""
    request = case.get("in")
    vendor = case.get("vendor") or (request.get("vendor") if isinstance(request, dict) else "") or ""
    return "" if vendor == NVIDIA.word else vendor


if __name__ == "__main__":
    sys.exit(main())
