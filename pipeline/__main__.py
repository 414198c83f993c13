"""The commands of the pipeline. ``python -m pipeline provision`` makes topics and templates, then ``worker`` folds
decisions into summaries, and ``index`` writes them into OpenSearch."""

import asyncio
import os
import sys
from collections.abc import Coroutine
from datetime import timedelta
from typing import Annotated, Any

import typer

from pipeline.alerts.command import alertmanager, alerts, check_rules
from pipeline.kube_events.command import events
from pipeline.notify.command import notify
from pipeline.settings import (
    INDEX_GROUP,
    PLACEMENTS_GROUP,
    IndexSettings,
    PlacementsSettings,
    ProvisionSettings,
    RetentionSettings,
    TemplateSettings,
    WorkerSettings,
)
from runtime.cli.cli import Output, create_application, create_duration_option, fail, one_line_for
from runtime.errors import NotProvisionedError, SettingError, UnreachableError
from runtime.settings.flags import with_settings
from runtime.settings.kafka_connection import KafkaConnection
from runtime.settings.opensearch_connection import OpenSearchConnection
from runtime.telemetry import logs
from runtime.telemetry.tracing import tracing

FAUST_MODULES = ("pipeline.worker.faust_app",)
"""Faust logs what a subclass of its services does under the module of the subclass."""

app = create_application(__doc__)
dead_letters_app = create_application("Records that could not be processed, and documents that the index refused.")
app.add_typer(dead_letters_app, name="dead-letters")
app.command()(events)
app.command()(alerts)
app.command()(check_rules)
app.command()(alertmanager)
app.command()(notify)


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Run to the end. An error that an operator can correct is one line; exit code 2 for a setting, otherwise 1."""
    with one_line_for(SettingError), one_line_for(UnreachableError, NotProvisionedError, status=1):
        asyncio.run(work)


@app.command()
@with_settings(ProvisionSettings)
def provision(
    settings: ProvisionSettings,
    wait: Annotated[
        timedelta, create_duration_option("--wait", "How long to wait for services that are not up yet.")
    ] = "60s",  # type: ignore[assignment]
) -> None:
    """Make topics and index templates, or correct them. Safe to run again."""
    # The clients of Kafka and OpenSearch take long to import: only commands that connect load them.
    from pipeline.admin.provision import provision as provision_all

    _run(provision_all(settings, wait, typer.echo))


@app.command()
@with_settings(TemplateSettings)
def provision_templates(
    settings: TemplateSettings,
    wait: Annotated[timedelta, create_duration_option("--wait", "How long to wait for OpenSearch.")] = "60s",  # type: ignore[assignment]
) -> None:
    """Make index templates, or correct them, and no topics: for a Kafka whose topics an operator makes."""
    from pipeline.admin.provision import provision_templates as provision_index_templates

    _run(provision_index_templates(settings, wait, typer.echo))


@app.command()
@with_settings(RetentionSettings)
def retention(
    settings: RetentionSettings,
    every: Annotated[
        timedelta | None, create_duration_option("--every", "Keep running, and repeat after so long.")
    ] = None,
    dry_run: Annotated[bool, typer.Option(help="Only list what would be deleted.")] = False,
    beside_policies: Annotated[
        bool, typer.Option("--beside-policies", help="Leave to OpenSearch what `policies` has policies for.")
    ] = False,
    output: Output = "text",
) -> None:
    """Delete indices whose retention has passed."""
    from pipeline.admin.policies import BY_POLICY
    from pipeline.admin.retention import keep_clean, to_json_line
    from schemas.indices import INDICES

    if every is not None and not every:
        fail("--every: '0s' would never pause, write for example 1h", 2)
    format_item = to_json_line if output == "json" else str
    families = [index for index in INDICES if not (beside_policies and index in BY_POLICY)]
    _run(
        keep_clean(settings, every, dry_run=dry_run, say=lambda item: typer.echo(format_item(item)), families=families)
    )


@app.command()
@with_settings(OpenSearchConnection)
def roles(
    opensearch: OpenSearchConnection,
    show: Annotated[bool, typer.Option("--print", help="Print them as files of the security plugin instead.")] = False,
) -> None:
    """Make or correct the roles of schedulerlog in OpenSearch's security plugin, as its administrator."""
    from pipeline.admin.roles import make_roles, to_files

    if show:
        typer.echo(to_files())
    else:
        _run(make_roles(opensearch, typer.echo))


