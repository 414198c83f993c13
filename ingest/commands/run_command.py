"""A command that reads a log and publishes its events to Kafka."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import typer

from ingest.errors import MistakeError
from ingest.reading.checkpoint import Checkpoint, CheckpointState
from ingest.reading.kafka import KafkaSink
from ingest.reading.lease import ReaderLease
from ingest.reading.metrics import Metrics
from ingest.reading.options import IngestSettings, LogOptions
from ingest.reading.protocol import LogReader, collect_garbage_seldom, report_counts
from ingest.reading.pump import LinesRead, run
from ingest.sources.follow import STANDARD_INPUT, Reached, follow, read_file, read_standard_input
from runtime.telemetry import logs
from runtime.telemetry.health import ServeHealth, report_no_problem, serving

INTERRUPTED = 130
"""The exit code of shells for a process that SIGINT ended."""


def read(name: str, settings: IngestSettings, options: LogOptions, reader: LogReader) -> None:
    """Read the log that the options name and publish its events; ``name`` is the command's.

    Raises ``ReadingError``, ``SettingError``, and ``typer.Exit`` for a log that was not read to its end.
    """
    logs.configure(settings)
    collect_garbage_seldom()
    if bool(options.logs) == bool(options.pod):
        raise MistakeError("what is to be read? Give files, - for standard input, or --pod NAMESPACE/NAME")
    # Held while reading: two processes with one checkpoint would each move it past what the other has read.
    checkpoint = _create_checkpoint(name, options)
    with checkpoint.held() if checkpoint else nullcontext():
        state = _restore(reader, checkpoint)
        _publish_until_stopped(name, settings, options, reader, checkpoint, state)
    typer.echo(report_counts(reader.counts), err=True)


def _create_checkpoint(name: str, options: LogOptions) -> Checkpoint | None:
    if options.checkpoint is None:
        return None
    files = [str(path) for path in options.logs or ()]
    # A pipe can't be read again from a position in it, and a position belongs to one log.
    if not options.pod and (len(files) != 1 or files[0] == STANDARD_INPUT):
        raise MistakeError("--checkpoint goes with one file or pod")
    return Checkpoint(options.checkpoint, name, options.pod or files[0])


def _restore(reader: LogReader, checkpoint: Checkpoint | None) -> CheckpointState:
    """Restore the reader from the checkpoint, and return the position to continue from."""
    state = checkpoint.load() if checkpoint else CheckpointState()
    if checkpoint and state.memory:
        try:
            reader.restore(state.memory)
        except ValueError as error:
            typer.echo(f"{checkpoint.path}: {error}; reading from the start, which repeats no id", err=True)
            # Ids follow from the text, so what is published again is known by its id.
            return CheckpointState()
    return state


def _publish_until_stopped(
    name: str,
    settings: IngestSettings,
    options: LogOptions,
    reader: LogReader,
    checkpoint: Checkpoint | None,
    state: CheckpointState,
) -> None:
    """Publish to the end of the log, or until Ctrl-C; raises ``typer.Exit`` if that comes before the end."""
    try:
        asyncio.run(publish(name, settings, reader, checkpoint, read_lines(options, state), group=options.lease))
    except KeyboardInterrupt:  # the way to end a log that is followed
        if options.follow or options.pod:
            return
        typer.echo(report_counts(reader.counts), err=True)
        advice = "continue after what Kafka took" if checkpoint else "read the log again, whose events keep their ids"
        typer.echo(f"interrupted before the end of the log; start again to {advice}", err=True)
        raise typer.Exit(INTERRUPTED) from None


async def publish(
    name: str,
    settings: IngestSettings,
    reader: LogReader,
    checkpoint: Checkpoint | None,
    source: AsyncIterator[LinesRead],
    serve_health: ServeHealth = serving,
    group: str = "",
) -> None:
    """Publish what the reader makes of the lines, to their end; ``group``: of the lease."""
    metrics, sink, lease = Metrics(name), KafkaSink(settings.kafka), ReaderLease(settings.kafka, group)
    with serve_health(
        settings.metrics_address, metrics.registry, report_no_problem, lambda: sink.describe_wait() or lease.waiting
    ):
        async with sink:
            await lease.read(lambda: run(source, reader, sink, metrics.note, checkpoint))


async def read_lines(options: LogOptions, state: CheckpointState) -> AsyncIterator[LinesRead]:
    """Read the lines of the files or of the pod that the options name, from ``state`` on."""
    if options.pod:
        from ingest.commands.from_cluster import follow_pod_log

        async for pod_read in follow_pod_log(options, state):
            yield pod_read
    for path in options.logs or ():
        if str(path) == STANDARD_INPUT:
            async for lines in read_standard_input():
                yield LinesRead(lines, Reached(lines.end))
        elif options.follow:
            async for lines, reached in follow(path, state.reached):
                yield LinesRead(lines, reached)
        else:
            for file_read in _read_to_end(path, state.reached):
                yield file_read


def _read_to_end(path: Path, start: Reached) -> Iterator[LinesRead]:
    """Read a file from ``start`` to its end, with a progress bar on a terminal."""
    with _progress_bar(path) as show:
        for lines, reached, packed_bytes in read_file(path, start):
            show(packed_bytes)
            yield LinesRead(lines, reached)


@contextmanager
def _progress_bar(path: Path) -> Iterator[Callable[[int], None]]:
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    # Slow to import, and only a person sees it.
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn()
    with Progress(
        *columns, TransferSpeedColumn(), TimeRemainingColumn(), console=Console(stderr=True), transient=True
    ) as progress:
        task = progress.add_task(path.name, total=path.stat().st_size if path.exists() else 0)
        yield lambda packed_bytes: progress.update(task, completed=packed_bytes)
