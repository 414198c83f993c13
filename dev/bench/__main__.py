"""``python -m dev.bench [NAME ...]``: run the named benchmarks, or all of them, one after the other."""

import shutil
import sys
from collections.abc import Callable
from typing import Annotated

import typer
from rich.console import Console

from dev.bench import api, backlog, ingest, report, retries, stages, steady, worker
from dev.bench.anchor import measure_anchor
from dev.bench.api_load import measure_api_load
from dev.bench.asking import measure_asking
from dev.bench.away import measure_index_away
from dev.bench.backends import FOLDER
from dev.bench.bound import measure_bound
from dev.bench.claims import measure_claims
from dev.bench.costs import measure_costs
from dev.bench.diagnosing import measure_diagnosis
from dev.bench.filter import measure_filter_call, measure_pod_update
from dev.bench.filter_callers import measure_filter_callers
from dev.bench.footprint import measure_footprint
from dev.bench.histories import measure_histories
from dev.bench.indices import measure_indices
from dev.bench.judging import measure_judging
from dev.bench.overrides import measure_overrides
from dev.bench.page import measure_page
from dev.bench.pending import measure_pending
from dev.bench.plans import measure_plans
from dev.bench.refusals import measure_refusals
from dev.bench.replay import measure_replay
from dev.bench.start import measure_start
from dev.bench.takeover import measure_takeover
from dev.bench.trends import measure_trends
from dev.bench.watch import measure_watch
from dev.bench.watcher import measure_watcher
from dev.bench.wire import measure_wire

BENCHMARKS: dict[str, Callable[..., report.Result]] = {
    "filter": measure_filter_call,
    "filter-callers": measure_filter_callers,
    "pod-update": measure_pod_update,
    "diagnosis": measure_diagnosis,
    "judge": measure_judging,
    "claims": measure_claims,
    "refusals": measure_refusals,
    "anchor": measure_anchor,
    "start": measure_start,
    "why": measure_asking,
    "wire": measure_wire,
    "worker": worker.measure_worker,
    "overrides": measure_overrides,
    "costs": measure_costs,
    "bound": measure_bound,
    "bodies": stages.measure_bodies,
    "retries": retries.measure_retries,
    "indexing": backlog.measure_indexing,
    "steady": steady.measure_steady,
    "footprint": measure_footprint,
    "index-away": measure_index_away,
    "takeover": measure_takeover,
    "histories": measure_histories,
    "indices": measure_indices,
    "trends": measure_trends,
    "api": api.measure_api,
    "plans": measure_plans,
    "replay": measure_replay,
    "pending": measure_pending,
    "page": measure_page,
    "load": measure_api_load,
    "watch": measure_watch,
    "watcher": measure_watcher,
    "ingest": ingest.measure_hami_log,
    "ingest-kai": ingest.measure_kai_log,
    "ingest-kai-json": ingest.measure_kai_json_log,
}


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def main(
    names: Annotated[
        list[str] | None, typer.Argument(help=f"Some of: {', '.join(BENCHMARKS)}; all if none is given.")
    ] = None,
    seconds: Annotated[float, typer.Option(help="Seconds that `load` measures in each of its two halves.", min=1)] = 60,
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
