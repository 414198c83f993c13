"""``python -m tests.chaos``: faults one after the other for twenty minutes, from a seed, and a table of what was lost.

Ends with 1 if any run was not exact.
"""

import argparse
import itertools
import random
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from dev import embedded
from tests.chaos.faults import FAULTS, FAULTS_OF_ONE_PROCESS, FULL_SPOOL, THREE_BROKERS
from tests.chaos.ground import Ground, OneProcessGround, ground
from tests.chaos.index_outages import WITHOUT_THE_INDEX
from tests.chaos.runs import Outcome, run
from tests.support.harness.small_disk import can_mount


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--brokers", type=int, default=0, help="0: half of the time three, half of the time one")
    parser.add_argument("--pods-per-second", type=float, default=25, help="fewer where others use the machine too")
    parser.add_argument("--only", help="faults whose name holds this")
    parser.add_argument("--index-outages", action="store_true", help="OpenSearch does not answer half of the time")
    parser.add_argument("--one-process", action="store_true", help="`schedulerlog all` in place of separate services")
    arguments = parser.parse_args()
    faults = FAULTS_OF_ONE_PROCESS if arguments.one_process else FAULTS
    able = [name for name in faults if not arguments.index_outages or name in WITHOUT_THE_INDEX]
    wanted = [name for name in able if not arguments.only or arguments.only in name]
    outcomes: list[Outcome] = []
    for brokers in [arguments.brokers] if arguments.brokers else [3, 1]:
        order = _order_faults(
            wanted, random.Random(arguments.seed + brokers), brokers, {outcome.fault for outcome in outcomes}
        )
        seconds = arguments.minutes * 60 / (1 if arguments.brokers else 2)
        kind = OneProcessGround if arguments.one_process else Ground
        runs = _Runs(arguments.seed + len(outcomes), brokers, seconds, arguments.pods_per_second, kind)
        outcomes += _run_faults(order, runs, has_outages=arguments.index_outages)
    if not_run := sorted(set(wanted) - {outcome.fault for outcome in outcomes}):
        Console(width=150).print(
            f"Not run, for want of time, brokers or the right to mount a disk: {', '.join(not_run)}"
        )
    return 0 if all(outcome.verdict.is_exact for outcome in outcomes) else 1


def _order_faults(names: list[str], chance: random.Random, brokers: int, done: set[str]) -> list[str]:
    """Order the faults randomly: with several brokers those of a broker first, then those that have not been run."""
    unable = (THREE_BROKERS if brokers < 3 else frozenset()) | (frozenset() if can_mount() else {FULL_SPOOL})
    able = [name for name in names if name not in unable]
    shuffled = chance.sample(able, len(able))
    return sorted(shuffled, key=lambda name: (brokers < 3 or "broker" not in name, name in done))


@dataclass(frozen=True, slots=True)
class _Runs:
    seed: int
    brokers: int
    seconds: float
    pods_per_second: float
    kind: type[Ground] = Ground


def _run_faults(order: list[str], runs: _Runs, *, has_outages: bool) -> list[Outcome]:
    console = Console(width=150)
    outcomes: list[Outcome] = []
    with (
        tempfile.TemporaryDirectory(prefix="schedulerlog-chaos-") as folder,
        embedded.backends(Path(folder) / "backends", brokers=runs.brokers) as servers,
        ground(Path(folder), servers, runs.kind) as running_ground,
    ):
        end = time.monotonic() + runs.seconds
        for number, name in enumerate(itertools.cycle(order)):
            if time.monotonic() > end:
                break
            seed = runs.seed + number
            fault = FAULTS_OF_ONE_PROCESS[name] if runs.kind is OneProcessGround else None
            outcome = run(
                running_ground, name, seed, fault, has_outages=has_outages, pods_per_second=runs.pods_per_second
            )
            outcomes.append(outcome)
            console.print(_format_outcome(outcome), highlight=False)
    console.print(_format_outcomes(outcomes, runs.brokers))
    return outcomes


def _format_outcome(outcome: Outcome) -> str:
    return (
        f"{outcome.fault} (seed {outcome.seed}): {outcome.answered} pods, {outcome.records} records: {outcome.verdict}"
    )


def _format_outcomes(outcomes: list[Outcome], brokers: int) -> Table:
    table = Table(title=f"{len(outcomes)} runs, {brokers} broker{'s' if brokers > 1 else ''}")
    columns = ("fault", "seed", "pods", "records", "partitions", "missing", "extra", "different", "calm after")
    for column in columns:
        table.add_column(column, justify="left" if column == "fault" else "right")
    for outcome in outcomes:
        verdict = outcome.verdict
        wrong = map(len, (verdict.missing, verdict.extra, verdict.different))
        counts = (outcome.answered, outcome.records, outcome.partitions, *wrong)
        table.add_row(outcome.fault, str(outcome.seed), *map(str, counts), f"{outcome.calm_seconds:.1f} s")
    return table


if __name__ == "__main__":
    sys.exit(main())
