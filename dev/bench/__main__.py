"""``python -m dev.bench [NAME ...]``: run the named benchmarks, or all of them, one after the other."""

import shutil
import sys
from collections.abc import Callable
from typing import Annotated

import typer
from rich.console import Console

from dev.bench import api, backlog, ingest, report, retries, stages, steady, worker
from dev.bench.api_load import api_load
from dev.bench.away import index_away
from dev.bench.backends import FOLDER
from dev.bench.claims import measure_claims
from dev.bench.diagnosing import diagnosis
from dev.bench.filter import filter_call, pod_update
from dev.bench.filter_callers import filter_callers
from dev.bench.judging import measure_judging
from dev.bench.overrides import overrides
from dev.bench.page import page
from dev.bench.pending import pending
from dev.bench.start import start
from dev.bench.takeover import takeover
from dev.bench.watch import watch
from dev.bench.wire import wire

BENCHMARKS: dict[str, Callable[..., report.Result]] = {
    "filter": filter_call,
    "filter-callers": filter_callers,
    "pod-update": pod_update,
    "diagnosis": diagnosis,
    "judge": measure_judging,
    "claims": measure_claims,
    "start": start,
    "wire": wire,
    "worker": worker.worker,
    "overrides": overrides,
    "bodies": stages.bodies,
    "retries": retries.retries,
    "indexing": backlog.indexing,
    "steady": steady.steady,
    "index-away": index_away,
    "takeover": takeover,
    "api": api.api,
    "pending": pending,
    "page": page,
    "load": api_load,
    "watch": watch,
    "ingest": ingest.ingest,
    "ingest-kai": ingest.ingest_kai,
    "ingest-kai-json": ingest.ingest_kai_json,
}


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def main(
    names: Annotated[
        list[str] | None, typer.Argument(help=f"Some of: {', '.join(BENCHMARKS)}; all if none is given.")
    ] = None,
    seconds: Annotated[float, typer.Option(help="How long `load` measures, of each of its two halves.", min=1)] = 60,
) -> None:
    """Run benchmarks one after the other; each prints a table and a JSON line."""
    names = names or []
    if unknown := set(names) - set(BENCHMARKS):
        sys.exit(f"no benchmark is called {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
    console = Console(width=160)
    for name in names or BENCHMARKS:
        shutil.rmtree(FOLDER / name, ignore_errors=True)
        how = {"seconds": seconds} if name == "load" else {}
        report.show(console, BENCHMARKS[name](**how))


if __name__ == "__main__":
    app()
