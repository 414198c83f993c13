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

from tests.fuzz import cluster_objects, log_lines, records, shipped_lines, sniffer, topics
from tests.fuzz.limits import Usage, guarded

Suite = Callable[[int, int], Iterator[str]]
"""Of a count and a seed: the outcome of every piece. Raises what its reader raises."""

SUITES: Final[dict[str, Suite]] = {
    "records": records.outcomes,
    "hami-log": log_lines.outcomes,
    "kai-log": log_lines.kai_outcomes,
    "raw-logs": shipped_lines.outcomes,
    "sniffer-log": sniffer.line_outcomes,
    "sniffer-requests": sniffer.request_outcomes,
    "kube-events": cluster_objects.outcomes,
    "index": topics.index_outcomes,
    "placements-and-alerts": topics.input_outcomes,
}
"""A suite by its name; each lives in a module of its own."""


def run(name: str, count: int, seed: int) -> tuple[Counter[str], Usage]:
    """The outcomes, counted, and what they took; with progress on standard error."""
    seen, usage = Counter[str](), Usage()
    with Progress(*Progress.get_default_columns(), TimeRemainingColumn(), transient=True) as progress:
        task = progress.add_task(name, total=count)
        for outcome in guarded(SUITES[name](count, seed), usage):
            seen[outcome] += 1
            progress.advance(task)
    return seen, usage


def main() -> int:
    known = ", ".join(SUITES)
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"some of: {known}; all unless given")
    parser.add_argument("--count", type=int, default=1_000_000, help="pieces of each suite")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="the same seed makes the same pieces")
    asked = parser.parse_args()
    if unknown := set(asked.suites) - set(SUITES):
        parser.error(f"no suite is called {', '.join(sorted(unknown))}; there are {known}")
    logging.disable(logging.CRITICAL)  # every piece would have its own line
    for name in asked.suites or SUITES:
        began = time.monotonic()
        seen, usage = run(name, asked.count, asked.seed)
        counts = ", ".join(f"{count:,} {outcome}" for outcome, count in seen.most_common())
        print(f"{name}: seed {asked.seed}: {counts}; {usage}; {time.monotonic() - began:.0f} s in all", flush=True)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
