"""``python -m dev.demo``: start everything, run the scenarios, show the answers, keep running until Ctrl-C."""

import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from dev.demo import scenarios, show
from dev.demo.processes import ServiceError
from dev.demo.reader import build_schedulerlog_path
from dev.demo.stack import TOGETHER, Stack, stack

FOLDER = Path(".run/demo")


def play(console: Console, running: Stack) -> bool:
    """Show every answer; whether all were the expected ones."""
    right = True
    for answer in scenarios.play(running):
        show.show_answer(console, answer)
        right &= answer.is_right
    console.rule("[bold]Two sources[/]: ingest kube-events has read kube-scheduler's events about the same tries")
    for answer in scenarios.compare_sources(running):
        show.show_verdict(console, answer)
        right &= answer.is_right
    console.rule("[bold]Event messages[/]: what kubectl describe shows")
    for answer in scenarios.compare_messages(running):
        show.show_messages(console, answer)
        right &= answer.is_right
    answer = scenarios.search(running)
    console.rule("[bold]Search[/]: GET /api/v1/schedulerlogs?reason=" + scenarios.SEARCHED_REASON)
    console.print_json(data=running.reader.search(reason=scenarios.SEARCHED_REASON))
    show.show_verdict(console, answer)
    return right & answer.is_right


def show_addresses(console: Console, running: Stack) -> None:
    """Print where the services listen, and requests to try."""
    api, curl = running.build_url("api"), f"curl --cacert {running.authority}"
    console.rule("[bold]Everything keeps running until Ctrl-C[/]")
    console.print(f"Page        {api}/ui/pods/default/gpu-pod-default (a browser warns of the demo's own authority)")
    console.print(f"scheduler   {running.build_url('scheduler')}\nAPI         {api}", highlight=False)
    console.print(f"Kafka       {running.backends.bootstrap_servers}", highlight=False)
    console.print(f"OpenSearch  {running.backends.opensearch_url}\n\nTry:", highlight=False)
    for path in (
        build_schedulerlog_path("default/gpu-pod-default"),
        build_schedulerlog_path("llm/finetune") + "/history",
    ):
        console.print(f"  {curl} {api}{path}", soft_wrap=True, highlight=False)
    path = build_schedulerlog_path("default/gpu-pod-default")
    console.print(f"  {curl} '{api}{path}?detail=full&node=node3'", soft_wrap=True, highlight=False)
    console.print(f"  {curl} '{api}/api/v1/schedulerlogs?status=failed&since=1h'", soft_wrap=True, highlight=False)
    console.print(f"  {curl} {api}/api/v1/nodes/node1/occupancy", soft_wrap=True, highlight=False)
    why = f"{sys.executable} -m schedulerlog why default/gpu-pod-default --api-ca-file {running.authority}"
    console.print(f"  {why} --api-url {api}\n", soft_wrap=True, highlight=False)
    console.print(
        f"Edit {running.cluster.path}: the scheduler reads it again after each change. Logs are in {FOLDER / 'logs'}."
    )


def run_until_stopped(running: Stack) -> None:
    """Wait for Ctrl-C; raises ``ServiceError`` if a service dies meanwhile."""
    while True:
        running.processes.check()
        time.sleep(1)


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def main(once: Annotated[bool, typer.Option("--once", help="Check the answers, then stop.")] = False) -> None:
    """Run the five scenarios of examples/ end to end and compare the answers with docs/demo.md."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background of a shell Ctrl-C would be ignored
    console = show.create_console()
    shutil.rmtree(FOLDER, ignore_errors=True)
    console.print("Starting Kafka, OpenSearch, the scheduler, the pipeline and the API ...")
    try:
        with stack(FOLDER, scenarios.EXAMPLES / "cluster.yaml", services=TOGETHER, has_certificate=True) as running:
            right = play(console, running)
            if not once:
                show_addresses(console, running)
                run_until_stopped(running)
    except KeyboardInterrupt:
        console.print("Stopped.")
        raise SystemExit(0) from None
    except (ServiceError, TimeoutError) as error:
        console.print(f"[bold red]{error}[/]", highlight=False)
        raise SystemExit(1) from None
    console.print("[bold green]Every answer is the expected one.[/]" if right else "[bold red]Some answers differ.[/]")
    raise SystemExit(0 if right else 1)


if __name__ == "__main__":
    app()
