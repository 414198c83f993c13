"""Replays a folder of HAMi's recorded answers and says where ours differ.

    python -m tests.conformance [DIR]

prints per kind `agree N of M` with the first differences; the folder that is committed beside this file is the default.
Exits 1 if a case differs by other than the rules of docs/hami-differences.md, 2 if the folder holds no cases.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import Final

from tests.conformance.kinds import KINDS, Kind, judged

COMMITTED: Final = Path(__file__).parent / "cases"
SHOWN: Final = 10


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=COMMITTED, help="of recorded cases; default: ours")
    return replay(parser.parse_args().folder)


def replay(folder: Path) -> int:
    there = {name: kind for name, kind in KINDS.items() if (folder / kind.source).exists()}
    if not there:
        print(f"{folder} holds none of {', '.join(kind.source for kind in KINDS.values())}")  # noqa: T201
        return 2
    return 1 if sum([report(name, kind, folder / kind.source) for name, kind in there.items()]) else 0


def report(name: str, kind: Kind, source: Path) -> int:
    """Print how many cases agree, which rules explain others, and the first of the rest; how many the rest are."""
    agree, total, wrong, by_rule = 0, 0, 0, Counter[str]()
    for case in kind.read(source):
        verdict = judged(kind, case)
        total += 1
        agree += verdict.agrees
        by_rule.update(verdict.rules)
        if not (verdict.agrees or verdict.is_explained):
            wrong += 1
            if wrong <= SHOWN:
                print(f"{name} case {verdict.id}:", *verdict.differences, sep="\n    ")  # noqa: T201
    print(f"{name}: agree {agree} of {total}; {total - agree - wrong} differ by rule, {wrong} otherwise")  # noqa: T201
    for rule, count in sorted(by_rule.items()):
        print(f"    {count} {rule}")  # noqa: T201
    return wrong


if __name__ == "__main__":
    sys.exit(main())
