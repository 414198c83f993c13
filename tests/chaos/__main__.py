"""``python -m tests.chaos``: faults one after the other for twenty minutes, from a seed, and a table of what was lost.

Ends with 1 if any run was not exact.
"""

import argparse
import itertools
import random
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.chaos.faults import FAULTS
from tests.chaos.ground import ground
from tests.chaos.runs import Outcome, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--brokers", type=int, default=0, help="0: half of the time one, half of the time three")
    parser.add_argument("--only", help="faults whose name holds this")
    asked = parser.parse_args()
    names = [name for name in FAULTS if not asked.only or asked.only in name]
    outcomes = []
    for brokers in [asked.brokers] if asked.brokers else [1, 3]:
        outcomes += _runs(names, asked.seed, brokers, asked.minutes * 60 / (1 if asked.brokers else 2))
    return 0 if all(each.verdict.is_exact for each in outcomes) else 1


def _runs(names: list[str], seed: int, brokers: int, seconds: float) -> list[Outcome]:
    console = Console(width=150)
    end = time.monotonic() + seconds
    outcomes: list[Outcome] = []
    order = random.Random(seed).sample(names, len(names))
    with tempfile.TemporaryDirectory(prefix="schedulerlog-chaos-") as folder, ground(Path(folder), brokers) as place:
        for number, name in enumerate(itertools.cycle(order)):
            if time.monotonic() > end:
                break
            outcome = run(place, name, seed + number)
            outcomes.append(outcome)
            console.print(_line(outcome), highlight=False)
    console.print(_table(outcomes, brokers))
    return outcomes


def _line(outcome: Outcome) -> str:
    return (
        f"{outcome.fault} (seed {outcome.seed}): {outcome.answered} pods, {outcome.records} records: {outcome.verdict}"
    )


def _table(outcomes: list[Outcome], brokers: int) -> Table:
    table = Table(title=f"{len(outcomes)} runs, {brokers} broker{'s' if brokers > 1 else ''}")
    for column in ("fault", "seed", "pods", "records", "missing", "extra", "different", "calm after"):
        table.add_column(column, justify="left" if column == "fault" else "right")
    for each in outcomes:
        verdict = each.verdict
        counts = (each.answered, each.records, *map(len, (verdict.missing, verdict.extra, verdict.different)))
        table.add_row(each.fault, str(each.seed), *map(str, counts), f"{each.calm_seconds:.1f} s")
    return table


if __name__ == "__main__":
    sys.exit(main())
