"""``python -m pipeline provision`` makes topics and templates, ``worker`` folds decisions into what people read."""

import asyncio
import os
import sys
from collections.abc import Coroutine
from datetime import timedelta
from typing import Annotated, Any

import typer

from pipeline import log, settings
from pipeline.admin.provision import UnreachableError
from pipeline.admin.provision import provision as provision_all
from pipeline.admin.retention import keep_clean
from pipeline.alerts.command import alertmanager, alerts, check_rules
from pipeline.dead_letters import commands
from pipeline.kube_events.command import events
from pipeline.placements.command import placements
from pipeline.settings import SettingError
from pipeline.sinks.opensearch import NotProvisionedError
from process.cli import application, fail

app = application(__doc__)
dead_letters = application("Records that could not be understood, and documents that the index refused.")
app.add_typer(dead_letters, name="dead-letters")
app.command()(events)
app.command()(alerts)
app.command()(placements)
app.command()(check_rules)
app.command()(alertmanager)


def _settings(**given: Any) -> settings.Settings:
    try:
        return settings.read(**given)
    except SettingError as error:
        fail(str(error), 2)


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Run to the end; what a person can mend is one line and exit code 1."""
    from pipeline.worker.process import StuckError

    try:
        asyncio.run(work)
    except (UnreachableError, NotProvisionedError, StuckError) as error:
        fail(str(error), 1)


@app.command()
def provision(
    wait_seconds: Annotated[float, typer.Option(help="How long to wait for services that are not up yet.")] = 60.0,
) -> None:
    """Make topics and index templates, or correct them. Safe to run again."""
    _run(provision_all(_settings(), wait_seconds, typer.echo))


@app.command()
def retention(
    every_hours: Annotated[
        float | None, typer.Option(help="Stay, and do it again after so many hours.", min=0.001)
    ] = None,
    dry_run: Annotated[bool, typer.Option(help="Only say what would be dropped.")] = False,
) -> None:
    """Drop daily indices that are past their age."""
    every = None if every_hours is None else timedelta(hours=every_hours)
    _run(keep_clean(_settings(), every, dry_run=dry_run, say=typer.echo))


@dead_letters.command(name="list")
def list_dead_letters(
    limit: Annotated[int, typer.Option(help="The latest so many.", min=1)] = 50,
) -> None:
    """Show the latest dead letters: where they were read, how long they are, and why they were set aside."""
    _run(commands.list_latest(_settings(), limit, typer.echo))


@dead_letters.command()
def show(offset: Annotated[int, typer.Argument(help="Of a dead letter, as `list` shows it.")]) -> None:
    """Show one dead letter, whole: why it was set aside, where it was read, its headers, key and value."""

    async def found() -> None:
        if not await commands.show_one(_settings(), offset, typer.echo):
            fail(f"no dead letter is at offset {offset}: `dead-letters list` shows which there are", 1)

    _run(found())


@dead_letters.command()
def replay(
    offset: Annotated[list[int] | None, typer.Option(help="Of a dead letter, as `list` shows it; repeatable.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Put all of them back.")] = False,
) -> None:
    """Put dead letters back where they came from, byte for byte; they stay in the list until they expire."""
    if bool(offset) == everything:
        fail("say which: --offset N (as `dead-letters list` shows it), or --all", 2)
    _run(commands.replay(_settings(), None if everything else set(offset or ()), typer.echo))


@app.command()
def worker(
    metrics_port: Annotated[
        int | None, typer.Option(help="Serve /metrics, /healthz, /readyz on 127.0.0.1.", min=0, max=65535)
    ] = None,
    instance_id: Annotated[
        str | None, typer.Option(help="Names this worker across restarts; the host's name unless given.")
    ] = None,
) -> None:
    """Fold decisions into summaries, messages and documents, until SIGTERM."""
    # Faust takes a second to import: only this command needs it.
    from pipeline.worker.process import run

    chosen = _settings(instance_id=instance_id)
    log.configure()
    try:
        _run(run(chosen, metrics_port))
    except OSError as error:
        fail(f"--metrics-port {metrics_port}: {error}", 2)
    # A consumer thread that still waits for a broker must not keep a worker that has ended.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    app()
