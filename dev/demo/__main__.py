"""``python -m dev.demo``: start everything, show the story of five pods, keep running until Ctrl-C."""

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from dev.demo import scenarios, story
from dev.demo.processes import ServiceError
from dev.demo.scenarios import EXAMPLES, ScenarioAnswer
from dev.demo.stack import SEPARATE_SERVICES, TOGETHER, Stack, stack

FOLDER: Final = Path(".run/demo")
WAIT_SECONDS: Final = 30.0
"""Seconds in which a person can open the page of the waiting pod before it is placed."""


def show_story(running: Stack, *, is_once: bool) -> None:
    """Print the cluster, pod by pod the answer, and where to look on."""
    story.draw(running, write)
    for act, answers in story.play(running):
        for line in story.format_act(act, answers):
            write(line)
    write("")
    for line in build_next_steps(running):
        write(line)
    story.wait_for_end(running, write, 0.0 if is_once else WAIT_SECONDS)
    for line in story.format_alert(running.reader):
        write(line)
    for line in story.format_many(running):
        write(line)


def print_json(running: Stack) -> None:
    """Print the answers of the API about each pod as a JSON document on a line."""
    for _, answers in story.play(running):
        write(json.dumps(answers.to_json()))
    write(json.dumps(story.wait_for_end(running, lambda _: None, 0.0).to_json()))


def build_next_steps(running: Stack) -> Iterator[str]:
    """Build the one address to open and the one command to type."""
    api = running.build_url("api")
    program = Path(sys.executable).with_name("schedulerlog")
    command = os.path.relpath(program) if program.exists() else f"{sys.executable} -m schedulerlog"
    yield f"Open  {api}/ui/pods/{story.WAITING_POD}"
    yield f"Type  {command} why {story.SHOWN_POD} --api-url {api}"


def run_until_stopped(running: Stack) -> None:
    """Wait for Ctrl-C; raises ``ServiceError`` if a service dies meanwhile."""
    while True:
        running.processes.check()
        time.sleep(1)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """End the process with a sentence after Ctrl-C, and after a service that did not start."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background of a shell Ctrl-C would be ignored
    try:
        yield
    except KeyboardInterrupt:
        complain("Stopped.")
        raise SystemExit(0) from None
    except (ServiceError, TimeoutError) as error:
        complain(str(error))
        raise SystemExit(1) from None


def write(line: str) -> None:
    """Print a line at once; a terminal without the bars of the drawing gets question marks."""
    encoding = sys.stdout.encoding or "ascii"
    print(line.encode(encoding, "replace").decode(encoding), flush=True)


def complain(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def main(
    once: Annotated[bool, typer.Option("--once", help="Stop after the story.")] = False,
    check: Annotated[
        bool,
        typer.Option("--check", help="Compare every answer with docs/demo.md, then stop; exits with 1 if not equal."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the answers in JSON, one pod a line, then stop.")
    ] = False,
) -> None:
    """Show the story of five pods on a real Kafka, pipeline and OpenSearch, then keep everything running."""
    with ended_by_signals():
        shutil.rmtree(FOLDER, ignore_errors=True)
        complain("Starting Kafka, OpenSearch, the scheduler, the pipeline and the API ...")
        services = TOGETHER if check else SEPARATE_SERVICES
        with stack(
            FOLDER, EXAMPLES / "cluster.yaml", services=services, has_certificate=check, api_reads_objects=True
        ) as running:
            if check:
                raise SystemExit(0 if compare_all(running) else 1)
            running.start("placements")
            if as_json:
                print_json(running)
                return
            running.start("alerts")
            show_story(running, is_once=once)
            if not once:
                write(f"\nEverything runs until Ctrl-C; its logs are in {FOLDER / 'logs'}.")
                run_until_stopped(running)


def compare_all(running: Stack) -> bool:
    """Print a line for each answer and the difference of a wrong one; return whether all are right."""
    console = create_console()
    answers = [_show_verdict(console, answer) for answer in _iterate_answers(running)]
    right = sum(answers)
    console.print(f"{right} of {len(answers)} answers are the expected ones.", highlight=False)
    return right == len(answers)


def _iterate_answers(running: Stack) -> Iterator[ScenarioAnswer]:
    yield from scenarios.play(running)
    yield from scenarios.compare_sources(running)
    yield from scenarios.compare_messages(running)
    yield scenarios.search(running)
    yield from scenarios.answer_many(running)


def _show_verdict(console: Console, answer: ScenarioAnswer) -> bool:
    verdict = "[green]right[/]" if answer.is_right else "[bold red]WRONG[/]"
    console.print(f"{verdict}  {answer.pod}: {answer.title}", highlight=False)
    if not answer.is_right:
        console.print(answer.describe_difference(), markup=False, highlight=False)
    return answer.is_right


def create_console() -> Console:
    """Create a console as wide as the terminal; without a terminal, wide enough for a reason on one line."""
    terminal = Console()
    return terminal if terminal.is_terminal else Console(width=160)


if __name__ == "__main__":
    app()