@app.command()
@with_settings(RetentionSettings)
def policies(
    settings: RetentionSettings,
    show: Annotated[bool, typer.Option("--print", help="Print them as JSON instead.")] = False,
) -> None:
    """Make or correct policies by which OpenSearch's index state management deletes old indices by itself."""
    from pipeline.admin.policies import make_policies, to_json

    if show:
        with one_line_for(SettingError):
            typer.echo(to_json(settings))
    else:
        _run(make_policies(settings, typer.echo))


@dead_letters_app.command(name="list")
@with_settings(KafkaConnection)
def list_dead_letters(
    kafka: KafkaConnection,
    limit: Annotated[int, typer.Option(help="Number of dead letters, from the latest back.", min=1)] = 50,
    output: Output = "text",
) -> None:
    """Show the latest dead letters: where they were read, how long they are, and why they were dead-lettered."""
    from pipeline.admin import dead_letters

    _run(dead_letters.list_latest(kafka, limit, typer.echo, as_json=output == "json"))


@dead_letters_app.command()
@with_settings(KafkaConnection)
def show(
    kafka: KafkaConnection,
    offset: Annotated[int, typer.Argument(help="The offset of a dead letter, as `list` shows it.")],
) -> None:
    """Show all of one dead letter: why it was dead-lettered, where it was read, its headers, key and value."""
    from pipeline.admin import dead_letters

    async def show_letter() -> None:
        if not await dead_letters.show_one(kafka, offset, typer.echo):
            fail(f"there is no dead letter at offset {offset}: `dead-letters list` shows the offsets", 1)

    _run(show_letter())


@dead_letters_app.command()
@with_settings(KafkaConnection)
def replay(
    kafka: KafkaConnection,
    offset: Annotated[
        list[int] | None, typer.Option(help="The offset of a dead letter, as `list` shows it; repeatable.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Replay all of them.")] = False,
) -> None:
    """Send dead letters back to the topics they came from, byte for byte. The list shows them until they expire."""
    from pipeline.admin import dead_letters

    if bool(offset) == everything:
        fail("which dead letters? Give --offset N (as `dead-letters list` shows it), or --all", 2)
    _run(dead_letters.replay(kafka, None if everything else set(offset or ()), typer.echo))


@app.command()
@with_settings(WorkerSettings)
def worker(settings: WorkerSettings) -> None:
    """Fold decisions into summaries, messages and counts, until SIGTERM."""
    # Faust takes a second to import: only this command needs it.
    from pipeline.worker.process import run
    from pipeline.worker.progress import StuckError

    logs.configure(settings, quiet=FAUST_MODULES)
    with one_line_for(StuckError, status=1), one_line_for(SettingError), tracing(settings, "worker") as spans:
        _run(run(settings, spans))
    # A consumer thread that still waits for a broker must not keep a worker that has ended.
    sys.stdout.flush()
    os._exit(0)


@app.command()
@with_settings(IndexSettings)
def index(
    settings: IndexSettings,
    group: Annotated[str, typer.Option(help="The Kafka consumer group.")] = INDEX_GROUP,
) -> None:
    """Write documents of the topics' records into OpenSearch, until SIGTERM. Several share the work by partition."""
    # The clients take their time to import: only this command needs them.
    from pipeline.index import process

    with one_line_for(SettingError), one_line_for(NotProvisionedError, status=1):
        logs.configure(settings)
        with tracing(settings, "index") as spans:
            asyncio.run(process.run(settings, group, spans))


@app.command()
@with_settings(PlacementsSettings)
def placements(
    settings: PlacementsSettings,
    group: Annotated[str, typer.Option(help="The Kafka consumer group.")] = PLACEMENTS_GROUP,
) -> None:
    """Record which pod is on which node with which devices, and audit placements, until SIGTERM. Of several, one works
    and the others wait to take over."""
    # The clients take their time to import: only this command needs them.
    from engine.summaries.node_pools import parse_expected_pools
    from pipeline.placements import process

    with one_line_for(SettingError), one_line_for(NotProvisionedError, status=1):
        logs.configure(settings)
        pools = parse_expected_pools(settings.node_pools, settings.expected_pools)
        metrics_address, session_seconds = settings.metrics_address, settings.session_seconds
        asyncio.run(process.run(process.Settings(settings, settings, group, metrics_address, session_seconds, pools)))


if __name__ == "__main__":
    app()
