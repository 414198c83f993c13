"""``python -m tests.fuzz [SUITE ...] --count N --seed S``: broken input for every reader, a million pieces by default.

A suite ends with a line that says how the pieces were taken, how much memory was held at most and how long the slowest
took. The first piece that crashes its reader, takes too long or makes it hold too much ends the run.
"""

import argparse
import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from rich.progress import Progress, TimeRemainingColumn

from tests.fuzz import (
    claims,
    cluster_objects,
    log_lines,
    pasted_objects,
    records,
    shipped_lines,
    simulations,
    snapshots,
    sniffer,
    topics,
)
from tests.fuzz.limits import BLOCK, LARGE_PIECES, Usage, guard

Suite = Callable[[int, int], Iterator[str]]
"""Function from a count and a seed to the outcome of every piece. Raises what its reader raises."""

SUITES: Final[dict[str, Suite]] = {
    "records": records.feed_records,
    "hami-log": log_lines.feed_hami_lines,
    "kai-log": log_lines.feed_kai_lines,
    "kube-scheduler-log": log_lines.feed_kube_scheduler_lines,
    "volcano-log": log_lines.feed_volcano_lines,
    "raw-logs": shipped_lines.feed_records,
    "sniffer-log": sniffer.feed_lines,
    "sniffer-requests": sniffer.feed_requests,
    "kube-events": cluster_objects.feed_objects,
    "snapshot": snapshots.feed_snapshots,
    "claims": claims.feed_claims,
    "simulations": simulations.feed_simulations,
    "pasted-objects": pasted_objects.feed_pasted_objects,
    "index": topics.feed_index,
    "placements-and-alerts": topics.feed_inputs,
}
"""A suite by its name; each lives in a module of its own."""


def run(name: str, count: int, seed: int) -> tuple[Counter[str], Usage]:
    """Count the outcomes of a suite, and measure what they took; with progress on standard error."""
    seen, usage = Counter[str](), Usage(block=LARGE_PIECES.get(name, BLOCK))
    with Progress(*Progress.get_default_columns(), TimeRemainingColumn(), transient=True) as progress:
        task = progress.add_task(name, total=count)
        for outcome in guard(SUITES[name](count, seed), usage):
            seen[outcome] += 1
            progress.advance(task)
    return seen, usage


def main() -> int:
    names = ", ".join(SUITES)
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"some of: {names}; all unless given")
    parser.add_argument("--count", type=int, default=1_000_000, help="pieces of each suite")
    parser.add_argument(
        "--seed", type=int, default=int(time.time()), help="seed of the pieces; with the same seed they are the same"
    )
    arguments = parser.parse_args()
    if unknown := set(arguments.suites) - set(SUITES):
        parser.error(f"no suite is called {', '.join(sorted(unknown))}; there are {names}")
    logging.disable(logging.CRITICAL)  # every piece would have its own line
    for name in arguments.suites or SUITES:
        began = time.monotonic()
        seen, usage = run(name, arguments.count, arguments.seed)
        counts = ", ".join(f"{count:,} {outcome}" for outcome, count in seen.most_common())
        print(f"{name}: seed {arguments.seed}: {counts}; {usage}; {time.monotonic() - began:.0f} s in all", flush=True)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
