"""The commands of the pipeline. ``python -m pipeline provision`` makes topics and templates, then ``worker`` folds
decisions into summaries, and ``index`` writes them into OpenSearch."""

import asyncio
import os
import sys
from collections.abc import Coroutine
from datetime import timedelta
from typing import Annotated, Any, TypeVar

import typer

from pipeline.alerts.command import alertmanager, alerts, check_rules
from pipeline.index.command import index
from pipeline.kube_events.command import events
from pipeline.placements.command import placements
from pipeline.settings import KafkaSettings, Settings
from process import logs
from process.cli import KafkaIfGiven, MetricsAddress, application, fail, one_line_for
from process.errors import NotProvisionedError, SettingError, UnreachableError
from process.profiled import profiled
from process.settings import read

FAUST_MODULES = ("pipeline.worker.faust_app", "pipeline.worker.faust_consumer")
"""Faust logs what a subclass of its services does under the module of the subclass."""

app = application(__doc__)
dead_letters = application("Records that could not be processed, and documents that the index refused.")
app.add_typer(dead_letters, name="dead-letters")
app.command()(profiled(events))
app.command()(profiled(alerts))
app.command()(profiled(index))
app.command()(profiled(placements))
app.command()(check_rules)
app.command()(profiled(alertmanager))


S = TypeVar("S", bound=KafkaSettings)


def _settings(kind: type[S], kafka: str | None, **given: Any) -> S:
    with one_line_for(SettingError):
        return read(kind, kafka_bootstrap_servers=kafka, **given)


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Run to the end. An error that an operator can correct is one line; exit code 2 for a setting, otherwise 1."""
    with one_line_for(SettingError), one_line_for(UnreachableError, NotProvisionedError, status=1):
        asyncio.run(work)


@app.command()
def provision(
    wait_seconds: Annotated[float, typer.Option(help="How long to wait for services that are not up yet.")] = 60.0,
    kafka: KafkaIfGiven = None,
) -> None:
    """Make topics and index templates, or correct them. Safe to run again."""
    # The clients of Kafka and OpenSearch take long to import: only commands that connect load them.
    from pipeline.admin.provision import provision as provision_all

    _run(provision_all(_settings(Settings, kafka), wait_seconds, typer.echo))


@app.command()
@profiled
def retention(
    every_hours: Annotated[
        float | None, typer.Option(help="Keep running, and repeat after so many hours.", min=0.001)
    ] = None,
    dry_run: Annotated[bool, typer.Option(help="Only list what would be deleted.")] = False,
    kafka: KafkaIfGiven = None,
) -> None:
    """Delete daily indices that are older than they are kept."""
    from pipeline.admin.retention import keep_clean

    every = None if every_hours is None else timedelta(hours=every_hours)
    _run(keep_clean(_settings(Settings, kafka), every, dry_run=dry_run, say=typer.echo))


@dead_letters.command(name="list")
def list_dead_letters(
    limit: Annotated[int, typer.Option(help="How many of the latest.", min=1)] = 50, kafka: KafkaIfGiven = None
) -> None:
    """Show the latest dead letters: where they were read, how long they are, and why they were dead-lettered."""
    from pipeline.dead_letters import commands

    _run(commands.list_latest(_settings(KafkaSettings, kafka), limit, typer.echo))


@dead_letters.command()
def show(
    offset: Annotated[int, typer.Argument(help="Of a dead letter, as `list` shows it.")], kafka: KafkaIfGiven = None
) -> None:
    """Show one dead letter, whole: why it was dead-lettered, where it was read, its headers, key and value."""
    from pipeline.dead_letters import commands

    settings = _settings(KafkaSettings, kafka)

    async def found() -> None:
        if not await commands.show_one(settings, offset, typer.echo):
            fail(f"there is no dead letter at offset {offset}: `dead-letters list` shows the offsets", 1)

    _run(found())


@dead_letters.command()
def replay(
    offset: Annotated[list[int] | None, typer.Option(help="Of a dead letter, as `list` shows it; repeatable.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Replay all of them.")] = False,
    kafka: KafkaIfGiven = None,
) -> None:
    """Send dead letters back to the topics they came from, byte for byte. The list shows them until they expire."""
    from pipeline.dead_letters import commands

    if bool(offset) == everything:
        fail("which dead letters? Give --offset N (as `dead-letters list` shows it), or --all", 2)
    _run(commands.replay(_settings(KafkaSettings, kafka), None if everything else set(offset or ()), typer.echo))


@app.command()
@profiled
def worker(
    metrics_address: MetricsAddress = None,
    instance_id: Annotated[
        str | None, typer.Option(help="Names this worker across restarts; the host's name unless given.")
    ] = None,
    kafka: KafkaIfGiven = None,
) -> None:
    """Fold decisions into summaries, messages and counts, until SIGTERM."""
    chosen = _settings(KafkaSettings, kafka, instance_id=instance_id)
    # Faust takes a second to import: only this command needs it.
    from pipeline.worker.process import StuckError, run

    logs.configure(quiet=FAUST_MODULES)
    with one_line_for(StuckError, status=1):
        _run(run(chosen, metrics_address))
    # A consumer thread that still waits for a broker must not keep a worker that has ended.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    app()
